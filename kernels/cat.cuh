// Joins tensors along a dimension.
#pragma once
#include "kernels/copy.cuh"

namespace gradus {

/// y[…, offset + i, …] = x[0][…, i, …], and the others behind it, along `dim`. Operands have one dtype.
struct CatArgs {
  TensorListArg x;
  TensorArg y;
  int dim;
  int64_t offset;
  static constexpr auto operands = std::tuple{in(&CatArgs::x), out(&CatArgs::y)};
};

namespace kernels {

// Calls copy({x[i], its part of y}) for each input.
template <class F>
void for_each_input(const CatArgs& args, const F& copy) {
  const auto step = args.y.strides[args.dim] * static_cast<int64_t>(element_size(args.y.dtype));
  TensorArg part = args.y;
  part.address = args.y.data<char>() + args.offset * step;
  for (int i = 0; i < args.x.count; ++i) {
    part.sizes[args.dim] = args.x[i].sizes[args.dim];
    copy(CopyArgs{args.x[i], part});
    part.address = part.data<char>() + part.sizes[args.dim] * step;
  }
}

inline void cat_host(const CatArgs& args, const Stream&) {
  for_each_input(args, [](const CopyArgs& copy) { copy::move_elements(copy); });
}
void cat_cuda(const CatArgs& args, const Stream& stream);

}  // namespace kernels
}  // namespace gradus
