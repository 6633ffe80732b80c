#include <runtime/device_contract_kernels.h>

#include <gradus/backends/cuda/kernel.cuh>

namespace gradus::contract {
namespace {

// One thread does all: the tests are about order, not speed.
struct OneThread {
  static constexpr bool supports(int block_size) { return block_size == 1; }
  int64_t groups(int) const { return 1; }
  size_t shared_bytes(int) const { return 0; }
};

struct Affine : OneThread {
  static constexpr const char* kName = "affine";
  const float* x;
  float* y;
  int64_t n;
  float a, b;
  GateState* gate;
  template <kernels::Block B>
  GRADUS_HD void operator()(B&) const {
    if (gate) pass(*gate);
    for (int64_t i = 0; i < n; ++i) y[i] = a * x[i] + b;
  }
};

struct Add : OneThread {
  static constexpr const char* kName = "add";
  const float* x;
  float* y;
  int64_t n;
  template <kernels::Block B>
  GRADUS_HD void operator()(B&) const {
    for (int64_t i = 0; i < n; ++i) y[i] += x[i];
  }
};

struct Failing : OneThread {
  static constexpr const char* kName = "failing";
  kernels::FaultSite site;
  bool fails;
  template <kernels::Block B>
  GRADUS_HD void operator()(B&) const {
    if (fails) site.report(7);
  }
};

std::string out_of_range(const char*, const int64_t* values) {
  return str("index ", values[0], " is out of range");
}

}  // namespace

void affine_cuda(const AffineArgs& args, const Stream& stream) {
  cuda::run(Affine{{}, args.x.data<float>(), args.y.data<float>(), args.y.numel(), args.a, args.b, args.gate},
            stream, 1);
}
void add_cuda(const AddArgs& args, const Stream& stream) {
  cuda::run(Add{{}, args.x.data<float>(), args.y.data<float>(), args.y.numel()}, stream, 1);
}
void failing_cuda(const FailingArgs& args, const Stream& stream) {
  cuda::run(Failing{{}, cuda::fault_site(stream.device, "failing", &out_of_range), args.fails}, stream, 1);
}

}  // namespace gradus::contract
