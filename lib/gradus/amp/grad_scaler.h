// Dynamic loss scaling, as torch.amp.GradScaler.
#pragma once
#include <gradus/optim/optimizer.h>

#include <optional>
#include <utility>
#include <vector>

namespace gradus::amp {

struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;        ///< > 1: the scale is multiplied by it after growth_interval good steps
  double backoff_factor = 0.5;     ///< < 1: and by this after an infinite or NaN gradient
  int64_t growth_interval = 2000;  ///< steps
  bool enabled = true;             ///< false: scale() and unscale_() do nothing, step() only steps
};

/// Small gradients are 0 in float16. So the loss is multiplied by a large number before backward(), and the
/// gradients are divided by it before the step:
///
///   scaler.scale(loss).backward();
///   scaler.unscale_(optimizer);                        // only where gradients are read or clipped
///   nn::utils::clip_grad_norm_(model.parameters(), 1);
///   scaler.step(optimizer);                            // skipped where a gradient is infinite or NaN
///   scaler.update();
///
/// bfloat16 has float32's range and needs none of this.
///
/// Scale and flags live on the loss's device. Only step() (one number for each device) and the getters wait
/// for it. Calls out of order throw E-SCALER. Optimizers are told apart by address.
class GradScaler {
 public:
  /// Throws E-ARG for a factor on the wrong side of 1, or an init_scale or growth_interval that is not > 0.
  explicit GradScaler(const GradScalerOptions& options = {});

  /// outputs * scale: a loss of any dtype gives float32.
  Tensor scale(const Tensor& outputs);
  /// Divides the gradients of optimizer's parameters by the scale and looks for infinities, in one pass.
  /// Throws E-SCALER if it was done since the last update(), and E-DTYPE for float16 gradients: they come of
  /// a model that was converted as a whole, and have lost what scaling protects.
  void unscale_(optim::Optimizer& optimizer);
  /// unscale_() if that was not done, then optimizer.step() unless a gradient was infinite or NaN. Returns
  /// whether it stepped: call the learning-rate scheduler only then. Throws E-SCALER for a second step before
  /// update(), before scale() was ever called, and where no parameter has a gradient.
  bool step(optim::Optimizer& optimizer);
  /// Once an iteration, after all optimizers' steps: lowers the scale if one of them met an infinity, raises
  /// it after growth_interval times without; or sets it.
  void update(std::optional<double> new_scale = {});

  bool is_enabled() const { return options_.enabled; }
  /// Waits for the device; 1 when disabled.
  double get_scale() const;
  /// Good updates since the scale last changed; waits for the device.
  int64_t get_growth_tracker() const;
  double get_growth_factor() const { return options_.growth_factor; }
  double get_backoff_factor() const { return options_.backoff_factor; }
  int64_t get_growth_interval() const { return options_.growth_interval; }
  /// How many steps were left out so far.
  int64_t skipped_steps() const { return skipped_; }

  /// scale, growth_factor, backoff_factor, growth_interval, _growth_tracker, skipped_steps; empty when
  /// disabled.
  StateDict state_dict() const;
  /// Throws E-STATE-DICT, and changes nothing, where an entry is missing.
  void load_state_dict(const StateDict& state);

 private:
  enum class Stage : uint8_t { ready, unscaled, stepped };
  // What an optimizer has done since the last update().
  struct PerOptimizer {
    const optim::Optimizer* optimizer;
    Stage stage = Stage::ready;
    std::vector<Tensor> found_inf;  // float32 scalars, one for each device
  };
  PerOptimizer& state_of(const optim::Optimizer& optimizer);
  void check_scaled(const char* what) const;
  Tensor found_inf() const;

  GradScalerOptions options_;
  Tensor scale_, growth_tracker_;  // float32 scalar, int64 scalar; undefined until scale()
  int64_t first_tracker_ = 0;
  int64_t skipped_ = 0;
  std::vector<PerOptimizer> optimizers_;
};

}  // namespace gradus::amp
