// Lesson 03: SimpleNet by batch size, forward alone and with backward; its train step beside the floor.
#include <benchmark/benchmark.h>
#include <common/train_steps.h>
#include <lessons/common/models.h>

namespace {

using namespace gradus;

void Forward(benchmark::State& state) {
  set_num_threads(static_cast<int>(state.range(1)));
  lesson::SimpleNet model;
  const Tensor x = randn({state.range(0), 784});
  NoGradGuard no_grad;
  for (auto _ : state) benchmark::DoNotOptimize(model(x).raw_data());
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
void InferenceForward(benchmark::State& state) {
  set_num_threads(static_cast<int>(state.range(1)));
  lesson::SimpleNet model;
  const Tensor x = randn({state.range(0), 784});
  InferenceMode inference;
  for (auto _ : state) benchmark::DoNotOptimize(model(x).raw_data());
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
void ForwardBackward(benchmark::State& state) {
  set_num_threads(static_cast<int>(state.range(1)));
  lesson::SimpleNet model;
  const Tensor x = randn({state.range(0), 784});
  for (auto _ : state) {
    model.zero_grad();
    model(x).sum().backward();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
void by_batch(benchmark::internal::Benchmark* b) {
  for (int64_t threads : {1, 2})
    for (int64_t batch : {1, 8, 32, 128, 512, 2048}) b->Args({batch, threads});
  b->ArgNames({"batch", "threads"})->UseRealTime()->MinTime(0.05);  // 36 cases
}
BENCHMARK(Forward)->Apply(by_batch);
BENCHMARK(InferenceForward)->Apply(by_batch);
BENCHMARK(ForwardBackward)->Apply(by_batch);

void TrainStep(benchmark::State& state) {
  auto& step = floors::prepared("SimpleNet", static_cast<int>(state.range(0)),
                                [] { return floors::library_simple_net(32); });
  for (auto _ : state) step.run();
}
void TrainStepFloor(benchmark::State& state) {
  auto& step = floors::prepared("SimpleNet floor", static_cast<int>(state.range(0)), [] {
    return floors::mlp(32, {784, 256, 128, 10});
  });
  for (auto _ : state) step.run();
}
BENCHMARK(TrainStep)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(TrainStepFloor)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
