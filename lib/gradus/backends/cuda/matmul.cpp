// Matrix products by cuBLASLt.
#include <gradus/backends/cuda/bias.h>
#include <gradus/backends/cuda/matmul_problem.h>
#include <gradus/backends/cuda/stream.h>
#include <gradus/runtime/device_info.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>

namespace gradus {
namespace cuda {
namespace {

// A GPU's grid has at most 65535 blocks in the dimension that counts matrices; a round number of them keeps
// addresses aligned.
constexpr int64_t kMaxBatch = 32768;
constexpr size_t kMiB = size_t{1} << 20;

struct Algorithm {
  cublasLtMatmulAlgo_t algorithm;
  size_t workspace;
};

// A device's handle, which any number of threads may use at once, and the algorithms chosen so far. Never
// destroyed: at exit the driver may be gone.
class LtDevice {
 public:
  explicit LtDevice(Device device) : device_(device) {
    check(cublaslt(), cublaslt().cublasLtCreate(&handle_), "cublasLtCreate", device);
    workspace_ = (get_device_capability(device).first >= 9 ? 32 : 8) * kMiB;
  }

  cublasLtHandle_t handle() const { return handle_; }
  size_t workspace() const { return workspace_; }

  // Nothing if the library has none.
  std::optional<Algorithm> find(const MatmulProblem& problem, MatmulDescriptors& descriptors) {
    const std::lock_guard lock(mutex_);
    const auto found = algorithms_.find(problem);
    if (found != algorithms_.end()) return found->second;
    if (algorithms_.size() >= kCapacity) algorithms_.clear();  // shapes that never come again
    return algorithms_[problem] = choose(problem, descriptors);
  }

 private:
  static constexpr size_t kCapacity = 4096;

  std::optional<Algorithm> choose(const MatmulProblem& problem, MatmulDescriptors& d) const {
    auto preference = matmul_preference(cublaslt(), problem, device_);
    cublasLtMatmulHeuristicResult_t best{};
    int count = 0;
    const cublasStatus_t status = cublaslt().cublasLtMatmulAlgoGetHeuristic(
        handle_, &d.product, &d.a, &d.b, &d.d, &d.d, &preference, 1, &best, &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
    check(cublaslt(), status, "cublasLtMatmulAlgoGetHeuristic", device_);
    if (count == 0 || best.state != CUBLAS_STATUS_SUCCESS) return {};
    return Algorithm{best.algo, best.workspaceSize};
  }

  Device device_;
  cublasLtHandle_t handle_ = nullptr;
  size_t workspace_;
  std::mutex mutex_;
  std::map<MatmulProblem, std::optional<Algorithm>> algorithms_;
};

LtDevice& device_state(Device device) {
  static std::mutex mutex;
  static std::array<LtDevice*, Device::kMaxIndices> devices{};
  const std::lock_guard lock(mutex);
  LtDevice*& state = devices[device.index()];
  if (!state) state = new LtDevice(device);
  return *state;
}

// False if the library has no algorithm for it.
bool multiply(const MatmulArgs& p, size_t workspace_limit, const Stream& stream) {
  void* const queue = handle_of(stream);  // makes the device current, which a first handle needs
  LtDevice& device = device_state(stream.device);
  const MatmulProblem problem =
      matmul_problem(p, runtime::float32_matmul_precision(), std::min(device.workspace(), workspace_limit));
  MatmulDescriptors d(cublaslt(), problem, p.bias.address, stream.device);
  const auto found = device.find(problem, d);
  if (!found) return false;
  const Workspace workspace(found->workspace, stream);
  const double one64 = 1, zero64 = 0;
  const float one32 = 1, zero32 = 0;
  const bool wide = p.y.dtype == DType::float64;
  const void* one = wide ? static_cast<const void*>(&one64) : &one32;
  const void* zero = wide ? static_cast<const void*>(&zero64) : &zero32;
  check(cublaslt(),
        cublaslt().cublasLtMatmul(device.handle(), &d.product, one, p.b.address, &d.a, p.a.address, &d.b,
                                  zero, p.y.address, &d.d, p.y.address, &d.d, &found->algorithm,
                                  workspace.data(), found->workspace, static_cast<cudaStream_t>(queue)),
        "cublasLtMatmul", stream.device);
  return true;
}

// With all the workspace that helps, or with none where there is no memory for it.
bool multiply(const MatmulArgs& p, const Stream& stream) {
  try {
    return multiply(p, SIZE_MAX, stream);
  } catch (const Error& error) {
    if (error.code() != "E-OUT-OF-MEMORY") throw;
    return multiply(p, 0, stream);
  }
}

TensorArg slice(TensorArg t, int64_t first, int64_t count) {
  t.address = t.data<char>() + first * t.strides[0] * static_cast<int64_t>(element_size(t.dtype));
  t.sizes[0] = count;
  return t;
}

void multiply_slice(const MatmulArgs& p, const Stream& stream) {
  if (multiply(p, stream)) return;
  MatmulArgs without_bias = p;
  without_bias.bias = {};
  GRADUS_CHECK(p.bias.present() && multiply(without_bias, stream), "E-CUBLAS",
               "matmul: cuBLASLt has no algorithm for matrices of shapes ", p.a.sizes, " and ", p.b.sizes,
               " of ", to_string(p.y.dtype), " on ", stream.device);
  add_bias(p.y, p.bias, 2, stream);
}

}  // namespace
}  // namespace cuda

void matmul_cuda(const MatmulArgs& p, const Stream& stream) {
  if (p.y.numel() == 0) return;
  if (p.a.sizes[2] == 0) return cuda::set_to_bias(p.y, p.bias, 2, stream);
  const int64_t batch = p.y.sizes[0];
  for (int64_t i = 0; i < batch; i += cuda::kMaxBatch) {
    const int64_t n = std::min(cuda::kMaxBatch, batch - i);
    cuda::multiply_slice({cuda::slice(p.a, i, n), cuda::slice(p.b, i, n), p.bias, cuda::slice(p.y, i, n)},
                         stream);
  }
}

}  // namespace gradus
