// The steps of the matmul ladder beside the library's matrix product, which is cuBLASLt: percent_of_cublas is
// that of its rate, in the same case; the share of the ceiling comes from lesson 01's product of the same
// dtype.
//
// The library gives bfloat16 for bfloat16, the steps float32: at n = 1024 their results are twice as many
// bytes.
#include <common/device_timer.h>
#include <common/gpu_cases.h>
#include <gradus/gradus.h>

#include "ops/matmul_ladder.h"

namespace ladder_bench {
namespace {

using namespace gradus;

struct Problem {
  Problem(int64_t n, DType dtype, Device device)
      : a(randn({n, n}, dtype, device)),
        b(randn({n, n}, dtype, device)),
        c(full({n, n}, std::numeric_limits<double>::quiet_NaN(), {.device = device})),
        expected(matmul(a.to(kFloat32), b.to(kFloat32))) {}

  kernels::ladder::ProductArgs args() const { return {a.arg(), b.arg(), c.arg()}; }

  // Each element, by the size of the largest: they are about sqrt(n), and sums in another order differ by
  // 1e-6 of it. A NaN is wrong.
  bool right() const {
    return (c - expected).abs().max().item<float>() <= 1e-4f * expected.abs().max().item<float>();
  }

  Tensor a, b, c, expected;
};

// Empty: the step can run on the device.
std::string missing(const Step& step, Device device) {
  const auto [major, minor] = get_device_capability(device);
  const int capability = 10 * major + minor;
  const bool runs = step.only_capability ? capability == step.capability : capability >= step.capability;
  return runs ? ""
              : str("skipped: needs capability ", step.capability / 10, ".", step.capability % 10,
                    step.only_capability ? "" : " or above", ", the device has ", major, ".", minor);
}

void Ladder(benchmark::State& state, const Step& step, Device device) {
  const std::string why = missing(step, device);
  if (!why.empty()) return state.SkipWithError(why.c_str());
  NoGradGuard no_grad;
  const int64_t n = state.range(0);
  const Problem p(n, step.dtype, device);
  const auto args = p.args();
  const timing::Work run = [&] { step.launch(args, current_stream(device)); };
  run();
  if (!p.right()) return state.SkipWithError("wrong product before timing");
  Tensor y;
  const double cublas = timing::seconds_of(device, [&] { y = matmul(p.a, p.b); });
  const double own = timing::time_on(state, device, run);
  if (own == 0) return;
  if (!p.right()) return state.SkipWithError("wrong product after timing");
  state.counters["checked"] = 1;
  if (cublas > 0) state.counters["percent_of_cublas"] = 100 * cublas / own;
  state.counters["flops"] =
      benchmark::Counter(2.0 * static_cast<double>(n) * n * n, benchmark::Counter::kIsIterationInvariantRate);
}

[[maybe_unused]] const bool registered = timing::have_gpu("MatmulLadder");

}  // namespace

bool add(const Step& step) {
  if (!is_available(DeviceType::cuda)) return false;
  const Device device(DeviceType::cuda, 0);
  auto* b = benchmark::RegisterBenchmark(
      str("MatmulLadder/", step.name, "/", to_string(step.dtype), "/cuda0").c_str(),
      [=](benchmark::State& state) { Ladder(state, step, device); });
  for (const int64_t n : {1024, 2048, 4096, 8192}) b->Arg(n);
  timing::timed_on(device, b->ArgName("n")->Unit(benchmark::kMillisecond));
  return true;
}

}  // namespace ladder_bench
