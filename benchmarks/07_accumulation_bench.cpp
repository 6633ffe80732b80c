// Lesson 07: time and peak memory of one optimizer step on 2048 rows, taken in 1 to 64 micro-batches.
#include <common/counted.h>
#include <gradus/gradus.h>

namespace {

using namespace gradus;

constexpr int64_t kRows = 2048, kWidth = 512;

class AccumulatedStep {
 public:
  AccumulatedStep(int64_t steps, Device device) : steps_(steps) {
    manual_seed(0);
    model_ = nn::Sequential(nn::Linear(kWidth, kWidth), nn::ReLU(), nn::Linear(kWidth, kWidth), nn::ReLU(),
                            nn::Linear(kWidth, 10));
    model_->to(device);
    optimizer_ = std::make_unique<optim::SGD>(model_->parameters(), optim::SGDOptions{.lr = 0.01});
    x_ = randn({kRows, kWidth}).to(device);
    labels_ = randint(10, {kRows}).to(device);
  }

  void backward() {
    optimizer_->zero_grad();
    const int64_t size = kRows / steps_;
    for (int64_t k = 0; k < steps_; ++k) {
      const Tensor loss =
          cross_entropy(model_(x_.narrow(0, k * size, size)), labels_.narrow(0, k * size, size));
      (loss / static_cast<double>(steps_)).backward();
    }
  }
  void step() {
    backward();
    optimizer_->step();
  }
  Tensor gradient() const { return model_->parameters()[0].grad().clone(); }

 private:
  int64_t steps_;
  nn::Sequential model_{nn::ReLU()};
  std::unique_ptr<optim::SGD> optimizer_;
  Tensor x_, labels_;
};

// The gradient is that of the whole batch, to rounding.
bool is_right(AccumulatedStep& step, Device device) {
  AccumulatedStep whole(1, device);
  whole.backward();
  step.backward();
  const double scale = whole.gradient().abs().max().item<double>();
  return (whole.gradient() - step.gradient()).abs().max().item<double>() <= 1e-5 * scale;
}

void Step(benchmark::State& state, int64_t steps, Device device) {
  AccumulatedStep step(steps, device);
  if (!is_right(step, device)) return state.SkipWithError("wrong: not the gradient of the whole batch");
  timing::count_work(state, device, [&] { step.step(); });
  if (timing::time_on(state, device, [&] { step.step(); }) == 0) return;
  state.counters["checked"] = 1;
  state.SetItemsProcessed(state.iterations() * kRows);
  timing::set_flops(state, (3 * 2.0 * (2 * kWidth * kWidth + kWidth * 10) - 2.0 * kWidth * kWidth) * kRows);
}

[[maybe_unused]] const bool registered = [] {
  for (const DeviceType type : {DeviceType::cpu, DeviceType::cuda}) {
    if (!is_available(type)) continue;
    const Device device(type);
    for (const int64_t steps : {1, 2, 4, 8, 16, 64})
      timing::timed_on(device, benchmark::RegisterBenchmark(
                                   str("Step/micro_batches:", steps, "/", timing::name_of(device)).c_str(),
                                   [=](benchmark::State& state) { Step(state, steps, device); }))
          ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
