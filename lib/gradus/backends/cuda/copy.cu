#include <gradus/backends/cuda/elementwise.cuh>

#include "kernels/copy.cuh"
#include "kernels/transpose_block.cuh"

namespace gradus::kernels {
namespace {

template <class To>
struct Convert {
  template <class From>
  GRADUS_HD To operator()(From x) const {
    return convert<To>(x);
  }
};
// W: an integer of the elements' size.
template <class W>
struct Move {
  GRADUS_HD W operator()(W x) const { return x; }
};
template <class W>
struct Constant {
  W value;
  GRADUS_HD W operator()() const { return value; }
};

template <class W>
void move_elements(const CopyArgs& args, const Stream& stream) {
  if (args.y.numel() == 0) return;
  const auto run = [&](const auto& body) { cuda::run(body, stream); };
  for_each_part(elementwise::make_loop<1>(args.y, {&args.x}), kMaxOffset,
                [&](const auto& loop, const int64_t* start) {
                  W *y = args.y.data<W>() + start[0], *x = args.x.data<W>() + start[1];
                  const int dim = copy::transposed_dim(loop);
                  if (dim >= 0 && Transpose<W>::pays(loop, dim))
                    run(Transpose<W>(loop, dim, y, x));
                  else
                    run_elementwise<W, W>(Move<W>(), loop, {y, x}, run);
                });
}

}  // namespace

void copy_cuda(const CopyArgs& args, const Stream& stream) {
  if (args.x.dtype == args.y.dtype) {
    return copy::visit_size(element_size(args.y.dtype), [&]<class W>(W) { move_elements<W>(args, stream); });
  }
  visit_dtype(args.y.dtype, [&]<class To>(TypeTag<To>) {
    visit_dtype(args.x.dtype, [&]<class From>(TypeTag<From>) {
      if constexpr (!std::is_same_v<To, From>)
        cuda::run_elementwise<To, From>(Convert<To>(), args.y, {&args.x}, stream);
    });
  });
}

void fill_cuda(const FillArgs& args, const Stream& stream) {
  const uint64_t bits = scalar_bits(args.value, args.y.dtype);
  copy::visit_size(element_size(args.y.dtype), [&]<class W>(W) {
    Constant<W> word;
    std::memcpy(&word.value, &bits, sizeof word.value);
    cuda::run_elementwise<W>(word, args.y, {&args.y}, stream);
  });
}

}  // namespace gradus::kernels
