// Lesson 03: SimpleNet by batch size, forward alone and with backward, on the cpu and on each device; its
// train step beside the floor. Inputs and model are on the device beforehand. Cases of the simulated device
// are called SIMULATED: they say what it costs here, nothing about a GPU.
#include <common/counted.h>
#include <common/model_work.h>
#include <common/train_steps.h>
#include <lessons/common/models.h>

#include <functional>

namespace {

using namespace gradus;

struct Model {
  Model(int64_t batch, Device device) : x(randn({batch, 784}, {.device = device})) { net.to(device); }
  Tensor forward() { return net(x); }
  void forward_backward() {
    net.zero_grad();
    forward().sum().backward();
  }
  lesson::SimpleNet net;
  Tensor x;
};

// Arguments: the batch and, on the cpu, the threads. Guard is what the run is under, and the model is not.
template <class Guard = int>
void time_model(benchmark::State& state, Device device, double flops,
                const std::function<void(Model&)>& run) {
  if (device.is_cpu()) set_num_threads(static_cast<int>(state.range(1)));
  const int64_t batch = state.range(0);
  Model model(batch, device);
  [[maybe_unused]] const Guard guard{};
  const auto work = [&] { run(model); };
  timing::count_work(state, device, work);
  if (timing::time_on(state, device, work) == 0) return;
  state.SetItemsProcessed(state.iterations() * batch);
  timing::set_flops(state, flops * static_cast<double>(batch));
}

void Forward(benchmark::State& state, Device device) {
  time_model<NoGradGuard>(state, device, work::kSimpleNetForwardFlops,
                          [](Model& m) { benchmark::DoNotOptimize(m.forward().impl()); });
}
void InferenceForward(benchmark::State& state, Device device) {
  time_model<InferenceMode>(state, device, work::kSimpleNetForwardFlops,
                            [](Model& m) { benchmark::DoNotOptimize(m.forward().impl()); });
}
void ForwardBackward(benchmark::State& state, Device device) {
  time_model(state, device, work::kSimpleNetFlops, [](Model& m) { m.forward_backward(); });
}

void register_device(Device device) {
  const auto add = [&](const char* what, auto function) {
    auto* b = benchmark::RegisterBenchmark(str(what, "/", timing::name_of(device)).c_str(), function, device);
    timing::timed_on(device, b);
    if (!device.is_cuda()) b->MinTime(0.05);  // there a row's length is the GPU's affair
    if (device.is_cpu())
      b->ArgNames({"batch", "threads"})->ArgsProduct({{1, 8, 32, 128, 512, 2048}, {1, 2}});
    else
      b->ArgNames({"batch"})->ArgsProduct({{1, 8, 32, 128, 512, 2048}});
  };
  add("Forward", Forward);
  if (device.is_cpu()) add("InferenceForward", InferenceForward);
  add("ForwardBackward", ForwardBackward);
}

void TrainStep(benchmark::State& state) {
  auto& step = floors::prepared("SimpleNet", static_cast<int>(state.range(0)),
                                [] { return floors::library_simple_net(32); });
  timing::count_work(state, {}, [&] { step.run(); });
  for (auto _ : state) step.run();
  timing::set_flops(state, 32 * work::kSimpleNetFlops);
}
void TrainStepFloor(benchmark::State& state) {
  auto& step = floors::prepared("SimpleNet floor", static_cast<int>(state.range(0)), [] {
    return floors::mlp(32, {784, 256, 128, 10});
  });
  for (auto _ : state) step.run();
  timing::set_flops(state, 32 * work::kSimpleNetFlops);
}
BENCHMARK(TrainStep)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(TrainStepFloor)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();

[[maybe_unused]] const bool registered = [] {
  for (const DeviceType type : {DeviceType::cpu, DeviceType::sim, DeviceType::cuda})
    if (is_available(type)) register_device(Device(type));
  return true;
}();

}  // namespace
