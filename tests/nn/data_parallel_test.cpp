// DataParallel over simulated devices: what one device computes, how the batch is cut, and what a step moves.
#include <gradus/gradus.h>
#include <gradus/runtime/sim.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace gradus::nn {
namespace {

using ::gradus::testing::error_of;
using ::testing::HasSubstr;

struct Net : Module {
  Linear fc1 = register_module("fc1", Linear(6, 8));
  Linear fc2 = register_module("fc2", Linear(8, 3));
  double p;
  explicit Net(double drop = 0) : p(drop) {}
  Tensor forward(const Tensor& x) override { return fc2(dropout(relu(fc1(x)), p, is_training())); }
};

std::vector<Device> sims(int n) {
  std::vector<Device> all;
  for (int i = 0; i < n; ++i) all.push_back(Device(DeviceType::sim, i));
  return all;
}

Tensor squares(const Tensor& y) { return (y * y).sum(); }

class DataParallelTest : public ::testing::Test {
 protected:
  const sim::OptionsGuard devices_{[](sim::Options& options) { options.devices = 8; }};
  const Device first_{DeviceType::sim, 0};

  template <class M = Net>
  static auto make(int n, double drop = 0) {
    manual_seed(7);
    return DataParallel([drop] { return std::make_shared<M>(drop); }, sims(n));
  }
  // The largest difference of two lists of tensors, NaN where there is one.
  static double difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    double largest = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const auto x = a[i].to_vector<double>(), y = b[i].to_vector<double>();
      for (size_t k = 0; k < x.size(); ++k)
        if (!(std::abs(x[k] - y[k]) <= largest)) largest = std::abs(x[k] - y[k]);
    }
    return largest;
  }
  static std::vector<Tensor> grads(const Module& model) {
    std::vector<Tensor> all;
    for (const Tensor& p : model.parameters()) all.push_back(p.grad());
    return all;
  }
};

TEST_F(DataParallelTest, DP_01_a_batch_that_does_not_divide_over_the_devices) {
  struct Case {
    int64_t rows;
    int devices;
    std::vector<int64_t> parts;
  };
  for (const auto& [rows, n, parts] : {Case{36, 7, {6, 6, 6, 6, 6, 6}}, Case{10, 4, {3, 3, 3, 1}},
                                       Case{3, 4, {1, 1, 1}}, Case{9, 4, {3, 3, 3}}, Case{0, 4, {0}}}) {
    auto model = make(n);
    model.to(first_);
    const Tensor x = randn({rows, 6});
    std::vector<int64_t> sizes;
    for (const Tensor& part : parallel::scatter(x, model.devices())) sizes.push_back(part.size(0));
    EXPECT_EQ(sizes, parts);

    manual_seed(7);
    Net alone;
    alone.to(first_);
    const Tensor y = model(x), want = alone(x.to(first_));
    EXPECT_EQ(y.sizes(), (Shape{rows, 3}));
    EXPECT_EQ(y.device(), first_);
    EXPECT_LE(difference({y}, {want}), 1e-6);
    squares(y).backward();
    squares(want).backward();
    EXPECT_LE(difference(grads(model), grads(alone)), 1e-5 * static_cast<double>(rows + 1));
  }
}

struct Normed : Module {
  BatchNorm1d norm = register_module("norm", BatchNorm1d(6));
  explicit Normed(double = 0) {}
  Tensor forward(const Tensor& x) override { return norm(x); }
};

TEST_F(DataParallelTest, DP_01_batch_norm_refuses_the_part_of_one_row) {
  auto model = make<Normed>(4);
  model.to(first_);
  EXPECT_THAT(error_of([&] { model(randn({10, 6})); }), HasSubstr("Expected more than 1 value per channel"));
}

TEST_F(DataParallelTest, batch_norms_running_values_are_the_first_devices) {
  auto model = make<Normed>(2);
  model.to(first_);
  Tensor x = zeros({4, 6});
  x.narrow(0, 2, 2).fill_(100);  // of the second device
  model(x);
  EXPECT_EQ(model.module().norm->named_buffers()[0].second.to_vector<double>(), std::vector<double>(6, 0.0));
}

TEST_F(DataParallelTest, DP_05_the_first_device_holds_the_outputs) {
  constexpr int64_t kRow = 10 << 18;  // 10 MiB of float32
  struct Wide : Module {
    Tensor forward(const Tensor& x) override { return x.expand({x.size(0), kRow}).clone(); }
  };
  DataParallel model([] { return std::make_shared<Wide>(); }, sims(4));
  const Tensor x = ones({4, 1});
  for (const Device device : model.devices()) reset_peak_memory_stats(device);
  const Tensor y = model(x);
  const int64_t first = max_memory_allocated(model.devices()[0]);
  for (int i = 1; i < 4; ++i)
    EXPECT_GE(first - max_memory_allocated(model.devices()[static_cast<size_t>(i)]), 30 << 20);
}

TEST_F(DataParallelTest, DP_05_the_model_must_be_on_the_first_device) {
  auto model = make(2);
  EXPECT_THAT(error_of([&] {
                model(ones({2, 6}));
              }),
              HasSubstr("on device sim:0 (devices[0]) but found fc1.weight on device: cpu"));
  model.to(Device(DeviceType::sim, 1));
  EXPECT_THAT(error_of([&] {
                model(ones({2, 6}));
              }),
              HasSubstr("on device sim:0 (devices[0]) but found fc1.weight on device: sim:1"));
}

TEST_F(DataParallelTest, a_step_copies_the_model_to_every_other_device_and_the_gradients_back) {
  auto model = make(4);
  model.to(first_);
  const Tensor x = randn({8, 6}).to(first_);
  const auto copies = [&](const auto& f) {
    int64_t count = 0, bytes = 0;
    std::vector<Stats> before;
    for (const Device d : model.devices()) before.push_back(stats(d));
    f();
    for (size_t i = 0; i < before.size(); ++i) {
      const Stats used = stats(model.devices()[i]) - before[i];
      count += used.copies_d2d, bytes += used.bytes_d2d;
    }
    return std::pair(count, bytes);
  };
  constexpr int64_t kOthers = 3, kParameters = 4, kModelBytes = 4 * (6 * 8 + 8 + 8 * 3 + 3);
  constexpr int64_t kInputBytes = 3 * 2 * 6 * 4, kOutputBytes = 3 * 2 * 3 * 4;
  Tensor loss;
  const auto forward = copies([&] { loss = squares(model(x)); });
  EXPECT_EQ(forward.first, kOthers * (kParameters + 2));
  EXPECT_EQ(forward.second, kOthers * kModelBytes + kInputBytes + kOutputBytes);
  const auto backward = copies([&] { loss.backward(); });
  EXPECT_EQ(backward.first, kOthers * (kParameters + 1));  // the input wants no gradient
  EXPECT_EQ(backward.second, kOthers * kModelBytes + kOutputBytes);
  const auto next = copies([&] { loss = squares(model(x)); });  // nothing is kept from step to step
  EXPECT_EQ(next, forward);
}

TEST_F(DataParallelTest, it_trains_as_one_device_does) {
  auto model = make(3);
  manual_seed(7);
  Net alone;
  model.to(first_), alone.to(first_);
  optim::Adam ours(model.parameters()), theirs(alone.parameters());
  for (int step = 0; step < 5; ++step) {
    const Tensor x = randn({7, 6}).to(first_);
    for (auto* side : {static_cast<Module*>(&model), static_cast<Module*>(&alone)}) {
      side->zero_grad();
      squares((*side)(x)).backward();
    }
    ours.step(), theirs.step();
  }
  EXPECT_LE(difference(model.parameters(), alone.parameters()), 1e-5);
}

TEST_F(DataParallelTest, the_same_step_gives_the_same_bits) {
  std::vector<float> first;
  for (int run = 0; run < 3; ++run) {
    auto model = make(4, 0.5);
    model.to(first_);
    squares(model(randn({64, 6}))).backward();
    const auto grad = model.parameters()[0].grad().to_vector<float>();
    if (run == 0) first = grad;
    EXPECT_EQ(grad, first);
  }
}

TEST_F(DataParallelTest, dropout_drops_what_one_device_would) {
  struct Drop : Module {
    int64_t width = 0;
    Tensor forward(const Tensor& x) override { return dropout(x, 0.5, is_training()); }
  };
  for (const int64_t width : {8, 5}) {  // 5: parts begin within four numbers
    DataParallel model([] { return std::make_shared<Drop>(); }, sims(4));
    const Tensor x = ones({11, width});
    manual_seed(3);
    const Tensor want = dropout(x, 0.5), after = rand({4});
    manual_seed(3);
    EXPECT_EQ(model(x).to_vector<float>(), want.to_vector<float>());
    EXPECT_EQ(rand({4}).to_vector<float>(), after.to_vector<float>()) << "one draw was taken";
  }
}

TEST_F(DataParallelTest, DDP_09_its_state_dict_has_the_prefix_and_the_models_has_not) {
  auto model = make(2);
  EXPECT_EQ(model.state_dict().begin()->first.substr(0, 7), "module.");
  Net alone;
  const std::string error = error_of([&] { alone.load_state_dict(model.state_dict()); });
  EXPECT_THAT(error, HasSubstr("module.fc1.weight"));
  alone.load_state_dict(model.module().state_dict());
  EXPECT_EQ(difference(alone.parameters(), model.parameters()), 0);
}

TEST(StatePrefix, DDP_09_one_prefix_is_taken_off_where_all_names_have_it) {
  const auto names_after = [](const std::vector<std::string>& names) {
    StateDict state;
    for (const std::string& name : names) state.add(name, zeros({1}));
    consume_prefix_in_state_dict_if_present(state);
    std::vector<std::string> left;
    for (const auto& [name, tensor] : state) left.push_back(name);
    return left;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_after({"module.fc.weight", "module.fc.bias"}), (Names{"fc.weight", "fc.bias"}));
  EXPECT_EQ(names_after({"module.module.fc.weight"}), (Names{"module.fc.weight"}));
  for (const Names& kept :
       {Names{"modules.fc.weight"}, Names{"fc.module.weight"}, Names{"module.fc.weight", "fc.bias"}, Names{}})
    EXPECT_EQ(names_after(kept), kept);
}

TEST_F(DataParallelTest, DDP_09_what_was_saved_from_it_loads_into_a_bare_model) {
  auto model = make(2);
  StateDict state = model.state_dict();
  EXPECT_TRUE(consume_prefix_in_state_dict_if_present(state));
  Net alone;
  alone.load_state_dict(state);
  EXPECT_EQ(difference(alone.parameters(), model.parameters()), 0);
}

TEST_F(DataParallelTest, tuples_lists_and_maps_are_gathered) {
  auto model = make(3);
  model.to(first_);
  const Tensor x = randn({7, 6});
  const auto [hidden, named, many] = model.run(
      [](Net& net, const Tensor& part) {
        const Tensor h = relu(net.fc1(part));
        return std::tuple(
            h,
            std::map<std::string, Tensor>{{"logits", net.fc2(h)}, {"count", ones({}, kFloat32, h.device())}},
            std::vector<Tensor>{h, h});
      },
      x);
  EXPECT_EQ(hidden.sizes(), (Shape{7, 8}));
  EXPECT_EQ(named.at("logits").sizes(), (Shape{7, 3}));
  EXPECT_EQ(named.at("count").sizes(), (Shape{3}));  // a number of each part
  EXPECT_EQ(many.at(1).device(), first_);
  EXPECT_LE(difference({named.at("logits")}, {model(x)}), 0);
}

TEST_F(DataParallelTest, structures_that_differ_are_refused) {
  auto model = make(2);
  model.to(first_);
  const auto by_rows = [](Net&, const Tensor& part) {
    return std::map<std::string, Tensor>{{part.size(0) == 2 ? "two" : "one", part}};
  };
  EXPECT_THAT(error_of([&] {
                model.run(by_rows, ones({3, 6}));
              }),
              HasSubstr("has other keys than that of part 0"));
}

TEST_F(DataParallelTest, the_exception_of_a_replica_reaches_the_caller) {
  auto model = make(3);
  model.to(first_);
  const auto fails = [](Net& net, const Tensor& part) {
    GRADUS_CHECK(part.device().index() == 0, "E-ARG", "replica on ", part.device(), ": refuses");
    return net(part);
  };
  EXPECT_EQ(error_of([&] { model.run(fails, ones({6, 6})); }), "E-ARG: replica on sim:1: refuses");
  EXPECT_EQ(model(ones({6, 6})).size(0), 6) << "and it goes on working";
}

TEST_F(DataParallelTest, two_forward_passes_before_one_backward) {
  auto model = make(3);
  manual_seed(7);
  Net alone;
  model.to(first_), alone.to(first_);
  const Tensor a = randn({6, 6}).to(first_), b = randn({6, 6}).to(first_);
  (squares(model(a)) + squares(model(b))).backward();
  (squares(alone(a)) + squares(alone(b))).backward();
  EXPECT_LE(difference(grads(model), grads(alone)), 1e-4);
}

TEST_F(DataParallelTest, grad_mode_and_training_mode_hold_in_the_replicas) {
  auto model = make(2, 0.5);
  model.to(first_);
  const Tensor x = ones({4, 6});
  {
    const NoGradGuard no_grad;
    EXPECT_FALSE(model(x).requires_grad());
  }
  model.eval();
  EXPECT_EQ(model(x).to_vector<float>(), model(x).to_vector<float>());
  model.train();
  EXPECT_NE(model(x).to_vector<float>(), model(x).to_vector<float>());
}

TEST_F(DataParallelTest, a_frozen_parameter_gets_no_gradient) {
  auto model = make(3);
  model.to(first_);
  model.module().fc1->requires_grad_(false);
  model(ones({6, 6})).sum().backward();
  EXPECT_FALSE(model.module().fc1->parameters()[0].grad().defined());
  EXPECT_TRUE(model.module().fc2->parameters()[0].grad().defined());
}

TEST_F(DataParallelTest, what_it_cannot_take) {
  const auto net = [] { return std::make_shared<Net>(); };
  EXPECT_THAT(error_of([&] { DataParallel(net, {}); }), HasSubstr("expected at least one device, got none"));
  EXPECT_THAT(error_of([&] { DataParallel(net, {first_, first_}); }), HasSubstr("sim:0 is named twice"));
  EXPECT_THAT(error_of([&] {
                DataParallel(net, {first_, Device("cpu")});
              }),
              HasSubstr("expected devices of one type, got sim:0 and cpu"));
  const auto one = std::make_shared<Net>();
  DataParallel shared([&] { return one; }, sims(2));
  shared.to(first_);
  EXPECT_THAT(error_of([&] { shared(ones({2, 6})); }), HasSubstr("two models share fc1.weight"));
  int64_t width = 3;
  DataParallel growing([&] { return std::make_shared<LinearImpl>(6, width++); }, sims(2));
  growing.to(first_);
  EXPECT_THAT(error_of([&] { growing(ones({2, 6})); }), HasSubstr("makes models that differ: at weight"));
  auto model = make(2);
  model.to(first_);
  const auto two = [](Net& m, const Tensor& x, const Tensor&) { return m(x); };
  EXPECT_THAT(error_of([&] {
                model.run(two, ones({2, 6}), ones({3, 6}));
              }),
              HasSubstr("the inputs must have equally many rows, got [2, 6] and [3, 6]"));
  EXPECT_THAT(error_of([&] { model(ones({})); }), HasSubstr("a 0-dim tensor cannot be cut"));
}

}  // namespace
}  // namespace gradus::nn
