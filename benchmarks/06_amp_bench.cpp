// Lesson 06: a train step in float32, bfloat16 and float16 by size of the model, with the memory its tensors
// need; and what autocast itself costs where every weight is already converted.
#include <common/counted.h>
#include <common/model_work.h>
#include <lessons/common/models.h>

#include <cmath>
#include <memory>

namespace {

using namespace gradus;

// One model with a fixed batch, Adam, and what the dtype asks for. float32 is the same program without scope
// and scaler.
class AmpStep {
 public:
  AmpStep(std::shared_ptr<nn::Module> model, Tensor x, Tensor target, DType dtype)
      : model_(std::move(model)),
        optimizer_(model_->parameters()),
        x_(std::move(x)),
        target_(std::move(target)),
        scaler_({.enabled = dtype == kFloat16}),
        options_{.dtype = dtype == kFloat32 ? kBFloat16 : dtype, .enabled = dtype != kFloat32} {}

  Tensor step() {
    optimizer_.zero_grad();
    Tensor loss;
    {
      amp::autocast scope(x_.device().type(), options_);
      const Tensor y = model_->forward(x_);
      loss = target_.is_floating_point() ? mse_loss(y, target_) : cross_entropy(y, target_);
    }
    scaler_.scale(loss).backward();
    scaler_.step(optimizer_);
    scaler_.update();
    return loss;
  }

 private:
  std::shared_ptr<nn::Module> model_;
  optim::Adam optimizer_;
  Tensor x_, target_;
  amp::GradScaler scaler_;
  amp::AutocastOptions options_;
};

constexpr int64_t kWide = 4096;

struct Size {
  const char* name;
  int64_t batch;
  double flops;  // of a step and a sample
  std::shared_ptr<nn::Module> (*model)();
  Tensor (*input)(int64_t batch);
  Tensor (*target)(int64_t batch);
};

const Size kSizes[] = {
    {"16_32_1", 32, work::kSmallNetFlops,
     []() -> std::shared_ptr<nn::Module> { return lesson::small_net().ptr(); },
     [](int64_t n) {
       return randn({n, 16});
     },
     [](int64_t n) {
       return randn({n, 1});
     }},
    {"SimpleNet", 256, work::kSimpleNetFlops,
     []() -> std::shared_ptr<nn::Module> { return std::make_shared<lesson::SimpleNet>(); },
     [](int64_t n) {
       return randn({n, 784});
     },
     [](int64_t n) { return work::labels(n); }},
    {"CNN", 256, work::kCnnFlops,
     []() -> std::shared_ptr<nn::Module> { return std::make_shared<lesson::CNN>(); },
     [](int64_t n) {
       return randn({n, 1, 28, 28}).to(MemoryFormat::channels_last);
     },
     [](int64_t n) { return work::labels(n); }},
    {"Wide", 512, 3 * 3 * 2.0 * kWide* kWide - 2.0 * kWide* kWide,
     []() -> std::shared_ptr<nn::Module> {
       return nn::Sequential(nn::Linear(kWide, kWide), nn::ReLU(), nn::Linear(kWide, kWide), nn::ReLU(),
                             nn::Linear(kWide, kWide))
           .ptr();
     },
     [](int64_t n) {
       return randn({n, kWide});
     },
     [](int64_t n) {
       return randn({n, kWide});
     }},
};

void Step(benchmark::State& state, const Size& size, DType dtype, Device device) {
  manual_seed(0);
  const auto model = size.model();
  model->to(device);
  AmpStep step(model, size.input(size.batch).to(device), size.target(size.batch).to(device), dtype);
  const double first = step.step().item<double>();
  timing::count_work(state, device, [&] { step.step(); });
  double after = step.step().item<double>();
  for (int i = 0; i < 10 && !(after < first); ++i) after = step.step().item<double>();  // dropout is noisy
  if (!(after < first)) return state.SkipWithError("wrong: the loss does not fall");
  if (timing::time_on(state, device, [&] { step.step(); }) == 0) return;
  if (!std::isfinite(step.step().item<double>())) return state.SkipWithError("wrong: the loss is not finite");
  state.counters["checked"] = 1;
  state.SetItemsProcessed(state.iterations() * size.batch);
  timing::set_flops(state, size.flops * static_cast<double>(size.batch));
}

// The forward pass of a model whose parameters autocast has converted, beside one that is bfloat16 itself:
// the difference is the price of scope and look-ups.
void Forward(benchmark::State& state, bool autocast, int64_t width) {
  manual_seed(0);
  nn::Sequential model(nn::Linear(width, width), nn::ReLU(), nn::Linear(width, width));
  if (!autocast) model->to(kBFloat16);
  const Tensor x = randn({64, width}).to(kBFloat16);
  amp::autocast around(DeviceType::cpu, {.enabled = autocast});  // keeps the converted weights
  const auto work = [&] {
    amp::autocast scope(DeviceType::cpu, {.enabled = autocast});
    return model(x);
  };
  if (work().dtype() != kBFloat16) return state.SkipWithError("wrong: the output is not bfloat16");
  for (auto _ : state) benchmark::DoNotOptimize(work());
  state.counters["checked"] = 1;
}

[[maybe_unused]] const bool registered = [] {
  for (const DeviceType type : {DeviceType::cpu, DeviceType::cuda}) {
    if (!is_available(type)) continue;
    const Device device(type);
    for (const Size& size : kSizes)
      for (const DType dtype : {kFloat32, kBFloat16, kFloat16})
        timing::timed_on(
            device,
            benchmark::RegisterBenchmark(
                str("Step/", size.name, "/", to_string(dtype), "/", timing::name_of(device)).c_str(),
                [&size, dtype, device](benchmark::State& state) { Step(state, size, dtype, device); }))
            ->Unit(benchmark::kMillisecond);
  }
  for (const int64_t width : {256, 1024})
    for (const bool autocast : {true, false})
      benchmark::RegisterBenchmark(
          str("Forward/", autocast ? "autocast" : "bfloat16_model", "/", width).c_str(),
          [=](benchmark::State& state) { Forward(state, autocast, width); })
          ->UseRealTime()
          ->Unit(benchmark::kMicrosecond);
  return true;
}();

}  // namespace
