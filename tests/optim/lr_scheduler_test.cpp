#include <gradus/ops/factories.h>
#include <gradus/optim/optim.h>

#include <cmath>

#include "support/expect_error.h"

namespace gradus::optim {
namespace {

template <class Scheduler, class... A>
std::vector<double> rates(double lr, int epochs, A... args) {
  SGD sgd({ones({1}).requires_grad_()}, {.lr = lr});
  Scheduler scheduler(sgd, args...);
  std::vector<double> out{sgd.lr()};
  for (int i = 0; i < epochs; ++i) {
    scheduler.step();
    out.push_back(sgd.lr());
    EXPECT_EQ(scheduler.get_last_lr()[0], sgd.lr());
    EXPECT_EQ(scheduler.last_epoch(), i + 1);
  }
  return out;
}

void expect_close(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(std::fabs(got[i] - want[i]) <= 1e-12) << i << ": " << got[i] << ", expected " << want[i];
}

TEST(LRScheduler, step_lr) {
  expect_close(rates<StepLR>(1, 7, 3, 0.5), {1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25});
  expect_close(rates<StepLR>(0.1, 2, 1), {0.1, 0.01, 0.001});
}

TEST(LRScheduler, cosine_annealing_goes_down_and_up_again) {
  const double r = std::sqrt(0.5);
  expect_close(rates<CosineAnnealingLR>(2, 8, 4), {2, 1 + r, 1, 1 - r, 0, 1 - r, 1, 1 + r, 2});
  expect_close(rates<CosineAnnealingLR>(3, 2, 2, 1.0), {3, 2, 1});
}

TEST(LRScheduler, every_group_keeps_its_own_base) {
  SGD sgd(std::vector<SGDGroup>{{{ones({1}).requires_grad_()}, {.lr = 1}},
                                {{ones({1}).requires_grad_()}, {.lr = 4}}});
  StepLR scheduler(sgd, 1, 0.5);
  scheduler.step();
  EXPECT_EQ(scheduler.get_last_lr(), (std::vector<double>{0.5, 2}));
}

TEST(LRScheduler, the_next_step_of_the_optimizer_uses_the_rate) {
  Tensor p = zeros({1}).requires_grad_();
  SGD sgd({p}, {.lr = 1});
  StepLR scheduler(sgd, 1, 0.5);
  for (int i = 0; i < 3; ++i) {
    p.set_grad(ones({1}));
    sgd.step();
    scheduler.step();
  }
  EXPECT_EQ(p.item<float>(), -1.75f);
}

TEST(LRScheduler, goes_on_from_a_saved_state) {
  SGD sgd({ones({1}).requires_grad_()}, {.lr = 1});
  StepLR scheduler(sgd, 2, 0.5);
  for (int i = 0; i < 3; ++i) scheduler.step();
  SGD fresh({ones({1}).requires_grad_()}, {.lr = 8});
  StepLR resumed(fresh, 2, 0.5);
  resumed.load_state_dict(scheduler.state_dict());
  EXPECT_EQ(resumed.last_epoch(), 3);
  EXPECT_EQ(fresh.lr(), 0.5);
  resumed.step();
  EXPECT_EQ(fresh.lr(), 0.25);
}

TEST(LRScheduler, mistakes_are_refused) {
  SGD sgd({ones({1}).requires_grad_()});
  EXPECT_GRADUS_ERROR(StepLR(sgd, 0), "E-ARG", "step_size must be positive, got 0");
  EXPECT_GRADUS_ERROR(CosineAnnealingLR(sgd, 0), "E-ARG", "T_max must be positive, got 0");
  StepLR scheduler(sgd, 1);
  EXPECT_GRADUS_ERROR(scheduler.load_state_dict({}), "E-STATE-DICT", "last_epoch");
  EXPECT_EQ(::gradus::testing::error_of([&] {
              scheduler.load_state_dict({{"last_epoch", full({}, 3)}, {"base_lrs", ones({2}, kFloat64)}});
            }),
            "E-STATE-DICT: LRScheduler: the saved schedule is of 2 groups, the optimizer has 1");
  EXPECT_EQ(scheduler.last_epoch(), 0);
}

}  // namespace
}  // namespace gradus::optim
