// Lesson 04: the train steps of both networks beside their floors, and an epoch with the share of time spent
// waiting for data. On a GPU the CNN's step, with what it launches and how often the host waits: never.
#include <common/counted.h>
#include <common/model_work.h>
#include <common/train_steps.h>
#include <lessons/common/models.h>

#include <chrono>
#include <string_view>

namespace {

using namespace gradus;

using MakeStep = std::function<std::unique_ptr<floors::TrainStep>()>;

// A step of `name`, which is made once for each number of threads. What the library launches is counted; a
// floor launches nothing.
void run(benchmark::State& state, const char* name, int64_t batch, double flops, const MakeStep& make) {
  floors::TrainStep& step = floors::prepared(name, static_cast<int>(state.range(0)), make);
  if (!std::string_view(name).ends_with("floor")) timing::count_work(state, {}, [&] { step.run(); });
  for (auto _ : state) step.run();
  state.counters["checked"] = 1;  // prepared() has seen the loss fall
  state.SetItemsProcessed(state.iterations() * batch);
  timing::set_flops(state, flops * static_cast<double>(batch));
}

void CnnStep(benchmark::State& state) {
  run(state, "CNN", 256, work::kCnnFlops, [] { return floors::library_cnn(256, true); });
}
void CnnStepRowMajor(benchmark::State& state) {
  run(state, "CNN row-major", 256, work::kCnnFlops, [] { return floors::library_cnn(256, false); });
}
void CnnStepFloor(benchmark::State& state) {
  run(state, "CNN floor", 256, work::kCnnFlops, [] { return floors::cnn(256); });
}
void SmallNetStep(benchmark::State& state) {
  run(state, "16-32-1", 32, work::kSmallNetFlops, [] { return floors::library_small_net(32); });
}
void SmallNetStepFloor(benchmark::State& state) {
  run(state, "16-32-1 floor", 32, work::kSmallNetFlops, [] { return floors::mlp(32, {16, 32, 1}); });
}

// Counts and checks are of a warm step; a GPU's times are between events, without the host's wait for a loss.
void CnnStepOn(benchmark::State& state, Device device, bool channels_last) {
  constexpr int64_t kBatch = 256;
  const auto step = floors::library_cnn(kBatch, channels_last, device);
  const float first = step->run();
  for (int i = 0; i < 5; ++i) step->run();
  if (!(step->run() < first)) return state.SkipWithError("wrong: the loss does not fall");
  timing::count_work(state, device, [&] { step->step(); });
  const Stats before = stats(device);
  step->step();
  const int64_t waits = (stats(device) - before).synchronizations;
  if (timing::time_on(state, device, [&] { step->step(); }) == 0) return;
  if (!(step->run() < first)) return state.SkipWithError("wrong: the loss has risen");
  state.counters["checked"] = 1;
  state.counters["host_waits"] = static_cast<double>(waits);
  state.SetItemsProcessed(state.iterations() * kBatch);
  timing::set_flops(state, work::kCnnFlops * kBatch);
}

// An epoch over 5,120 made images: what training sees, loader included.
void CnnEpoch(benchmark::State& state) {
  set_num_threads(static_cast<int>(state.range(0)));
  static const ImageData data = make_digit_data(5120, 1);
  lesson::CNN model;
  optim::Adam optimizer(model.parameters());
  const Transform transform =
      transforms::Compose({transforms::ToTensor(), transforms::Normalize({0.5f}, {0.5f})});
  DataLoader loader(
      TransformedDataset(std::make_shared<TensorDataset>(data.train.images, data.train.labels), transform),
      {.batch_size = 256, .shuffle = true, .num_workers = static_cast<int>(state.range(1))});
  using Clock = std::chrono::steady_clock;
  double waited = 0, total = 0;
  for (auto _ : state) {
    const auto start = Clock::now();
    auto asked = start;
    for (auto& [images, labels] : loader) {
      waited += std::chrono::duration<double>(Clock::now() - asked).count();
      optimizer.zero_grad();
      cross_entropy(model(images.to(MemoryFormat::channels_last)), labels).backward();
      optimizer.step();
      asked = Clock::now();
    }
    total += std::chrono::duration<double>(Clock::now() - start).count();
  }
  state.SetItemsProcessed(state.iterations() * data.train.size());
  state.counters["waiting_share"] = waited / total;
}

void by_threads(benchmark::internal::Benchmark* b) { b->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime(); }
BENCHMARK(CnnStep)->Apply(by_threads)->Unit(benchmark::kMillisecond);
BENCHMARK(CnnStepFloor)->Apply(by_threads)->Unit(benchmark::kMillisecond);
BENCHMARK(CnnStepRowMajor)->Apply(by_threads)->Unit(benchmark::kMillisecond);
BENCHMARK(SmallNetStep)->Apply(by_threads)->Unit(benchmark::kMicrosecond);
BENCHMARK(SmallNetStepFloor)->Apply(by_threads)->Unit(benchmark::kMicrosecond);
BENCHMARK(CnnEpoch)
    ->ArgNames({"threads", "workers"})
    ->Args({2, 0})
    ->Args({2, 2})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

[[maybe_unused]] const bool registered = [] {
  if (!is_available(DeviceType::cuda)) return false;
  const Device device(DeviceType::cuda, 0);
  for (const bool channels_last : {true, false})
    timing::timed_on(device, benchmark::RegisterBenchmark(
                                 channels_last ? "CnnStep/cuda0" : "CnnStepRowMajor/cuda0",
                                 [=](benchmark::State& state) { CnnStepOn(state, device, channels_last); }))
        ->Unit(benchmark::kMillisecond);
  return true;
}();

}  // namespace
