#include <gradus/ops/factories.h>
#include <gradus/optim/lr_scheduler.h>

#include <cmath>
#include <numbers>

namespace gradus::optim {

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {
  for (size_t g = 0; g < optimizer.group_count(); ++g) base_lrs_.push_back(optimizer.lr(g));
}

void LRScheduler::step() {
  ++epoch_;
  for (size_t g = 0; g < base_lrs_.size(); ++g) optimizer_.set_lr(rate(base_lrs_[g], epoch_), g);
}

std::vector<double> LRScheduler::get_last_lr() const {
  std::vector<double> rates;
  for (size_t g = 0; g < base_lrs_.size(); ++g) rates.push_back(optimizer_.lr(g));
  return rates;
}

StateDict LRScheduler::state_dict() const {
  return {{"last_epoch", full({}, epoch_, {.dtype = kInt64})}, {"base_lrs", tensor(base_lrs_)}};
}

void LRScheduler::load_state_dict(const StateDict& state) {
  const Tensor &epoch = state.at("last_epoch"), &bases = state.at("base_lrs");
  GRADUS_CHECK(bases.numel() == static_cast<int64_t>(base_lrs_.size()), "E-STATE-DICT",
               "LRScheduler: the saved schedule is of ", bases.numel(), " groups, the optimizer has ",
               base_lrs_.size());
  epoch_ = epoch.item<int64_t>();
  base_lrs_ = bases.to_vector<double>();
  for (size_t g = 0; g < base_lrs_.size(); ++g) optimizer_.set_lr(rate(base_lrs_[g], epoch_), g);
}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  GRADUS_CHECK(step_size > 0, "E-ARG", "StepLR: step_size must be positive, got ", step_size);
}
double StepLR::rate(double base, int64_t epoch) const {
  return base * std::pow(gamma_, static_cast<double>(epoch / step_size_));
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min)
    : LRScheduler(optimizer), t_max_(T_max), eta_min_(eta_min) {
  GRADUS_CHECK(T_max > 0, "E-ARG", "CosineAnnealingLR: T_max must be positive, got ", T_max);
}
double CosineAnnealingLR::rate(double base, int64_t epoch) const {
  const double turn = std::numbers::pi * static_cast<double>(epoch) / static_cast<double>(t_max_);
  return eta_min_ + (base - eta_min_) * (1 + std::cos(turn)) / 2;
}

}  // namespace gradus::optim
