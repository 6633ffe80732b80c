#include "op_values.h"

#include <gradus/base/random.h>
#include <gradus/tensor/views.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gradus::optest {
namespace {

int64_t flat_index(const Shape& index, const Shape& strides) {
  int64_t at = 0;
  for (int d = 0; d < index.size(); ++d) at += index[d] * strides[d];
  return at;
}

// Position in memory of row-major element i.
int64_t memory_index(int64_t i, const Shape& sizes, const Shape& strides) {
  int64_t at = 0;
  for (int d = sizes.size() - 1; d >= 0; --d) {
    at += i % sizes[d] * strides[d];
    i /= sizes[d];
  }
  return at;
}

double poison(DType dtype) { return is_floating_point(dtype) ? std::nan("") : dtype == kBool ? 1 : 77; }

uint64_t seed_of(const std::string& name) {
  uint64_t h = 1469598103934665603u;  // FNV-1a
  for (char c : name) h = (h ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return h;
}

std::vector<int64_t> permutation(const PhiloxStream& random, int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return random.bits(static_cast<uint64_t>(a)) < random.bits(static_cast<uint64_t>(b));
  });
  return order;
}

}  // namespace

Layout contiguous_layout(const Shape& sizes) { return {"contiguous", contiguous_strides(sizes)}; }

Layout transposed_layout(const Shape& sizes) {
  Layout layout{"transposed", sizes, 0, true};
  int64_t step = 1;
  for (int d = 0; d < sizes.size(); ++d) {
    layout.strides[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  }
  return layout;
}

Layout sliced_layout(const Shape& sizes) {
  Layout layout{"sliced", sizes, 3, true};
  int64_t step = 2;
  for (int d = sizes.size() - 1; d >= 0; --d) {
    layout.strides[d] = step;
    step *= 2 * std::max<int64_t>(sizes[d], 1);
  }
  return layout;
}

Layout channels_last_layout(const Shape& sizes) { return {"channels-last", channels_last_strides(sizes)}; }

Layout expanded_layout(const Shape& sizes) { return {"expanded", Shape::filled(sizes.size(), 0), 1, true}; }

Tensor make_tensor(const RefArray& values, DType dtype, const Layout& layout, Device device) {
  const Shape& sizes = values.sizes;
  const int64_t n = values.numel();
  int64_t extent = n == 0 ? 1 : layout.offset + 1;
  for (int d = 0; n > 0 && d < sizes.size(); ++d) extent += (sizes[d] - 1) * layout.strides[d];
  if (layout.view) ++extent;
  Tensor base = layout.view ? empty({extent}, dtype) : empty_strided(sizes, layout.strides, dtype, Device());
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeType<T>;
    T* data = base.data<T>();
    if (layout.view) std::fill_n(data, extent, static_cast<T>(static_cast<C>(poison(dtype))));
    for (int64_t i = 0; i < n; ++i)
      data[layout.offset + memory_index(i, sizes, layout.strides)] =
          static_cast<T>(static_cast<C>(values[i]));
  });
  if (!device.is_cpu()) base = base.to(device);
  return layout.view ? detail::make_view(base, sizes, layout.strides, layout.offset) : base;
}

RefArray draw(const Draw& how, const Shape& sizes, const std::string& name, size_t number) {
  const PhiloxStream random{seed_of(name), number};
  RefArray x(sizes);
  std::vector<int64_t> order =
      how.kind == Draw::Kind::distinct ? permutation(random, x.numel()) : std::vector<int64_t>();
  const double n = static_cast<double>(x.numel());
  for (int64_t i = 0; i < x.numel(); ++i) {
    const uint64_t at = static_cast<uint64_t>(i);
    switch (how.kind) {
      case Draw::Kind::normal:
        x[i] = random.normal<double>(at);
        break;
      case Draw::Kind::uniform:
        x[i] = how.low + (how.high - how.low) * random.uniform<double>(at);
        break;
      case Draw::Kind::integers:
        x[i] = how.low + static_cast<double>(random.below(at, static_cast<uint64_t>(how.high - how.low)));
        break;
      case Draw::Kind::distinct:
        x[i] = (2 * static_cast<double>(order[at]) + 1 - n) / n;
        break;
    }
    for (double kink : how.kinks)
      if (std::fabs(x[i] - kink) < 0.1) x[i] = x[i] < kink ? kink - 0.15 : kink + 0.15;
  }
  return x;
}

double& RefArray::at(const Shape& index) { return (*this)[flat_index(index, contiguous_strides(sizes))]; }
double RefArray::at(const Shape& index) const {
  return (*this)[flat_index(index, contiguous_strides(sizes))];
}

Draw Draw::away_from(std::vector<double> points) const {
  Draw d = *this;
  d.kinks = std::move(points);
  return d;
}
Draw normal() { return {}; }
Draw uniform(double low, double high) { return {Draw::Kind::uniform, low, high}; }
Draw distinct() { return {Draw::Kind::distinct}; }
Draw integers(int64_t low, int64_t high, DType dtype) {
  return {Draw::Kind::integers, static_cast<double>(low), static_cast<double>(high), {}, dtype};
}
Draw booleans() { return integers(0, 2, kBool); }

RefArray values_of(const Tensor& tensor) {
  const Tensor t = tensor.device().is_cpu() ? tensor : tensor.cpu();
  RefArray values(t.sizes());
  visit_dtype(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* data = t.data<T>();
    for (int64_t i = 0; i < values.numel(); ++i)
      values[i] =
          static_cast<double>(static_cast<ComputeType<T>>(data[memory_index(i, t.sizes(), t.strides())]));
  });
  return values;
}

Tensor tensor_of(const RefArray& values, DType dtype, Device device) {
  return make_tensor(values, dtype, contiguous_layout(values.sizes), device);
}

int64_t broadcast_index(int64_t i, const Shape& sizes, const Shape& of) {
  const Shape strides = contiguous_strides(of);
  int64_t at = 0;
  for (int d = sizes.size() - 1, k = of.size() - 1; d >= 0; --d, --k) {
    if (k >= 0 && of[k] != 1) at += i % sizes[d] * strides[k];
    i /= sizes[d];
  }
  return at;
}

Shape broadcast_all(const RefArrays& arrays) {
  Shape sizes;
  for (const RefArray& a : arrays) sizes = broadcast_shapes(sizes, a.sizes, "reference");
  return sizes;
}

}  // namespace gradus::optest
