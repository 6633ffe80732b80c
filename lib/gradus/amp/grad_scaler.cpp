#include <gradus/amp/grad_scaler.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/compare.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/unary.h>
#include <gradus/ops/unscale.h>
#include <gradus/ops/where.h>
#include <gradus/tensor/grad_mode.h>

#include <algorithm>
#include <cmath>

namespace gradus::amp {
namespace {

void check(const GradScalerOptions& o) {
  GRADUS_CHECK(o.growth_factor > 1, "E-ARG", "GradScaler: The growth factor must be > 1.0, got ",
               o.growth_factor);
  GRADUS_CHECK(o.backoff_factor > 0 && o.backoff_factor < 1, "E-ARG",
               "GradScaler: The backoff factor must be < 1.0 and > 0, got ", o.backoff_factor);
  GRADUS_CHECK(o.init_scale > 0 && std::isfinite(o.init_scale), "E-ARG",
               "GradScaler: init_scale must be > 0 and finite, got ", o.init_scale);
  GRADUS_CHECK(o.growth_interval > 0, "E-ARG", "GradScaler: growth_interval must be > 0, got ",
               o.growth_interval);
}

Tensor number(double value, DType dtype = kFloat64) { return full({}, value, {.dtype = dtype}); }

// Gradients of one device.
struct DeviceGrads {
  Device device;
  std::vector<Tensor> grads;
};

std::vector<DeviceGrads> gradients_by_device(const optim::Optimizer& optimizer) {
  std::vector<DeviceGrads> all;
  for (size_t g = 0; g < optimizer.group_count(); ++g)
    for (const Tensor& p : optimizer.params(g)) {
      const Tensor& grad = p.grad();
      if (!grad.defined()) continue;
      GRADUS_CHECK(grad.dtype() != kFloat16, "E-DTYPE",
                   "GradScaler: Attempting to unscale FP16 gradients; one has shape ", grad.sizes(),
                   hint("keep the parameters in float32 and run the forward pass under amp::autocast"));
      auto place = std::find_if(all.begin(), all.end(),
                                [&](const DeviceGrads& d) { return d.device == grad.device(); });
      if (place == all.end()) place = all.insert(all.end(), {grad.device(), {}});
      place->grads.push_back(grad);
    }
  return all;
}

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options) : options_(options) {
  if (options.enabled) check(options);
}

GradScaler::PerOptimizer& GradScaler::state_of(const optim::Optimizer& optimizer) {
  for (PerOptimizer& state : optimizers_)
    if (state.optimizer == &optimizer) return state;
  optimizers_.push_back({&optimizer, Stage::ready, {}});
  return optimizers_.back();
}

void GradScaler::check_scaled(const char* what) const {
  GRADUS_CHECK(scale_.defined(), "E-SCALER", "GradScaler: Attempted ", what, " but nothing was scaled yet",
               hint("call scaler.scale(loss).backward() instead of loss.backward()"));
}

Tensor GradScaler::scale(const Tensor& outputs) {
  if (!options_.enabled) return outputs;
  if (!scale_.defined()) {
    NoGradGuard no_grad;
    scale_ = full({}, options_.init_scale, {.dtype = kFloat32, .device = outputs.device()});
    growth_tracker_ = full({}, first_tracker_, {.dtype = kInt64, .device = outputs.device()});
  }
  return outputs * scale_.to(outputs.device(), true);
}

void GradScaler::unscale_(optim::Optimizer& optimizer) {
  if (!options_.enabled) return;
  check_scaled("unscale_");
  PerOptimizer& state = state_of(optimizer);
  GRADUS_CHECK(state.stage != Stage::unscaled, "E-SCALER",
               "GradScaler: unscale_() has already been called on this optimizer since the last update().",
               hint("call it once an iteration, after all micro-batches' gradients are summed"));
  GRADUS_CHECK(state.stage != Stage::stepped, "E-SCALER",
               "GradScaler: unscale_() is being called after step().",
               hint("the order is scale, unscale_, clip, step, update"));
  NoGradGuard no_grad;
  const auto all = gradients_by_device(optimizer);
  const Tensor inverse = reciprocal(scale_.to(kFloat64)).to(kFloat32);
  for (const auto& [device, grads] : all) {
    state.found_inf.push_back(zeros({}, {.dtype = kFloat32, .device = device}));
    gradus::unscale_(grads, state.found_inf.back(), inverse.to(device, true));
  }
  state.stage = Stage::unscaled;
}

bool GradScaler::step(optim::Optimizer& optimizer) {
  if (!options_.enabled) {
    optimizer.step();
    return true;
  }
  check_scaled("step");
  GRADUS_CHECK(state_of(optimizer).stage != Stage::stepped, "E-SCALER",
               "GradScaler: step() has already been called since the last update().",
               hint("call scaler.update() once an iteration, after step()"));
  if (state_of(optimizer).stage == Stage::ready) unscale_(optimizer);
  PerOptimizer& state = state_of(optimizer);
  GRADUS_CHECK(!state.found_inf.empty(), "E-SCALER",
               "GradScaler: No inf checks were recorded for this optimizer: none of its parameters has a "
               "gradient",
               hint("call scaler.scale(loss).backward() before step()"));
  const bool finite = std::all_of(state.found_inf.begin(), state.found_inf.end(),
                                  [](const Tensor& found) { return found.item<float>() == 0; });
  if (finite) {
    optimizer.step();
  } else {
    ++skipped_;
  }
  state.stage = Stage::stepped;
  return finite;
}

Tensor GradScaler::found_inf() const {
  Tensor sum;
  for (const PerOptimizer& state : optimizers_)
    for (const Tensor& found : state.found_inf) {
      const Tensor here = found.to(scale_.device(), true);
      sum = sum.defined() ? sum + here : here;
    }
  GRADUS_CHECK(sum.defined(), "E-SCALER", "GradScaler: No inf checks were recorded prior to update.",
               hint("call scaler.step(optimizer), not optimizer.step()"));
  return sum;
}

void GradScaler::update(std::optional<double> new_scale) {
  if (!options_.enabled) return;
  check_scaled("update");
  NoGradGuard no_grad;
  if (new_scale) {
    scale_.fill_(*new_scale);
  } else {
    const Tensor good = found_inf() == 0, wide = scale_.to(kFloat64);
    const Tensor count = where(good, growth_tracker_ + 1, zeros_like(growth_tracker_));
    const Tensor grows = count == Scalar(options_.growth_interval);
    const Tensor grown = (wide * options_.growth_factor).to(kFloat32);
    const Tensor larger = where(grown - grown == 0, grown, scale_);  // stays below infinity
    const Tensor smaller = (wide * options_.backoff_factor).to(kFloat32);
    scale_.copy_(where(good, where(grows, larger, scale_), smaller));
    growth_tracker_.copy_(where(grows, zeros_like(count), count));
  }
  optimizers_.clear();
}

double GradScaler::get_scale() const {
  if (!options_.enabled) return 1;
  return scale_.defined() ? scale_.item<double>() : options_.init_scale;
}

int64_t GradScaler::get_growth_tracker() const {
  if (!options_.enabled) return 0;
  return growth_tracker_.defined() ? growth_tracker_.item<int64_t>() : first_tracker_;
}

StateDict GradScaler::state_dict() const {
  if (!options_.enabled) return {};
  return {{"scale", number(get_scale())},
          {"growth_factor", number(options_.growth_factor)},
          {"backoff_factor", number(options_.backoff_factor)},
          {"growth_interval", number(static_cast<double>(options_.growth_interval), kInt64)},
          {"_growth_tracker", number(static_cast<double>(get_growth_tracker()), kInt64)},
          {"skipped_steps", number(static_cast<double>(skipped_), kInt64)}};
}

void GradScaler::load_state_dict(const StateDict& state) {
  if (!options_.enabled) return;
  GRADUS_CHECK(!state.empty(), "E-STATE-DICT", "GradScaler: The source state dict is empty",
               hint("it may have been saved by a scaler that was not enabled"));
  GradScalerOptions loaded = options_;
  loaded.init_scale = state.at("scale").item<double>();
  loaded.growth_factor = state.at("growth_factor").item<double>();
  loaded.backoff_factor = state.at("backoff_factor").item<double>();
  loaded.growth_interval = state.at("growth_interval").item<int64_t>();
  const int64_t tracker = state.at("_growth_tracker").item<int64_t>();
  const Tensor* skipped = state.find("skipped_steps");  // PyTorch's has none
  check(loaded);
  options_ = loaded;
  first_tracker_ = tracker;
  skipped_ = skipped ? skipped->item<int64_t>() : 0;
  if (!scale_.defined()) return;
  scale_.fill_(loaded.init_scale);
  growth_tracker_.fill_(tracker);
}

}  // namespace gradus::amp
