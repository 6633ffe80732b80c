// Lesson 01: this machine's ceilings, of which the other benchmarks' numbers are a share: memory bandwidth
// and matrix-multiply rate, for each device that has a speed of its own. The simulated device has none: it
// computes with the cpu.
//
// Bytes are those that the program asks for, as in STREAM: a copy reads and writes each byte once. What a
// processor reads in addition before it writes (write-allocate) is not counted.
#include <common/counted.h>
#include <gradus/gradus.h>

#include <cmath>
#include <cstring>

namespace {

using namespace gradus;

// Far larger than the caches: four times the cpu's last one, 128 MiB at least; a GPU's have at most 128 MiB.
int64_t array_bytes(Device device) {
  if (!device.is_cpu()) return int64_t{1} << 30;
  int64_t bytes = int64_t{128} << 20;
  for (const auto& cache : benchmark::CPUInfo::Get().caches)  // sysconf() sums over the processor's parts
    bytes = std::max(bytes, int64_t{4} * cache.size);
  return bytes;
}

// Threads are pinned when the first loop starts (base/parallel.cpp). 0: a device that has none.
void use_threads(const benchmark::State& state) {
  if (state.range(0) > 0) set_num_threads(static_cast<int>(state.range(0)));
}

// Runs `work` on `device` and counts `bytes` for each time; `right` is asked before and after.
void measure_bytes(benchmark::State& state, Device device, int64_t bytes, const std::function<void()>& work,
                   const std::function<bool()>& right) {
  work();
  if (!right()) return state.SkipWithError("wrong result before timing");
  if (timing::time_on(state, device, work) == 0) return;
  if (!right()) return state.SkipWithError("wrong result after timing");
  state.counters["checked"] = 1;  // the results file's "check": "passed"
  state.SetBytesProcessed(state.iterations() * bytes);
}

// The cpu's own loops, without the library around them.
constexpr int64_t kGrain = 1 << 14;  // elements

void Copy(benchmark::State& state) {
  use_threads(state);
  const int64_t n = array_bytes("cpu") / 4;
  const Tensor from = full({n}, 3.0), to = zeros({n});
  auto copy = [&, a = from.data<float>(), b = to.data<float>()] {
    parallel_for(0, n, kGrain,
                 [&](int64_t begin, int64_t end) { std::memcpy(b + begin, a + begin, 4 * (end - begin)); });
    benchmark::ClobberMemory();
  };
  measure_bytes(state, "cpu", 2 * 4 * n, copy, [&] { return equal(from, to); });
}

void Triad(benchmark::State& state) {
  use_threads(state);
  const int64_t n = array_bytes("cpu") / 4;
  const Tensor x = full({n}, 1.0), y = full({n}, 2.0), z = zeros({n}), result = full({n}, 7.0);
  auto triad = [&, a = x.data<float>(), b = y.data<float>(), c = z.data<float>()] {
    parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) c[i] = a[i] + 3.0f * b[i];
    });
    benchmark::ClobberMemory();
  };
  measure_bytes(state, "cpu", 3 * 4 * n, triad, [&] { return equal(z, result); });
}

// The same traffic through the library, on any device.
void TensorCopy(benchmark::State& state, Device device) {
  use_threads(state);
  const int64_t n = array_bytes(device) / 4;
  const Tensor from = full({n}, 3.0, {.device = device});
  Tensor to = zeros({n}, {.device = device});
  measure_bytes(
      state, device, 2 * 4 * n, [&] { to.copy_(from); }, [&] { return equal(from, to); });
}

void TensorAdd(benchmark::State& state, Device device) {
  use_threads(state);
  const int64_t n = array_bytes(device) / 4;
  const Tensor a = full({n}, 1.0, {.device = device}), b = full({n}, 2.0, {.device = device});
  const Tensor result = full({n}, 3.0, {.device = device});
  Tensor c;
  measure_bytes(
      state, device, 3 * 4 * n, [&] { c = add(a, b); }, [&] { return equal(c, result); });
}

struct MatmulCase {
  const char* name;
  DType dtype;
  int64_t cpu_size, gpu_size;
  double tolerance;  // of an element; they are about sqrt(size)
};
// float64 has no vendor engine on the cpu: a smaller one there. float16 would be rounded and computed in
// float32.
constexpr MatmulCase kMatmuls[] = {{"float32", kFloat32, 2048, 8192, 1e-2},
                                   {"bfloat16", kBFloat16, 2048, 8192, 2},
                                   {"float16", kFloat16, 0, 8192, 0.5},
                                   {"float64", kFloat64, 1024, 4096, 1e-9}};

// Largest error of the first rows, against float64 on the cpu.
double error_of(const Tensor& a, const Tensor& b, const Tensor& c) {
  const Tensor exact = matmul(a.narrow(0, 0, 4).cpu().to(kFloat64), b.cpu().to(kFloat64));
  return (c.narrow(0, 0, 4).cpu().to(kFloat64) - exact).abs().max().item<double>();
}

void Matmul(benchmark::State& state, Device device, const MatmulCase& c) {
  use_threads(state);
  const int64_t n = device.is_cpu() ? c.cpu_size : c.gpu_size;
  const Tensor a = randn({n, n}, c.dtype, device), b = randn({n, n}, c.dtype, device);
  NoGradGuard no_grad;
  Tensor y = matmul(a, b);
  if (!(error_of(a, b, y) <= c.tolerance)) return state.SkipWithError("wrong result before timing");
  if (timing::time_on(state, device, [&] { y = matmul(a, b); }) == 0) return;
  if (!(error_of(a, b, y) <= c.tolerance)) return state.SkipWithError("wrong result after timing");
  state.counters["checked"] = 1;
  timing::set_flops(state, 2.0 * static_cast<double>(n) * n * n);
}

void with_threads(benchmark::internal::Benchmark* b, Device device) {
  timing::timed_on(device, b->ArgName("threads")->Unit(benchmark::kMillisecond));
  if (!device.is_cpu()) {
    b->Arg(0);
    return;
  }
  b->Arg(1);
  if (get_num_threads() > 1) b->Arg(get_num_threads());
}

void add_device(Device device) {
  auto name = [&](const std::string& what) {
    return str(what, "/", device.type() == DeviceType::cpu ? "cpu" : str("cuda", device.index()));
  };
  auto add_case = [&](const std::string& what, auto function) {
    with_threads(benchmark::RegisterBenchmark(name(what).c_str(), function), device);
  };
  add_case("TensorCopy", [=](benchmark::State& state) { TensorCopy(state, device); });
  add_case("TensorAdd", [=](benchmark::State& state) { TensorAdd(state, device); });
  for (const MatmulCase& c : kMatmuls)
    if (!device.is_cpu() || c.cpu_size > 0)
      add_case(str("Matmul/", c.name), [=](benchmark::State& state) { Matmul(state, device, c); });
}

const bool registered = [] {
  with_threads(benchmark::RegisterBenchmark("Copy/cpu", Copy), "cpu");
  with_threads(benchmark::RegisterBenchmark("Triad/cpu", Triad), "cpu");
  add_device("cpu");
  for (int i = 0; i < device_count(DeviceType::cuda); ++i) add_device({DeviceType::cuda, i});
  benchmark::AddCustomContext("skipped_sim", "simulated: its times are the cpu's and no speed of a device");
  benchmark::AddCustomContext("skipped_float16_cpu", "rounds and computes in float32: no speed of float16");
  return true;
}();

}  // namespace
