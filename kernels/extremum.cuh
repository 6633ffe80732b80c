// Where the largest or smallest element along one dimension is: the host loop of cpu and sim.
#pragma once
#include "kernels/reduce.cuh"

namespace gradus {

/// Along the dimension in which `indices`, of x's rank, has size 1: the position of the extremum and, where
/// `values` is present (with indices' sizes and strides), what stands there.
struct FindArgs {
  TensorArg x, values, indices;
  static constexpr auto operands =
      std::tuple{in(&FindArgs::x), out(&FindArgs::values), out(&FindArgs::indices)};
};

/// Op: reduction::Max or Min, which a NaN wins. It finds the value, quickly; a search then its first place.
template <class Op>
struct FindKernel {
  template <class T>
  static void run(const FindArgs& args, const Stream&) {
    const ReduceArgs shape{args.x, args.indices, 0};
    const reduction::Nest nest = reduction::make_nest(args.x, args.indices);
    const int64_t outputs = args.indices.numel(), work = args.x.numel() / std::max<int64_t>(outputs, 1);
    parallel_for(0, outputs, std::max<int64_t>(1, reduction::kGrain / std::max<int64_t>(work, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) find<T>(args, shape, nest, i);
                 });
  }

 private:
  template <class T>
  static void find(const FindArgs& args, const ReduceArgs& shape, const reduction::Nest& nest, int64_t i) {
    using C = reduction::Accumulator<T>;
    int64_t at = 0, to = 0;
    for (int d = nest.kept_count - 1; d >= 0; i /= nest.kept[d].size, --d)
      at += i % nest.kept[d].size * nest.kept[d].x, to += i % nest.kept[d].size * nest.kept[d].y;
    const auto [n, step, unused] = nest.reduced[0];
    C best;
    reduction::leaf<Op, T>(shape, at, n, step, 1, &best);
    const T* x = args.x.data<T>() + at;
    int64_t found = 0;
    while (found < n - 1 && !same(static_cast<C>(x[found * step]), best)) ++found;
    args.indices.data<int64_t>()[to] = found;
    if (args.values.present()) args.values.data<T>()[to] = x[found * step];
  }
  template <class C>
  static bool same(C a, C b) {
    return a == b || (a != a && b != b);
  }
};

}  // namespace gradus
