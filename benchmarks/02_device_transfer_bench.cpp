// Lesson 02: matrix products by size on the cpu and on each device, with and without the way there and back;
// copies by size beside memcpy; and what a launch costs: one that does nothing, and the smallest operation.
//
// Products go to n = 2048, and to 5000 where there is a GPU or GRADUS_BENCH_LARGE=1 asks for it. Cases of the
// simulated device are called SIMULATED: they say what it costs here, nothing about a GPU.
#include <common/counted.h>
#include <gradus/gradus.h>
#include <gradus/runtime/device_info.h>
#include <gradus/runtime/launch.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace {

using namespace gradus;

// Two matrices on the cpu and on a device, and what their product must be.
struct Matrices {
  Matrices(int64_t n, Device device)
      : a(randn({n, n})), b(randn({n, n})), on_device_a(a.to(device)), on_device_b(b.to(device)) {
    expected = matmul(a, b);
    largest = expected.abs().max().item<double>();
  }
  bool right(const Tensor& product) const {
    return (product.cpu() - expected).abs().max().item<double>() <= 1e-3 * largest;
  }
  Tensor a, b, on_device_a, on_device_b, expected;
  double largest;
};

// Kept: a case is run several times, and making them takes longer than multiplying them.
const Matrices& matrices(int64_t n, Device device) {
  static std::map<std::pair<int64_t, std::string>, Matrices> made;
  return made.try_emplace({n, to_string(device)}, n, device).first->second;
}

// Times `product()` and checks it before and after.
void time_product(benchmark::State& state, Device device, const Matrices& m,
                  const std::function<Tensor()>& product) {
  timing::count_work(state, device, product);
  if (!m.right(product())) return state.SkipWithError("wrong product before timing");
  for (auto _ : state) benchmark::DoNotOptimize(product().raw_data());
  if (!m.right(product())) return state.SkipWithError("wrong product after timing");
  state.counters["checked"] = 1;  // the results file's "check": "passed"
  const auto n = static_cast<double>(state.range(0));
  timing::set_flops(state, 2 * n * n * n);
}

void Matmul(benchmark::State& state, Device device) {
  const Matrices& m = matrices(state.range(0), device);
  time_product(state, device, m, [&] {
    Tensor y = matmul(m.on_device_a, m.on_device_b);
    synchronize(device);
    return y;
  });
}

// Both matrices go to the device and the product comes back.
void MatmulThereAndBack(benchmark::State& state, Device device) {
  const Matrices& m = matrices(state.range(0), device);
  time_product(state, device, m, [&] { return matmul(m.a.to(device), m.b.to(device)).cpu(); });
}

Tensor bytes_on_host(int64_t bytes, Device device, bool pinned) {
  const Tensor t =
      randint(256, {1024}, {.dtype = kUInt8}).expand({bytes / 1024, 1024}).contiguous().view({bytes});
  return pinned ? t.pin_memory(device) : t;
}

// One copy, waited for, between memory that exists.
void time_copy(benchmark::State& state, const Tensor& to, const Tensor& from, Device device) {
  Tensor target = to;
  NoGradGuard no_grad;
  target.zero_();
  timing::count_work(state, device, [&] { target.copy_(from, true); });
  for (auto _ : state) {
    target.copy_(from, true);
    synchronize(device);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
  if (!equal(target.cpu(), from.cpu())) return state.SkipWithError("wrong: the copy differs from its source");
  state.counters["checked"] = 1;
}

void HostToDevice(benchmark::State& state, Device device, bool pinned) {
  const Tensor host = bytes_on_host(state.range(0), device, pinned);
  time_copy(state, empty({state.range(0)}, kUInt8, device), host, device);
}

void DeviceToHost(benchmark::State& state, Device device, bool pinned) {
  const Tensor host = bytes_on_host(state.range(0), device, pinned);
  time_copy(state, host, host.to(device), device);
}

void Memcpy(benchmark::State& state) {
  const Tensor from = bytes_on_host(state.range(0), {}, false), to = zeros_like(from);
  for (auto _ : state) {
    std::memcpy(to.raw_data(), from.raw_data(), from.nbytes());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
  if (!equal(from, to)) return state.SkipWithError("wrong: the copy differs from its source");
  state.counters["checked"] = 1;
}

struct NothingArgs {
  TensorArg x;
  static constexpr auto operands = std::tuple{inout(&NothingArgs::x)};
};
void nothing(const NothingArgs&, const Stream&) {}
constexpr auto kNothing = KernelTable<NothingArgs>("nothing").host(kAllTypes, &nothing);

// Launches in rows of 1000, each row waited for; the time is that of one.
void EmptyLaunch(benchmark::State& state, Device device) {
  constexpr int kRow = 1000;
  const NothingArgs args{zeros({1}, {.device = device}).arg()};
  const Stream stream = current_stream(device);
  while (state.KeepRunningBatch(kRow)) {
    for (int i = 0; i < kRow; ++i) launch(kNothing, DType::float32, stream, args);
    synchronize(device);
  }
}

// Additions to one number, in rows of 1000 as above: what an operation costs beside its work, on any device.
void SmallestOp(benchmark::State& state, Device device) {
  constexpr int kRow = 1000;
  NoGradGuard no_grad;
  Tensor x = zeros({1}, {.device = device});
  while (state.KeepRunningBatch(kRow)) {
    for (int i = 0; i < kRow; ++i) x.add_(1);
    synchronize(device);
  }
}

void by_n(benchmark::internal::Benchmark* b) {
  for (int64_t n : {64, 128, 256, 512, 1024, 2048}) b->Arg(n);
  if (is_available(DeviceType::cuda) || std::getenv("GRADUS_BENCH_LARGE")) b->Arg(4096)->Arg(5000);
  b->ArgName("n")->UseRealTime()->Unit(benchmark::kMicrosecond)->MinTime(0.05);
}

void by_bytes(benchmark::internal::Benchmark* b) {
  b->RangeMultiplier(4)->Range(1 << 10, 64 << 20)->ArgName("bytes");
  b->UseRealTime()->Unit(benchmark::kMicrosecond)->MinTime(0.05);
}

void register_device(Device device) {
  const auto add = [&](const std::string& what, auto function, auto... arguments) {
    return benchmark::RegisterBenchmark((what + "/" + timing::name_of(device)).c_str(), function, device,
                                        arguments...);
  };
  by_n(add("Matmul", Matmul));
  add("SmallestOp", SmallestOp)->UseRealTime();
  if (device.is_cpu()) return;
  by_n(add("MatmulThereAndBack", MatmulThereAndBack));
  for (const bool pinned : {false, true}) {
    const std::string memory = pinned ? "_pinned" : "_pageable";
    by_bytes(add("HostToDevice" + memory, HostToDevice, pinned));
    by_bytes(add("DeviceToHost" + memory, DeviceToHost, pinned));
  }
  if (device.is_sim()) add("EmptyLaunch", EmptyLaunch)->UseRealTime();
}

[[maybe_unused]] const bool registered = [] {
  for (const DeviceType type : {DeviceType::cpu, DeviceType::sim, DeviceType::cuda})
    if (is_available(type)) register_device(Device(type));
  by_bytes(benchmark::RegisterBenchmark("Memcpy/cpu", Memcpy));
  return true;
}();

}  // namespace
