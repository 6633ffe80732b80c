#include <gradus/backends/cuda/elementwise.cuh>

#include "kernels/where.cuh"

namespace gradus::kernels {
namespace {

// W: an integer of the elements' size, for they are only moved. The mask is read as bytes, as on the host.
template <class W>
struct Choose {
  GRADUS_HD W operator()(uint8_t condition, W a, W b) const { return condition ? a : b; }
};
template <class W>
struct MaskedFill {
  W value;
  GRADUS_HD W operator()(uint8_t mask, W x) const { return mask ? value : x; }
};

}  // namespace

void where_cuda(const WhereArgs& args, const Stream& stream) {
  copy::visit_size(element_size(args.y.dtype), [&]<class W>(W) {
    cuda::run_elementwise<W, uint8_t, W, W>(Choose<W>(), args.y, {&args.condition, &args.a, &args.b}, stream);
  });
}

void masked_fill_cuda(const MaskedFillArgs& args, const Stream& stream) {
  copy::visit_size(element_size(args.y.dtype), [&]<class W>(W) {
    MaskedFill<W> fill;
    std::memcpy(&fill.value, &args.value_bits, sizeof fill.value);
    cuda::run_elementwise<W, uint8_t, W>(fill, args.y, {&args.mask, &args.x}, stream);
  });
}

}  // namespace gradus::kernels
