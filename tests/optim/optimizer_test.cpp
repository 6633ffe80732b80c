#include <gradus/base/stats.h>
#include <gradus/nn/nn.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/random.h>
#include <gradus/optim/optim.h>

#include <cmath>

#include "support/expect_error.h"

namespace gradus::optim {
namespace {

using ::gradus::testing::error_of;

Tensor scalar(double value, DType dtype = kFloat32) {
  return full({1}, value, {.dtype = dtype}).requires_grad_();
}
void set_grad(Tensor p, double value) { p.set_grad(full_like(p.detach(), value)); }

template <class O, class Options>
double after_steps(const Options& options, double start, double grad, int steps, DType dtype = kFloat32) {
  Tensor p = scalar(start, dtype);
  O optimizer({p}, options);
  for (int i = 0; i < steps; ++i) {
    set_grad(p, grad);
    optimizer.step();
  }
  return p.item<double>();
}

void expect_close(double got, double want, double relative) {
  EXPECT_TRUE(std::fabs(got - want) <= relative * std::fabs(want)) << got << ", expected " << want;
}

TEST(Adam, NUM_13_bias_correction_and_where_eps_goes) {
  for (DType dtype : {kFloat32, kFloat64}) {
    expect_close(after_steps<Adam>(AdamOptions{}, 0, 1e-8, 1, dtype), -5e-4, 1e-5);
    for (int steps : {1, 2, 3})
      expect_close(after_steps<Adam>(AdamOptions{}, 0, 1, steps, dtype), -0.001 * steps, 1e-5);
  }
}

TEST(Optimizers, NUM_15_weight_decay) {
  expect_close(after_steps<AdamW>(AdamWOptions{.lr = 0.01, .weight_decay = 0.1}, 1, 0, 1), 0.999, 1e-7);
  expect_close(after_steps<Adam>(AdamOptions{.lr = 0.01, .weight_decay = 0.1}, 1, 0, 1), 0.99, 1e-6);
  expect_close(after_steps<SGD>(SGDOptions{.lr = 0.01, .weight_decay = 0.1}, 1, 0, 1), 0.999, 1e-7);
}

TEST(Optimizers, weight_decay_that_nobody_asked_for_is_AdamWs_alone) {
  EXPECT_EQ(after_steps<SGD>(SGDOptions{}, 1, 0, 1), 1);
  EXPECT_EQ(after_steps<Adam>(AdamOptions{}, 1, 0, 1), 1);
  expect_close(after_steps<AdamW>(AdamWOptions{}, 1, 0, 1, kFloat64), 1 - 1e-3 * 1e-2, 1e-15);
  // Naming another option leaves this one as it is.
  expect_close(after_steps<AdamW>(AdamWOptions{.lr = 0.5}, 1, 0, 1, kFloat64), 1 - 0.5 * 1e-2, 1e-15);
}

// Ten steps of Adam's L2 decay and of AdamW's, which leaves the moments alone, from their formulas in double.
TEST(Optimizers, coupled_and_decoupled_weight_decay_part_over_ten_steps) {
  constexpr double lr = 0.05, decay = 0.3, grad = 0.7;
  for (const bool decoupled : {false, true}) {
    double p = 2, m = 0, v = 0;
    for (int t = 1; t <= 10; ++t) {
      const double g = decoupled ? grad : grad + decay * p;
      if (decoupled) p -= lr * decay * p;
      m = 0.9 * m + 0.1 * g, v = 0.999 * v + 0.001 * g * g;
      p -= lr * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
    }
    const double got =
        decoupled ? after_steps<AdamW>(AdamWOptions{.lr = lr, .weight_decay = decay}, 2, grad, 10, kFloat64)
                  : after_steps<Adam>(AdamOptions{.lr = lr, .weight_decay = decay}, 2, grad, 10, kFloat64);
    expect_close(got, p, 1e-13);
  }
}

template <class O, class Group, class Options>
void check_decay_of_groups(double strong) {
  Tensor a = scalar(1, kFloat64), b = scalar(1, kFloat64);
  O optimizer(std::vector<Group>{{{a}, Options{.lr = 0.1, .weight_decay = 0}},
                                 {{b}, Options{.lr = 0.1, .weight_decay = 0.5}}});
  set_grad(a, 0), set_grad(b, 0);
  optimizer.step();
  EXPECT_EQ(a.item<double>(), 1);
  expect_close(b.item<double>(), strong, 1e-7);
}
TEST(Optimizers, each_group_has_its_own_weight_decay) {
  check_decay_of_groups<SGD, SGDGroup, SGDOptions>(0.95);
  check_decay_of_groups<Adam, AdamGroup, AdamOptions>(0.9);
  check_decay_of_groups<AdamW, AdamWGroup, AdamWOptions>(0.95);
}

TEST(SGD, NUM_27_a_zero_gradient_is_not_the_same_as_none) {
  struct Case {
    SGDOptions options;
    double first, with_zero;
  };
  for (const Case& c : {Case{{.lr = 0.1, .momentum = 0.9}, 0.9, 0.81},
                        Case{{.lr = 0.1, .weight_decay = 0.1}, 0.89, 0.8811}}) {
    for (bool to_none : {false, true}) {
      Tensor p = scalar(1);
      SGD sgd({p}, c.options);
      set_grad(p, 1);
      sgd.step();
      expect_close(p.item<double>(), c.first, 1e-6);
      sgd.zero_grad(to_none);
      EXPECT_EQ(p.grad().defined(), !to_none);
      sgd.step();
      expect_close(p.item<double>(), to_none ? c.first : c.with_zero, 1e-6);
    }
  }
}

TEST(SGD, momentum_dampening_and_nesterov) {
  // b1 = g, b2 = 0.5 b1 + (1 - d) g; nesterov steps along g + 0.5 b
  expect_close(after_steps<SGD>(SGDOptions{.lr = 1, .momentum = 0.5}, 0, 1, 2), -2.5, 1e-7);
  expect_close(after_steps<SGD>(SGDOptions{.lr = 1, .momentum = 0.5, .dampening = 0.5}, 0, 1, 2), -2, 1e-7);
  expect_close(after_steps<SGD>(SGDOptions{.lr = 1, .momentum = 0.5, .nesterov = true}, 0, 1, 2), -3.25,
               1e-7);
}

TEST(Optimizers, half_types_are_updated_in_float) {
  expect_close(after_steps<SGD>(SGDOptions{.lr = 0.5}, 1, 1, 1, kBFloat16), 0.5, 1e-7);
  expect_close(after_steps<Adam>(AdamOptions{.lr = 0.25}, 1, 1, 1, kFloat16), 0.75, 1e-3);
}

TEST(Optimizers, groups_have_options_of_their_own) {
  Tensor a = scalar(0), b = scalar(0), frozen = scalar(5);
  SGD sgd(std::vector<SGDGroup>{{{a, frozen}, {.lr = 1}}, {{b}, {.lr = 10}}});
  set_grad(a, 1);
  set_grad(b, 1);
  sgd.step();
  EXPECT_EQ(a.item<float>(), -1);
  EXPECT_EQ(b.item<float>(), -10);
  EXPECT_EQ(frozen.item<float>(), 5);  // it has no gradient
  EXPECT_EQ(sgd.group_count(), 2u);
  sgd.set_lr(2, 1);
  EXPECT_EQ(sgd.lr(0), 1);
  EXPECT_EQ(sgd.lr(1), 2);
  sgd.step();
  EXPECT_EQ(b.item<float>(), -12);
}

// Column-major parameters with row-major gradients, several in one launch.
TEST(Optimizers, layouts_of_parameter_and_gradient_may_differ) {
  std::vector<Tensor> params;
  for (int i = 0; i < 3; ++i) {
    params.push_back(zeros({2, 3}).t().detach().requires_grad_());
    params.back().set_grad(arange(6, {.dtype = kFloat32}).view({3, 2}) + i);
  }
  SGD sgd(params, {.lr = 1});
  sgd.step();
  for (float i = 0; i < 3; ++i)
    EXPECT_EQ(params[static_cast<size_t>(i)].to_vector<float>(),
              (std::vector<float>{-i, -1 - i, -2 - i, -3 - i, -4 - i, -5 - i}));
}

TEST(OptimizerState, of_a_column_major_parameter_comes_back_in_place) {
  auto run = [](bool reload) {
    Tensor p = zeros({2, 3}).t().detach().requires_grad_();
    Adam adam({p}, {.lr = 0.1});
    for (int i = 0; i < 4; ++i) {
      p.set_grad(arange(6, {.dtype = kFloat32}).view({3, 2}) * (i % 2 ? -1.0 : 1.0) + 0.5);
      if (reload && i == 2) {
        StateDict saved;  // as a file has it: row-major
        for (const auto& [name, tensor] : adam.state_dict()) saved.add(name, tensor.contiguous());
        adam.load_state_dict(saved);
      }
      adam.step();
    }
    return p.to_vector<float>();
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(OptimizerState, of_a_model_that_was_converted_since_is_refused) {
  nn::Linear layer(2, 1, false);
  Adam adam(layer->parameters());
  layer(ones({1, 2})).sum().backward();
  adam.step();
  layer->to(kFloat64);
  EXPECT_EQ(
      error_of([&] { adam.step(); }),
      "E-STATE: fused_adam_: exp_avg is float32 of shape [1, 2], its parameter is now float64 of shape [1, "
      "2]\n  hint: convert the model before its first step, or make a new optimizer");
}

TEST(Optimizers, an_optimizer_made_before_the_model_was_converted_still_trains_it) {
  nn::Linear layer(2, 1);
  Adam adam(layer->parameters(), {.lr = 0.1});
  layer->to(kFloat64);
  const auto before = layer->weight.to_vector<double>();
  layer(ones({1, 2}, kFloat64)).sum().backward();
  adam.step();
  EXPECT_NEAR(layer->weight.to_vector<double>()[0], before[0] - 0.1, 1e-7);
}

TEST(Optimizers, a_step_is_one_launch_for_each_24_tensors_of_a_group) {
  auto launches = [](size_t first, size_t second) {
    std::vector<Tensor> a, b;
    for (size_t i = 0; i < first; ++i) a.push_back(scalar(1));
    for (size_t i = 0; i < second; ++i) b.push_back(scalar(1));
    AdamW adam(std::vector<AdamWGroup>{{a, {}}, {b, {}}});
    for (auto* list : {&a, &b})
      for (Tensor& p : *list) set_grad(p, 1);
    adam.step();  // makes the state
    const Stats before = stats();
    adam.step();
    return (stats() - before).launches;
  };
  EXPECT_EQ(launches(1, 1), 2);
  EXPECT_EQ(launches(24, 3), 2);
  EXPECT_EQ(launches(25, 24), 3);
  EXPECT_EQ(launches(49, 1), 4);
}

TEST(Optimizers, a_step_marks_parameters_as_changed) {
  Tensor p = scalar(1);
  SGD sgd({p});
  set_grad(p, 1);
  const uint32_t version = p.version();
  sgd.step();
  EXPECT_GT(p.version(), version);
}

TEST(OptimizerState, a_resumed_optimizer_goes_on_bit_for_bit) {
  auto run = [](bool interrupted) {
    Tensor p = full({3}, 0.5).requires_grad_(), unused = scalar(1);
    auto make = [&] {
      return std::make_unique<Adam>(std::vector<Tensor>{p, unused}, AdamOptions{.lr = 0.1});
    };
    auto adam = make();
    for (int i = 0; i < 6; ++i) {
      if (i == 3 && interrupted) {
        const StateDict saved = adam->state_dict();
        adam = make();
        adam->load_state_dict(saved);
      }
      p.set_grad(tensor<float>({1, -2, static_cast<float>(i)}));
      adam->step();
    }
    return p.to_vector<float>();
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(Optimizers, hold_no_gradients_between_steps) {
  Tensor p = scalar(1), q = scalar(1);
  SGD sgd({p}, {.momentum = 0.5});
  Adam adam({q});
  for (int step = 0; step < 2; ++step) {  // the first step of SGD with momentum is another code path
    for (const Tensor& t : {p, q}) {
      set_grad(t, 1);
      const Intrusive<Storage> storage = t.grad().impl()->storage;
      sgd.step(), adam.step();
      sgd.zero_grad(), adam.zero_grad();
      EXPECT_EQ(storage->use_count(), 1);
    }
  }
}

TEST(OptimizerState, names_tensors_by_place_and_keeps_the_rate) {
  Tensor p = ones({2}).requires_grad_();
  Adam adam({p}, {.lr = 0.5});
  EXPECT_EQ(adam.state_dict().size(), 1u);  // no step yet
  set_grad(p, 1);
  adam.step();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : adam.state_dict()) names.push_back(name);
  EXPECT_THAT(names,
              ::testing::ElementsAre("group.0.lr", "state.0.step", "state.0.exp_avg", "state.0.exp_avg_sq"));
  Adam other({ones({2}).requires_grad_()});
  other.load_state_dict(adam.state_dict());
  EXPECT_EQ(other.lr(), 0.5);
}

TEST(OptimizerState, what_does_not_fit_is_refused_and_nothing_is_changed) {
  Tensor p = ones({2}).requires_grad_();
  Adam adam({p}, {.lr = 0.5});
  set_grad(p, 1);
  adam.step();
  const StateDict state = adam.state_dict();
  Adam small({ones({3}).requires_grad_()}, {.lr = 0.25});
  EXPECT_EQ(error_of([&] { small.load_state_dict(state); }),
            "E-STATE-DICT: Adam: the saved exp_avg of parameter 0 has shape [2], the parameter [3]\n"
            "  hint: load it into an optimizer of the same model");
  EXPECT_EQ(small.lr(), 0.25);
  SGD sgd({ones({2}).requires_grad_()}, {.lr = 0.25});
  EXPECT_EQ(error_of([&] { sgd.load_state_dict(state); }),
            "E-STATE-DICT: SGD: the saved state has 3 entries that this optimizer has no place for\n"
            "  hint: it was saved by another optimizer or for more parameters");
  Adam two(std::vector<AdamGroup>{{{scalar(1)}, {}}, {{scalar(1)}, {}}});
  EXPECT_EQ(error_of([&] { two.load_state_dict(state); }),
            "E-STATE-DICT: Adam: the saved state has no group 1, this optimizer has 2 groups\n"
            "  hint: load it into an optimizer made in the same way");
}

TEST(Optimizers, MOD_01_empty_lists_and_other_mistakes_are_refused) {
  EXPECT_EQ(error_of([] { SGD(std::vector<Tensor>{}); }),
            "E-ARG: SGD: optimizer got an empty parameter list\n"
            "  hint: are the model's layers registered? A std::vector of layers is not; use nn::ModuleList");
  const Tensor p = scalar(1);
  EXPECT_EQ(error_of([&] { Adam({p, p}); }), "E-ARG: Adam: some parameters appear more than once");
  EXPECT_EQ(error_of([&] { AdamW({p * 2}); }),
            "E-ARG: AdamW: can't optimize a non-leaf Tensor\n"
            "  hint: pass the model's parameters, not results computed from them");
  EXPECT_EQ(error_of([&] { SGD({p}, {.lr = -1}); }), "E-ARG: SGD: invalid learning rate: -1");
  EXPECT_EQ(error_of([&] { SGD({p}, {.momentum = 0.5, .dampening = 0.1, .nesterov = true}); }),
            "E-ARG: SGD: Nesterov momentum requires a momentum and zero dampening, got 0.5 and 0.1");
  EXPECT_GRADUS_ERROR(Adam({p}, {.beta1 = 1}), "E-ARG", "invalid betas: 1 and 0.999");
  EXPECT_GRADUS_ERROR(Adam({p}, {.eps = -1}), "E-ARG", "invalid epsilon value: -1");
  EXPECT_GRADUS_ERROR(Adam({p}, {.weight_decay = -1}), "E-ARG", "Adam: invalid weight_decay value: -1");
  EXPECT_GRADUS_ERROR(AdamW({p}, {.weight_decay = -1}), "E-ARG", "AdamW: invalid weight_decay value: -1");
  EXPECT_GRADUS_ERROR(SGD({p}, {.weight_decay = -1}), "E-ARG", "SGD: invalid weight_decay value: -1");
  SGD sgd({p});
  EXPECT_GRADUS_ERROR(sgd.set_lr(-1), "E-ARG", "invalid learning rate: -1");
  EXPECT_GRADUS_ERROR(sgd.set_lr(1, 7), "E-INDEX", "SGD: group 7 is out of range for 1 parameter groups");
  EXPECT_GRADUS_ERROR(sgd.lr(7), "E-INDEX", "group 7");
  EXPECT_GRADUS_ERROR(sgd.params(7), "E-INDEX", "group 7");
  EXPECT_GRADUS_ERROR(Adam({p, Tensor()}), "E-UNDEFINED", "Adam: parameter 1 is an undefined tensor");
}

}  // namespace
}  // namespace gradus::optim
