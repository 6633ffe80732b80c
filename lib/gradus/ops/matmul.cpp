#include "kernels/matmul.cuh"

#include <gradus/ops/autocast.h>
#include <gradus/ops/common.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/view.h>

namespace gradus {
namespace {

constexpr auto kMatmul =
    KernelTable<MatmulArgs>("matmul").host(kFloatingTypes, &matmul_cpu).cuda<&matmul_cuda>(kFloatingTypes);

// A matrix whose rows or columns are contiguous, which is what the libraries take.
Tensor with_unit_stride(const Tensor& t) {
  const int d = t.dim();
  const auto ok = [&](int i, int j) {
    return (t.strides()[i] == 1 || t.sizes()[i] == 1) && t.strides()[j] >= std::max<int64_t>(1, t.sizes()[i]);
  };
  return ok(d - 1, d - 2) || ok(d - 2, d - 1) ? t : t.contiguous();
}

// The last two dimensions with a batch dimension before them.
TensorArg as_batch(const Tensor& t, int64_t batch) {
  TensorArg arg = t.arg();
  if (t.dim() == 2) {
    arg.sizes.insert(0, batch);
    arg.strides.insert(0, 0);
  }
  return arg;
}

// a (M, K) or (B, M, K); b (K, N) or (B, K, N); y (M, N) or (B, M, N).
Tensor product(const Tensor& a, const Tensor& b, const Tensor& bias) {
  const int64_t m = a.size(-2), n = b.size(-1);
  const bool batched = a.dim() == 3 || b.dim() == 3;
  const int64_t batch = a.dim() == 3 ? a.sizes()[0] : b.dim() == 3 ? b.sizes()[0] : 1;
  Tensor y = empty(batched ? Shape{batch, m, n} : Shape{m, n}, a.dtype(), a.device());
  const Tensor left = with_unit_stride(a), right = with_unit_stride(b);
  const Tensor added = bias.defined() ? bias.contiguous() : bias;
  TensorArg out = as_batch(y, 1);
  if (!batched) out.strides[0] = m * n;
  launch(kMatmul, a.dtype(), ops::stream_of(y),
         MatmulArgs{as_batch(left, batch), as_batch(right, batch), ops::optional_arg(added), out});
  return y;
}

Tensor transposed(const Tensor& t) { return t.transpose(-2, -1); }

// y = a b; both 2-D, or both 3-D with equal batches.
struct MatmulBackward : Node {
  const char* name() const override { return "MatmulBackward"; }
  TensorList backward(const TensorList& g) override {
    return {wants(0) ? matmul(g[0], transposed(saved(1))) : Tensor(),
            wants(1) ? matmul(transposed(saved(0)), g[0]) : Tensor()};
  }
};

void check_dtypes(const char* op, const Tensor& a, const Tensor& b) {
  GRADUS_CHECK(a.dtype() == b.dtype(), "E-DTYPE", op,
               ": expected both operands to have the same dtype, but got ", to_string(a.dtype()), " and ",
               to_string(b.dtype()), hint("convert one with .to(dtype)"));
}

// Both 2-D, or both 3-D, on one device.
Tensor multiply(const Tensor& a, const Tensor& b, const char* op) {
  check_dtypes(op, a, b);
  GRADUS_CHECK(a.size(-1) == b.size(-2), "E-SHAPE", op, ": mat1 and mat2 shapes cannot be multiplied (",
               a.sizes(), " and ", b.sizes(), "): ", a.size(-1), " columns against ", b.size(-2), " rows",
               hint("one operand may need .t() or flatten()"));
  Tensor y = product(a, b, {});
  if (wants_grad(a, b)) {
    record<MatmulBackward>(y, {a, b})
        .save(b.requires_grad() ? a : Tensor())
        .save(a.requires_grad() ? b : Tensor());
  }
  return y;
}

// (…, R, C) with the batch dimensions broadcast to `batch` and made one.
Tensor batched(const Tensor& t, const Shape& batch) {
  Shape sizes = batch;
  sizes.push_back(t.size(-2));
  sizes.push_back(t.size(-1));
  return t.expand(sizes).reshape({batch.numel(), t.size(-2), t.size(-1)});
}

Shape batch_of(const Tensor& t) {
  Shape s = t.sizes();
  s.erase(s.size() - 1);
  s.erase(s.size() - 1);
  return s;
}

struct LinearBackward : Node {
  const char* name() const override { return "LinearBackward"; }
  TensorList backward(const TensorList& g) override {
    return {wants(0) ? matmul(g[0], saved(1)) : Tensor(), wants(1) ? matmul(g[0].t(), saved(0)) : Tensor(),
            wants(2) ? g[0].sum({0}) : Tensor()};
  }
};

Tensor linear_2d(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Tensor y = product(x, transposed(weight), bias);
  if (wants_grad(x, weight, bias)) {
    record<LinearBackward>(y, {x, weight, bias})
        .save(weight.requires_grad() ? x : Tensor())
        .save(x.requires_grad() ? weight : Tensor());
  }
  return y;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (const auto cast = ops::autocast(ops::kLowerPrecision, a)) return matmul(cast(a), cast(b));
  ops::check_same_device("matmul", {{"a", a}, {"b", b}});
  GRADUS_CHECK(a.dim() > 0 && b.dim() > 0, "E-SHAPE",
               "matmul: both arguments need to be at least 1-D, but they are ", a.dim(), "-D and ", b.dim(),
               "-D", hint("use mul() to scale by a number"));
  if (a.dim() == 2 && b.dim() == 2) return multiply(a, b, "matmul");
  if (a.dim() == 1) {
    Tensor y = matmul(a.unsqueeze(0), b.dim() == 1 ? b.unsqueeze(1) : b);
    return b.dim() == 1 ? y.reshape({}) : y.squeeze(-2);
  }
  if (b.dim() == 1) return matmul(a, b.unsqueeze(1)).squeeze(-1);
  if (b.dim() == 2) {  // one matrix for all of a's rows
    Shape sizes = a.sizes();
    sizes[a.dim() - 1] = b.size(1);
    return multiply(a.reshape({batch_of(a).numel() * a.size(-2), a.size(-1)}), b, "matmul").reshape(sizes);
  }
  const Shape batch = broadcast_shapes(batch_of(a), batch_of(b), "matmul");
  Shape sizes = batch;
  sizes.push_back(a.size(-2));
  sizes.push_back(b.size(-1));
  return multiply(batched(a, batch), batched(b, batch), "matmul").reshape(sizes);
}

Tensor mm(const Tensor& a, const Tensor& b) {
  if (const auto cast = ops::autocast(ops::kLowerPrecision, a)) return mm(cast(a), cast(b));
  ops::check_same_device("mm", {{"a", a}, {"b", b}});
  GRADUS_CHECK(a.dim() == 2 && b.dim() == 2, "E-SHAPE", "mm: expected two matrices, got shapes ", a.sizes(),
               " and ", b.sizes(), hint("use matmul() for other ranks"));
  return multiply(a, b, "mm");
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  if (const auto cast = ops::autocast(ops::kLowerPrecision, a)) return bmm(cast(a), cast(b));
  ops::check_same_device("bmm", {{"a", a}, {"b", b}});
  GRADUS_CHECK(a.dim() == 3 && b.dim() == 3 && a.size(0) == b.size(0), "E-SHAPE",
               "bmm: expected (B, M, K) and (B, K, N), got shapes ", a.sizes(), " and ", b.sizes(),
               hint("use matmul() to broadcast"));
  return multiply(a, b, "bmm");
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (const auto cast = ops::autocast(ops::kLowerPrecision, x))
    return linear(cast(x), cast(weight), cast(bias));
  ops::check_same_device("linear", {{"input", x}, {"weight", weight}, {"bias", bias, true}});
  GRADUS_CHECK(x.dtype() == weight.dtype() && (!bias.defined() || bias.dtype() == x.dtype()), "E-DTYPE",
               "linear: expected input, weight and bias to have the same dtype, but got ",
               to_string(x.dtype()), ", ", to_string(weight.dtype()),
               bias.defined() ? str(" and ", to_string(bias.dtype())) : "",
               hint("convert the input with .to(weight.dtype())"));
  GRADUS_CHECK(weight.dim() == 2 && x.dim() > 0 && x.size(-1) == weight.size(1), "E-SHAPE",
               "linear: input of shape ", x.sizes(), " does not fit a weight of shape ", weight.sizes(),
               ": its last size must be ", weight.dim() == 2 ? weight.size(1) : -1,
               hint("flatten the input, or change in_features"));
  GRADUS_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)), "E-SHAPE",
               "linear: expected a bias of shape [", weight.size(0), "], got ", bias.sizes());
  if (x.dim() == 2) return linear_2d(x, weight, bias);
  Shape sizes = x.sizes();
  sizes[x.dim() - 1] = weight.size(0);
  return linear_2d(x.reshape({x.numel() / std::max<int64_t>(1, x.size(-1)), x.size(-1)}), weight, bias)
      .reshape(sizes);
}

Tensor Tensor::matmul(const Tensor& other) const { return gradus::matmul(*this, other); }

}  // namespace gradus
