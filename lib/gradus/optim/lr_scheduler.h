// Learning-rate schedules, as torch.optim.lr_scheduler. Call step() once an epoch, after the optimizer's.
#pragma once
#include <gradus/optim/optimizer.h>

namespace gradus::optim {

/// Sets each group's learning rate to factor(epoch) of where it started. Keeps a reference to the optimizer.
class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  /// Moves on to the next epoch.
  void step();
  /// The rates that are set now, one a group.
  std::vector<double> get_last_lr() const;
  int64_t last_epoch() const { return epoch_; }

  /// "last_epoch", and "base_lrs" of the groups.
  StateDict state_dict() const;
  /// Goes on from a saved epoch; the optimizer's own state_dict holds the rates. Throws E-STATE-DICT.
  void load_state_dict(const StateDict& state);

 protected:
  explicit LRScheduler(Optimizer& optimizer);
  /// The rate of a group that started at `base`, in epoch 0, 1, …
  virtual double rate(double base, int64_t epoch) const = 0;

 private:
  Optimizer& optimizer_;
  std::vector<double> base_lrs_;
  int64_t epoch_ = 0;
};

/// base * gamma^floor(epoch / step_size)
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);

 private:
  double rate(double base, int64_t epoch) const override;
  int64_t step_size_;
  double gamma_;
};

/// eta_min + (base - eta_min) (1 + cos(pi epoch / T_max)) / 2 (Loshchilov and Hutter 2017, without restarts)
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min = 0);

 private:
  double rate(double base, int64_t epoch) const override;
  int64_t t_max_;
  double eta_min_;
};

}  // namespace gradus::optim
