#include "kernels/matmul.cuh"

#include <gradus/backends/cpu/gemm.h>
#include <gradus/backends/cpu/onednn.h>
#include <gradus/backends/cpu/widen.h>
#include <gradus/base/parallel.h>

namespace gradus {
namespace {

// Below this many multiply-adds a library call costs more than the product.
constexpr int64_t kSmall = 32 * 1024;

template <class T>
void tiled(const MatmulArgs& p) {
  const int64_t m = p.y.sizes[1], n = p.y.sizes[2], k = p.a.sizes[2];
  for (int64_t i = 0; i < p.y.sizes[0]; ++i) {
    cpu::gemm<T>(m, n, k, {p.a.data<T>() + i * p.a.strides[0], p.a.strides[1], p.a.strides[2]},
                 {p.b.data<T>() + i * p.b.strides[0], p.b.strides[1], p.b.strides[2]},
                 p.bias.present() ? p.bias.data<T>() : nullptr,
                 {p.y.data<T>() + i * p.y.strides[0], p.y.strides[1], p.y.strides[2]});
  }
}

// A repeated matrix is one matrix of batch size 1, which oneDNN broadcasts. A batch of one is dropped.
TensorArg for_onednn(TensorArg t, int64_t batch) {
  if (t.strides[0] == 0) t.sizes[0] = 1;
  if (batch == 1) t.sizes.erase(0), t.strides.erase(0);
  return t;
}

void make_matmul(cpu::Primitive& primitive, const void* problem) {
  const auto& p = *static_cast<const MatmulArgs*>(problem);
  const auto a = cpu::describe(p.a), b = cpu::describe(p.b), y = cpu::describe(p.y);
  if (p.bias.present()) {
    const auto bias = cpu::describe(p.bias);
    primitive.set(dnnl::matmul(cpu::make_primitive_desc<dnnl::matmul>(a, b, bias, y)));
  } else {
    primitive.set(dnnl::matmul(cpu::make_primitive_desc<dnnl::matmul>(a, b, y)));
  }
  primitive.add_operand(DNNL_ARG_SRC, a);
  primitive.add_operand(DNNL_ARG_WEIGHTS, b);
  primitive.add_operand(DNNL_ARG_DST, y);
  if (p.bias.present()) primitive.add_operand(DNNL_ARG_BIAS, cpu::describe(p.bias));
}

bool run_onednn(const MatmulArgs& args) {
  const int64_t batch = args.y.sizes[0];
  MatmulArgs p{for_onednn(args.a, batch), for_onednn(args.b, batch), args.bias, for_onednn(args.y, batch)};
  if (p.bias.present()) {  // oneDNN wants it of y's rank
    const int rank = p.y.dim();
    Shape sizes = Shape::filled(rank, 1);
    sizes[rank - 1] = args.bias.sizes[0];
    p.bias.sizes = sizes;
    p.bias.strides = contiguous_strides(sizes);
  }
  cpu::Primitive* primitive =
      cpu::find_primitive(cpu::Key(1).add(p.a).add(p.b).add(p.bias).add(p.y), &make_matmul, &p);
  if (!primitive) return false;
  if (p.bias.present()) {
    primitive->run({p.a.address, p.b.address, p.y.address, p.bias.address});
  } else {
    primitive->run({p.a.address, p.b.address, p.y.address});
  }
  return true;
}

}  // namespace

void matmul_cpu(const MatmulArgs& args, const Stream& stream) {
  if (args.y.numel() == 0) return;
  if (args.y.dtype == DType::float64) return tiled<double>(args);
  const int64_t work = args.y.numel() * args.a.sizes[2];
  if (args.y.dtype == DType::float32 && work <= kSmall) return tiled<float>(args);
  if (args.a.sizes[2] > 0 && args.y.dtype != DType::float16 && run_onednn(args)) return;
  if (args.y.dtype == DType::float32) return tiled<float>(args);
  cpu::run_widened(args, &matmul_cpu, stream);
}

}  // namespace gradus
