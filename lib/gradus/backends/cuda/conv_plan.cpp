#include <gradus/backends/cuda/conv_plan.h>
#include <gradus/backends/cuda/stream.h>
#include <gradus/runtime/backend.h>
#include <gradus/runtime/math_mode.h>

#include <algorithm>
#include <array>

namespace gradus::cuda {
namespace {

using Candidate = ConvPlan::Candidate;

constexpr size_t kCapacity = 4096;                   // plans of a device
constexpr size_t kWorkspaceLimit = size_t{1} << 30;  // bytes; faster algorithms that want more are rare

bool is_out_of_memory(const Error& error) { return error.code() == "E-OUT-OF-MEMORY"; }

// NOT_SUPPORTED, BAD_PARAM and their kinds, whose thousands are the same: the call queued nothing.
bool is_refused(cudnnStatus_t status) {
  static_assert(CUDNN_MAJOR >= 9, "cuDNN 9 is needed; in version 8 a status has no kind");
  const int kind = status / 1000;
  return kind == CUDNN_STATUS_NOT_SUPPORTED / 1000 || kind == CUDNN_STATUS_BAD_PARAM / 1000;
}

// 1 and 0 in the type that cuDNN scales with.
struct Factors {
  explicit Factors(const ConvProblem& p) : wide(p.compute == CUDNN_DATA_DOUBLE) {}
  const void* one() const { return wide ? static_cast<const void*>(&one64) : &one32; }
  const void* zero() const { return wide ? static_cast<const void*>(&zero64) : &zero32; }
  bool wide;
  double one64 = 1, zero64 = 0;
  float one32 = 1, zero32 = 0;
};

// Those of cuDNN's answers that give the same result on every run, in the precision that was asked for.
template <class Perf>
std::vector<Candidate> usable(const Perf* perf, int count, cudnnMathType_t asked) {
  std::vector<Candidate> out;
  for (int i = 0; i < count; ++i) {
    const bool exact = asked == CUDNN_FMA_MATH;
    const bool rounds = perf[i].mathType == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION ||
                        (exact && perf[i].mathType == CUDNN_TENSOR_OP_MATH);
    if (perf[i].status == CUDNN_STATUS_SUCCESS && perf[i].determinism == CUDNN_DETERMINISTIC && !rounds &&
        perf[i].memory <= kWorkspaceLimit)
      out.push_back({static_cast<int>(perf[i].algo), exact ? asked : perf[i].mathType, perf[i].memory});
  }
  return out;
}

template <class Calls>
std::vector<Candidate> estimate(cudnnHandle_t handle, const ConvDescriptors& d, const ConvProblem& p,
                                Device device) {
  typename Calls::Perf perf[Calls::kAlgorithms];
  int count = 0;
  const cudnnStatus_t status = Calls::estimate(handle, d, &count, perf);
  if (!is_refused(status)) check(cudnn(), status, "cudnnGetConvolutionAlgorithm", device);
  return usable(perf, count, p.math);
}

// The order of the candidates by the time that each takes. Overwrites the output, which the product does too.
template <class Calls>
void measure(cudnnHandle_t handle, ConvPlan& plan, const ConvProblem& p, const ConvAddresses& a,
             const Stream& stream) {
  size_t bytes = 0;
  for (const Candidate& c : plan.candidates) bytes = std::max(bytes, c.workspace);
  const Workspace workspace(bytes, stream);
  typename Calls::Perf perf[Calls::kAlgorithms];
  int count = 0;
  check(cudnn(), cudnn().cudnnSetConvolutionMathType(plan.descriptors.conv, p.math),
        "cudnnSetConvolutionMathType", stream.device);
  check(cudnn(), Calls::measure(handle, plan.descriptors, a, {workspace.data(), bytes}, &count, perf),
        "cudnnFindConvolutionAlgorithm", stream.device);
  const std::vector<Candidate> measured = usable(perf, count, p.math);
  if (!measured.empty()) plan.candidates = measured;
  plan.measured = true;
}

// The forward product with its bias, in one pass where cuDNN can.
cudnnStatus_t run_with_bias(cudnnHandle_t handle, ConvPlan& plan, const ConvAddresses& a, const Candidate& c,
                            ConvScratch scratch, const Factors& f) {
  if (!plan.fuses_bias || c.algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM)
    return CUDNN_STATUS_NOT_SUPPORTED;
  const cudnnStatus_t status =
      ConvForwardCalls::run_with_bias(handle, plan.descriptors, a, c.algorithm, scratch, f.one(), f.zero());
  if (is_refused(status)) plan.fuses_bias = false;
  return status;
}

// One try. A refusal if the algorithm is not for this problem after all; E-OUT-OF-MEMORY if its workspace
// cannot be had.
template <class Calls>
cudnnStatus_t attempt(cudnnHandle_t handle, ConvPlan& plan, const ConvProblem& p, const ConvAddresses& a,
                      const Candidate& c, bool accumulate, const Stream& stream, bool* added_bias) {
  const Factors f(p);
  const Workspace workspace(c.workspace, stream);
  const ConvScratch scratch{workspace.data(), c.workspace};
  check(cudnn(), cudnn().cudnnSetConvolutionMathType(plan.descriptors.conv, c.math),
        "cudnnSetConvolutionMathType", stream.device);
  if (p.has_bias) {
    const cudnnStatus_t status = run_with_bias(handle, plan, a, c, scratch, f);
    *added_bias = status == CUDNN_STATUS_SUCCESS;
    if (!is_refused(status)) return status;
  }
  return Calls::run(handle, plan.descriptors, a, c.algorithm, scratch, f.one(),
                    accumulate ? f.one() : f.zero());
}

}  // namespace

ConvDevice::ConvDevice(Device device) : device_(device) {
  check(cudnn(), cudnn().cudnnCreate(&handle_), "cudnnCreate", device);
}

ConvDevice& ConvDevice::of(Device device) {
  static std::mutex mutex;
  static std::array<ConvDevice*, Device::kMaxIndices> devices{};
  const std::lock_guard lock(mutex);
  ConvDevice*& state = devices[device.index()];
  if (!state) state = new ConvDevice(device);
  return *state;
}

ConvPlan& ConvDevice::plan_of(const ConvProblem& problem) {
  if (plans_.size() >= kCapacity) plans_.clear();  // shapes that never come again
  std::unique_ptr<ConvPlan>& plan = plans_[problem];
  if (plan) return *plan;
  std::unique_ptr<ConvPlan> made(
      new ConvPlan{.descriptors = {cudnn(), problem, device_}, .fuses_bias = problem.has_bias});
  const ConvDescriptors& d = made->descriptors;
  made->candidates =
      problem.product == ConvProduct::forward ? estimate<ConvForwardCalls>(handle_, d, problem, device_)
      : problem.product == ConvProduct::input ? estimate<ConvInputCalls>(handle_, d, problem, device_)
                                              : estimate<ConvWeightCalls>(handle_, d, problem, device_);
  plan = std::move(made);
  return *plan;
}

bool ConvDevice::can_run(const ConvProblem& problem) {
  const std::lock_guard lock(mutex_);
  return !plan_of(problem).candidates.empty();
}

template <class Calls>
bool ConvDevice::run_as(ConvPlan& plan, const ConvProblem& problem, const ConvAddresses& addresses,
                        bool accumulate, const Stream& stream) {
  GRADUS_CHECK(!plan.candidates.empty(), "E-CUDNN", Calls::kName,
               ": cuDNN has no algorithm for this convolution that gives the same result on every run, on ",
               device_, hint("another dtype or layout may have one"));
  // Trying waits for the device, which a capture does not allow, and overwrites what is to be added to.
  if (backends::cudnn::benchmark && !plan.measured && !accumulate &&
      !runtime::backend(device_).is_capturing(stream)) {
    try {
      measure<Calls>(handle_, plan, problem, addresses, stream);
    } catch (const Error& error) {
      if (!is_out_of_memory(error)) throw;
    }
  }
  for (size_t i = 0;;) {
    const bool last = i + 1 == plan.candidates.size();
    bool added_bias = false;
    try {
      const cudnnStatus_t status = attempt<Calls>(handle_, plan, problem, addresses, plan.candidates[i],
                                                  accumulate, stream, &added_bias);
      if (is_refused(status) && !last) {
        plan.candidates.erase(plan.candidates.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      check(cudnn(), status, Calls::kName, device_);
      return added_bias;
    } catch (const Error& error) {
      if (last || !is_out_of_memory(error)) throw;
    }
    ++i;
  }
}

bool ConvDevice::run(const ConvProblem& problem, const ConvAddresses& addresses, bool accumulate,
                     const Stream& stream) {
  const std::lock_guard lock(mutex_);
  check(cudnn(), cudnn().cudnnSetStream(handle_, static_cast<cudaStream_t>(handle_of(stream))),
        "cudnnSetStream", device_);
  ConvPlan& plan = plan_of(problem);
  switch (problem.product) {
    case ConvProduct::forward:
      return run_as<ConvForwardCalls>(plan, problem, addresses, accumulate, stream);
    case ConvProduct::input:
      return run_as<ConvInputCalls>(plan, problem, addresses, accumulate, stream);
    default:
      return run_as<ConvWeightCalls>(plan, problem, addresses, accumulate, stream);
  }
}

}  // namespace gradus::cuda
