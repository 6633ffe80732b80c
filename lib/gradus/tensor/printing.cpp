// Prints tensors as PyTorch does (torch/_tensor_str.py, with its default options). The dtype keeps PyTorch's
// spelling, dtype=torch.float64, so that texts can be compared.
#include <fmt/format.h>
#include <gradus/tensor/node.h>

#include <algorithm>
#include <cmath>
#include <ostream>

namespace gradus {
namespace {

constexpr int kLineWidth = 80, kEdgeItems = 3, kThreshold = 1000;

std::string new_line(int indent) { return str(",\n", std::string(static_cast<size_t>(indent), ' ')); }

class Printer {
 public:
  explicit Printer(const Tensor& host) : x_(host), summarize_(host.numel() > kThreshold) {
    if (x_.is_floating_point()) {
      choose_float_format();
    } else {
      visit(0, 0, [this](int64_t at) { widen(number(at).size()); });
    }
  }

  std::string block(int dim, int64_t at, int indent) const {
    if (x_.dim() == 0) return element(at);
    return dim == x_.dim() - 1 ? row(at, indent) : rows(dim, at, indent);
  }

 private:
  // Calls f for each shown index of a dimension, and once with -1 where some are left out.
  template <class F>
  void shown(int dim, const F& f) const {
    const int64_t n = x_.sizes()[dim];
    const bool cut = summarize_ && n > 2 * kEdgeItems;
    for (int64_t i = 0; i < n; ++i) {
      if (cut && i == kEdgeItems) f(int64_t{-1}), i = n - kEdgeItems;
      f(i);
    }
  }
  template <class F>
  void visit(int dim, int64_t at, const F& f) const {
    if (dim == x_.dim()) return f(at);
    shown(dim, [&](int64_t i) {
      if (i >= 0) visit(dim + 1, at + i * x_.strides()[dim], f);
    });
  }

  double value(int64_t at) const {
    return visit_dtype<kFloatingTypes>(x_.dtype(), [&]<class T>(TypeTag<T>) {
      return static_cast<double>(static_cast<ComputeType<T>>(static_cast<const T*>(x_.raw_data())[at]));
    });
  }
  // An integer or a bool.
  std::string number(int64_t at) const {
    return visit_dtype<kIntegralTypes | dtypes(kBool)>(x_.dtype(), [&]<class T>(TypeTag<T>) -> std::string {
      const T v = static_cast<const T*>(x_.raw_data())[at];
      if constexpr (std::is_same_v<T, bool>)
        return v ? "True" : "False";
      else
        return fmt::format("{}", v);
    });
  }

  void widen(size_t n) { width_ = std::max(width_, n); }

  // One format for all: whole numbers as "3.", others with 4 digits, scientific where the range asks for it.
  void choose_float_format() {
    double low = INFINITY, high = 0;
    visit(0, 0, [&](int64_t at) {
      const double v = value(at);
      if (!std::isfinite(v) || v == 0) return;
      low = std::min(low, std::abs(v)), high = std::max(high, std::abs(v));
      whole_ = whole_ && v == std::ceil(v);
    });
    if (high == 0) return;
    scientific_ = high / low > 1000 || high > 1e8 || (!whole_ && low < 1e-4);
    visit(0, 0, [&](int64_t at) {
      const double v = value(at);
      if (std::isfinite(v) && v != 0) widen(float_text(v).size());
    });
  }
  std::string float_text(double v) const {
    if (scientific_) return fmt::format("{:.4e}", v);
    if (!whole_) return fmt::format("{:.4f}", v);
    return fmt::format("{:.0f}", v) + (std::isfinite(v) ? "." : "");
  }

  std::string element(int64_t at) const {
    return fmt::format("{:>{}}", x_.is_floating_point() ? float_text(value(at)) : number(at), width_);
  }

  // The last dimension: as many elements a line as fit.
  std::string row(int64_t at, int indent) const {
    const int per_line = std::max(1, (kLineWidth - indent) / (static_cast<int>(width_) + 2));
    std::string text = "[";
    int count = 0;
    shown(x_.dim() - 1, [&](int64_t i) {
      if (count > 0) text += count % per_line == 0 ? new_line(indent + 1) : ", ";
      text += i < 0 ? " ..." : element(at + i * x_.strides().back());
      ++count;
    });
    return text + "]";
  }

  std::string rows(int dim, int64_t at, int indent) const {
    const std::string between = str(",", std::string(x_.dim() - 1 - dim, '\n'), std::string(indent + 1, ' '));
    std::string text = "[";
    shown(dim, [&](int64_t i) {
      if (text.size() > 1) text += between;
      text += i < 0 ? "..." : block(dim + 1, at + i * x_.strides()[dim], indent + 1);
    });
    return text + "]";
  }

  const Tensor& x_;
  bool summarize_, whole_ = true, scientific_ = false;
  size_t width_ = 1;
};

std::vector<std::string> suffixes(const Tensor& x) {
  std::vector<std::string> list;
  const bool is_default = x.numel() == 0 ? x.dtype() == kFloat32
                                         : x.dtype() == kFloat32 || x.dtype() == kInt64 || x.dtype() == kBool;
  if (!x.is_cpu()) list.push_back("device='" + to_string(x.device()) + "'");
  if (x.numel() == 0 && x.dim() != 1) {
    const std::string sizes = to_string(x.sizes());
    list.push_back("size=(" + sizes.substr(1, sizes.size() - 2) + ")");
  }
  if (!is_default) list.push_back(str("dtype=torch.", to_string(x.dtype())));
  if (x.grad_fn()) {
    list.push_back(str("grad_fn=<", x.grad_fn()->name(), ">"));
  } else if (x.requires_grad()) {
    list.push_back("requires_grad=True");
  }
  return list;
}

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) return "tensor(undefined)";
  std::string text = "tensor(";
  const int indent = static_cast<int>(text.size());
  {
    NoGradGuard no_grad;
    const Tensor host = tensor.cpu();
    text += host.numel() == 0 ? "[]" : Printer(host).block(0, 0, indent);
  }
  const size_t newline = text.rfind('\n');
  size_t line = newline == std::string::npos ? text.size() + 2 : text.size() - newline + 1;
  for (const std::string& suffix : suffixes(tensor)) {
    const bool fits = line + suffix.size() + 2 <= kLineWidth;
    text += (fits ? std::string(", ") : new_line(indent)) + suffix;
    line = fits ? line + suffix.size() + 2 : static_cast<size_t>(indent) + suffix.size();
  }
  return text + ")";
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_string(tensor); }

}  // namespace gradus
