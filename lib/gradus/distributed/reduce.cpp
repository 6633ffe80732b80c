#include <gradus/distributed/reduce.h>

namespace gradus::distributed {

const char* to_string(ReduceOp op) {
  constexpr const char* names[] = {"sum", "avg", "max", "min"};
  return names[static_cast<int>(op)];
}

namespace {

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};
// NaN wins, as in max() of tensors.
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

template <class F, class T>
void combine(void* to, const void* a, const void* b, size_t n) {
  auto* out = static_cast<T*>(to);
  const auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  using C = ComputeType<T>;
#pragma omp simd
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<T>(F()(static_cast<C>(x[i]), static_cast<C>(y[i])));
}

template <class T>
void divide(void* elements, int64_t n, int ranks) {
  auto* x = static_cast<T*>(elements);
  for (int64_t i = 0; i < n; ++i)
    x[i] = static_cast<T>(static_cast<ComputeType<T>>(x[i]) / static_cast<ComputeType<T>>(ranks));
}

template <class T>
Reduction of_type(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return {&combine<Add, T>, nullptr};
    case ReduceOp::avg:
      return {&combine<Add, T>, &divide<T>};
    case ReduceOp::max:
      return {&combine<Max, T>, nullptr};
    case ReduceOp::min:
      return {&combine<Min, T>, nullptr};
  }
  GRADUS_FAIL("E-ARG", "all_reduce: no such operation");
}

}  // namespace

Reduction reduction_of(ReduceOp op, DType dtype) {
  GRADUS_CHECK(kNumericTypes.has(dtype) && (op != ReduceOp::avg || is_floating_point(dtype)), "E-DTYPE",
               "all_reduce: ", to_string(op), " of ", to_string(dtype), " is not defined",
               hint("convert it with .to(dtype) first"));
  return visit_dtype<kNumericTypes>(dtype,
                                    [&](auto tag) { return of_type<typename decltype(tag)::type>(op); });
}

}  // namespace gradus::distributed
