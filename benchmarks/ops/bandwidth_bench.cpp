// How near single operations come to the bandwidth of a copy: percent_of_copy, measured in the same case with
// as many bytes. Bytes are those that an operation must move: each operand once. "cold": with an empty L2
// cache, as where the data come from elsewhere; "hot": what the time before left in it, which for 64 MiB may
// be much.
#include <common/device_timer.h>
#include <common/gpu_cases.h>
#include <gradus/gradus.h>

namespace {

using namespace gradus;
using timing::Caches;

constexpr int64_t kCols = 1024, kBlock = 64;  // rows that repeat themselves

// Two tensors [rows, 1024], each a block of 64 rows again and again: what an operation must give follows from
// the blocks.
struct Operands {
  Tensor x, y;
};
struct Input {
  Input(int64_t bytes, Device device)
      : repeats(bytes / (4 * kCols * kBlock)),
        block{randn({kBlock, kCols}), randn({kBlock, kCols})},
        whole{repeated(block.x, device), repeated(block.y, device)} {}
  Tensor repeated(const Tensor& rows, Device device) const {
    const Tensor all = rows.to(device).expand({repeats, kBlock, kCols}).contiguous();
    return all.view({repeats * kBlock, kCols});
  }
  int64_t repeats;
  Operands block, whole;  // the blocks are on the cpu
};
using Run = Tensor (*)(const Operands&);

// The first rows and the last are what the operation gives for the block.
bool rows_right(const Input& in, const Tensor& got, const Tensor& want) {
  const int64_t rows = got.sizes()[0];
  return allclose(got.narrow(0, 0, kBlock).cpu(), want, 1e-4, 1e-5) &&
         allclose(got.narrow(0, rows - kBlock, kBlock).cpu(), want, 1e-4, 1e-5) &&
         rows == in.repeats * kBlock;
}

// Sums of many numbers: by the size of the largest.
bool sums_right(const Tensor& got, const Tensor& want) {
  const Tensor error = (got.cpu().to(kFloat64) - want).abs();
  return error.max().item<double>() <= 1e-4 * want.abs().max().item<double>() + 1e-2;
}

struct Operation {
  const char* name;
  double traffic;  // bytes moved by bytes of x
  Run run;
  bool (*right)(const Input& in, const Tensor& got, Run run);
};

bool by_rows(const Input& in, const Tensor& got, Run run) { return rows_right(in, got, run(in.block)); }
bool by_sums(const Input& in, const Tensor& got, Run run) {
  return sums_right(got, run({in.block.x.to(kFloat64), {}}) * static_cast<double>(in.repeats));
}
bool by_row_sums(const Input& in, const Tensor& got, Run run) {
  const Tensor want = run({in.block.x.to(kFloat64), {}});
  return sums_right(got.narrow(0, 0, kBlock), want) &&
         sums_right(got.narrow(0, got.sizes()[0] - kBlock, kBlock), want);
}

const Operation kOperations[] = {
    {"add", 3, [](const Operands& o) { return add(o.x, o.y); }, by_rows},
    {"relu", 2, [](const Operands& o) { return relu(o.x); }, by_rows},
    {"gelu", 2, [](const Operands& o) { return gelu(o.x); }, by_rows},
    {"sum_all", 1, [](const Operands& o) { return o.x.sum(); }, by_sums},
    {"sum_rows", 1, [](const Operands& o) { return o.x.sum({1}); }, by_row_sums},
    {"sum_columns", 1, [](const Operands& o) { return o.x.sum({0}); }, by_sums},
    {"softmax", 2, [](const Operands& o) { return softmax(o.x, 1); }, by_rows},
    {"layer_norm", 2, [](const Operands& o) { return layer_norm(o.x, {kCols}); }, by_rows},
};

// Seconds of a copy that moves as many bytes: half of them are read.
double copy_seconds(double bytes, Device device, Caches caches) {
  const auto n = static_cast<int64_t>(bytes / 8);
  const Tensor from = full({n}, 1.0, {.device = device});
  Tensor to = zeros({n}, {.device = device});
  return timing::seconds_of(
      device, [&] { to.copy_(from); }, caches);
}

void report(benchmark::State& state, double bytes, Device device, Caches caches, double seconds) {
  state.counters["checked"] = 1;
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
  const double copy = copy_seconds(bytes, device, caches);
  if (copy > 0) state.counters["percent_of_copy"] = 100 * copy / seconds;
}

void Bandwidth(benchmark::State& state, const Operation& op, Device device, Caches caches) {
  NoGradGuard no_grad;
  const Input in(state.range(0), device);
  Tensor y = op.run(in.whole);
  if (!op.right(in, y, op.run)) return state.SkipWithError("wrong result before timing");
  const double seconds = timing::time_on(
      state, device, [&] { y = op.run(in.whole); }, caches);
  if (seconds == 0) return;
  if (!op.right(in, y, op.run)) return state.SkipWithError("wrong result after timing");
  report(state, op.traffic * static_cast<double>(state.range(0)), device, caches, seconds);
}

// Reads the parameter, its gradient and two moments, and writes all but the gradient.
void Adam(benchmark::State& state, Device device, Caches caches) {
  Tensor p = zeros({state.range(0) / 4}, {.device = device}).requires_grad_();
  p.set_grad(full({state.range(0) / 4}, 2.0, {.device = device}));
  optim::Adam optimizer({p}, {.lr = 0.5});
  optimizer.step();
  // With a gradient that stays the same, each step is one of lr.
  const auto right = [&](double low, double high) {
    return p.detach().min().item<double>() >= low && p.detach().max().item<double>() <= high;
  };
  if (!right(-0.5001, -0.4999)) return state.SkipWithError("wrong result before timing");
  const double seconds = timing::time_on(
      state, device, [&] { optimizer.step(); }, caches);
  if (seconds == 0) return;
  if (!right(-INFINITY, -0.9)) return state.SkipWithError("wrong result after timing");
  report(state, 7.0 * static_cast<double>(state.range(0)), device, caches, seconds);
}

void add_cases(Device device, Caches caches) {
  const std::string where = device.is_cuda() ? (caches == Caches::cold ? "cold/cuda0" : "hot/cuda0") : "cpu";
  const auto by_bytes = [&](benchmark::internal::Benchmark* b) {
    for (const int64_t mib : {64, 256, 1024})
      if (device.is_cuda() || mib == 64) b->Arg(mib << 20);
    timing::timed_on(device, b->ArgName("bytes")->Unit(benchmark::kMillisecond));
  };
  for (const Operation& op : kOperations)
    by_bytes(benchmark::RegisterBenchmark(
        str(op.name, "/", where).c_str(),
        [=, &op](benchmark::State& state) { Bandwidth(state, op, device, caches); }));
  by_bytes(benchmark::RegisterBenchmark(str("adam/", where).c_str(),
                                        [=](benchmark::State& state) { Adam(state, device, caches); }));
}

[[maybe_unused]] const bool registered = [] {
  add_cases("cpu", Caches::hot);
  if (!timing::have_gpu("bandwidth")) return false;
  const Device device(DeviceType::cuda, 0);
  add_cases(device, Caches::hot);
  add_cases(device, Caches::cold);
  return true;
}();

}  // namespace
