// The backward pass: order, accumulation, freeing, hooks, passes inside passes, failures.
#include <gradus/autograd/backward.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/compare.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/unary.h>
#include <gradus/ops/view.h>
#include <gradus/tensor/node.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <thread>

namespace gradus {
namespace {

using Doubles = std::vector<double>;

Tensor leaf(std::initializer_list<double> values) { return tensor(values).requires_grad_(); }

template <class F>
Error error_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error("", "", "", {"", 0});
}

// Every graph is freed by the end of its test.
class Engine : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(Node::live_count(), 0); }
  void TearDown() override { EXPECT_EQ(Node::live_count(), 0); }
};

TEST_F(Engine, AG_03_second_backward_and_accumulation) {
  Tensor w = tensor(3.0).requires_grad_();
  const Tensor y = w * w;
  y.backward({}, true);
  EXPECT_EQ(w.grad().item<double>(), 6);
  y.backward();
  EXPECT_EQ(w.grad().item<double>(), 12);
  const Error e = error_of([&] { y.backward(); });
  EXPECT_EQ(e.code(), "E-GRAPH-FREED");
  EXPECT_STREQ(
      e.what(),
      "MulBackward: Trying to backward through the graph a second time: its saved values have already "
      "been freed\n  hint: pass retain_graph=true to the first backward()");
  EXPECT_EQ(w.grad().item<double>(), 12);
}

TEST_F(Engine, a_graph_that_saved_nothing_may_run_again) {
  Tensor w = leaf({1, 2});
  const Tensor y = (-(w + 1)).sum();
  y.backward();
  y.backward();
  EXPECT_EQ(w.grad().to_vector<double>(), (Doubles{-2, -2}));
}

TEST_F(Engine, a_chain_of_100000_nodes_runs_and_is_freed_without_recursion) {
  Tensor x = tensor(1.0).requires_grad_();
  {
    Tensor y = x;
    for (int i = 0; i < 100000; ++i) y = y + 1;
    EXPECT_EQ(Node::live_count(), 100001);
    y.backward();
    EXPECT_EQ(x.grad().item<double>(), 1);
  }
  EXPECT_EQ(Node::live_count(), 1);
  {
    Tensor y = x;  // and freed without having run
    for (int i = 0; i < 100000; ++i) y = y * y;
  }
  EXPECT_EQ(Node::live_count(), 1);
}

TEST_F(Engine, a_tensor_used_twice_gets_the_sum) {
  Tensor x = leaf({2});
  const Tensor a = x * 3, b = square(x);
  (a * b + a).sum().backward();  // 3x * x^2 + 3x
  EXPECT_EQ(x.grad().to_vector<double>(), Doubles{9 * 4 + 3});
}

TEST_F(Engine, results_repeat_bit_for_bit) {
  Doubles first;
  for (int run = 0; run < 3; ++run) {
    Tensor x = leaf({0.1, 0.7, 1.3});
    Tensor y = zeros({3});
    for (int i = 1; i < 8; ++i) y = y + sin(x * i) * exp(x / i);
    y.sum().backward();
    const Doubles g = x.grad().to_vector<double>();
    if (run == 0) first = g;
    EXPECT_EQ(g, first);
  }
}

TEST_F(Engine, several_outputs_one_of_them_inside_the_other) {
  Tensor x = leaf({2});
  const Tensor y = x * x, z = y * 5;
  autograd::backward({z, y}, {tensor({1.}), tensor({10.})});
  EXPECT_EQ(x.grad().to_vector<double>(), Doubles{(5 + 10) * 4});
}

TEST_F(Engine, outputs_need_a_gradient_a_history_and_matching_shapes) {
  Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  EXPECT_STREQ(error_of([&] { y.backward(); }).what(),
               "backward: grad can be implicitly created only for scalar outputs, got shape [2]\n"
               "  hint: reduce it with sum() or mean(), or pass a gradient of its shape");
  EXPECT_EQ(error_of([&] { y.backward(tensor({1.})); }).code(), "E-GRAD");
  EXPECT_EQ(error_of([&] { tensor({1.}).backward(); }).code(), "E-REQUIRES-GRAD");
  EXPECT_EQ(error_of([&] { autograd::backward({y}, {y, y}); }).code(), "E-GRAD");
  y.backward(tensor({1., 1.}));  // none of it has spoilt the graph
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{2, 2}));
}

TEST_F(Engine, grad_leaves_the_leaves_alone) {
  Tensor x = leaf({3}), w = leaf({5}), unused = leaf({1});
  const Tensor y = x * w;
  const auto g = autograd::grad({y}, {x, unused}, {}, true, false, true);
  EXPECT_EQ(g[0].to_vector<double>(), Doubles{5});
  EXPECT_FALSE(g[1].defined());
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(w.grad().defined());
  const Error e = error_of([&] { autograd::grad({y}, {unused}); });
  EXPECT_EQ(e.code(), "E-UNUSED");
  EXPECT_STREQ(e.what(),
               "grad: input 0 of shape [1] was not used to compute the outputs\n"
               "  hint: pass allow_unused=true to get an undefined tensor for it");
  EXPECT_EQ(error_of([&] { autograd::grad({y}, {tensor({1.})}); }).code(), "E-REQUIRES-GRAD");
}

TEST_F(Engine, grad_of_an_intermediate_result_does_not_go_behind_it) {
  Tensor x = leaf({3});
  const Tensor y = x * x, z = y * y;
  EXPECT_EQ(autograd::grad({z}, {y})[0].to_vector<double>(), Doubles{18});
  y.backward();  // its own graph has not been freed
  EXPECT_EQ(x.grad().to_vector<double>(), Doubles{6});
}

TEST_F(Engine, hooks_see_and_replace_gradients) {
  Tensor x = leaf({2});
  Tensor y = x * 3;
  Doubles seen;
  y.register_hook([&](const Tensor& g) {
    seen.push_back(g.item<double>());
    return g * 10;
  });
  x.register_hook([&](const Tensor& g) {
    seen.push_back(g.item<double>());
    return Tensor();
  });
  x.register_post_accumulate_grad_hook([&](const Tensor& g) { seen.push_back(g.item<double>()); });
  (y * 5).backward();
  EXPECT_EQ(seen, (Doubles{5, 150, 150}));
  EXPECT_EQ(x.grad().to_vector<double>(), Doubles{150});
}

TEST_F(Engine, a_hook_must_keep_the_shape) {
  Tensor x = leaf({2});
  Tensor y = x * 3;
  y.register_hook([](const Tensor&) { return ones({7}); });
  EXPECT_STREQ(error_of([&] { y.backward(); }).what(),
               "hook: it returned a gradient of shape [7] for one of shape [1]\n  hint: they must be equal");
}

TEST_F(Engine, a_hook_must_keep_the_dtype) {
  Tensor x = leaf({1});
  Tensor y = tanh(x);
  y.register_hook([](const Tensor& g) { return g.to(kFloat64); });
  const Error e = error_of([&] { y.backward(); });
  EXPECT_EQ(e.code(), "E-GRAD");
  EXPECT_STREQ(e.what(),
               "hook: it returned a gradient of float64 on cpu for one of float32 on cpu\n"
               "  hint: they must be equal");
}

TEST_F(Engine, a_given_gradient_of_another_dtype_is_converted) {
  Tensor x = leaf({1, -2});
  relu(x).backward(tensor({3., 4.}, {.dtype = kFloat64}));
  EXPECT_EQ(x.grad().dtype(), kFloat32);
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{3, 0}));
}

TEST_F(Engine, a_leaf_runs_as_soon_as_its_gradient_is_complete) {
  Tensor first = leaf({1}), last = leaf({2});
  std::string order;
  Tensor hidden = first * 2;
  hidden.register_hook([&](const Tensor&) { return order += "hidden ", Tensor(); });
  last.register_post_accumulate_grad_hook([&](const Tensor&) { order += "last "; });
  first.register_post_accumulate_grad_hook([&](const Tensor&) { order += "first "; });
  (hidden * last + last).backward();
  EXPECT_EQ(order, "last hidden first ");
  EXPECT_EQ(last.grad().to_vector<double>(), Doubles{3});
}

TEST_F(Engine, retain_grad_keeps_the_gradient_of_a_result) {
  Tensor x = leaf({2});
  Tensor y = x * 3, z = y * y;
  y.retain_grad();
  y.retain_grad();  // once is enough
  z.backward({}, true);
  EXPECT_EQ(y.grad().to_vector<double>(), Doubles{12});
  z.backward();
  EXPECT_EQ(y.grad().to_vector<double>(), Doubles{24});
  EXPECT_FALSE(z.grad().defined());
  EXPECT_EQ(error_of([] { tensor({1.}).retain_grad(); }).code(), "E-REQUIRES-GRAD");
}

TEST_F(Engine, a_hook_may_run_a_backward_pass_over_the_same_leaves) {
  Tensor x = leaf({2}), w = leaf({7});
  Tensor y = x * w;
  y.register_hook([&](const Tensor&) {
    EnableGradGuard recording;  // hooks run as backward does, without
    (x * x * w).backward();     // adds 4 w to x.grad, 4 to w.grad
    return Tensor();
  });
  (y + x).backward();
  EXPECT_EQ(x.grad().to_vector<double>(), Doubles{7 + 1 + 28});
  EXPECT_EQ(w.grad().to_vector<double>(), Doubles{2 + 4});
}

TEST_F(Engine, an_exception_in_a_hook_leaves_the_engine_usable) {
  Tensor x = leaf({2});
  {
    Tensor y = x * 3;
    y.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("hook"); });
    EXPECT_THROW((y * x).backward(), std::runtime_error);
    EXPECT_TRUE(GradMode::is_enabled());
  }
  EXPECT_FALSE(x.grad().defined());
  (x * 5).backward();
  EXPECT_EQ(x.grad().to_vector<double>(), Doubles{5});
}

struct Refusing : Node {
  const char* name() const override { return "RefusingBackward"; }
  bool differentiable() const override { return false; }
  TensorList backward(const TensorList& g) override { return {g[0] * 2}; }
};

TEST_F(Engine, create_graph_is_refused_where_there_is_no_second_derivative) {
  Tensor x = leaf({2});
  Tensor y = tensor({4.});
  record<Refusing>(y, x);
  const Error e = error_of([&] { y.backward({}, false, true); });
  EXPECT_EQ(e.code(), "E-DOUBLE-BACKWARD");
  EXPECT_STREQ(e.what(),
               "RefusingBackward: the second derivative is not implemented\n  hint: call backward() without "
               "create_graph, or write the operation with differentiable ones");
  y.backward();
  EXPECT_EQ(x.grad().to_vector<double>(), Doubles{2});
}

TEST_F(Engine, create_graph_makes_gradients_of_gradients) {
  Tensor x = leaf({2});
  (x * x * x).backward({}, false, true);
  Tensor g = x.grad();
  EXPECT_EQ(g.to_vector<double>(), Doubles{12});
  x.set_grad({});
  g.backward();
  EXPECT_EQ(x.grad().to_vector<double>(), Doubles{12});
  x.set_grad({});
}

// A gradient penalty: d/dw |d(relu(x w))/dx|^2.
TEST_F(Engine, AG_11_gradient_penalty_through_relu) {
  Tensor x = leaf({1, -1, 2}), w = leaf({0.5, 0.5, 3});
  const Tensor g = autograd::grad({relu(x * w).sum()}, {x}, {}, true, true)[0];
  EXPECT_EQ(g.to_vector<double>(), (Doubles{0.5, 0, 3}));
  square(g).sum().backward();
  EXPECT_EQ(w.grad().to_vector<double>(), (Doubles{1, 0, 6}));
}

TEST_F(Engine, AG_07_integers_have_no_gradient) {
  const Error e = error_of([] { ones({3}, {.dtype = kInt64}).requires_grad_(); });
  EXPECT_EQ(e.code(), "E-REQUIRES-GRAD");
  EXPECT_STREQ(
      e.what(),
      "requires_grad_: only Tensors of floating point dtype can require gradients, this one is int64\n"
      "  hint: convert it with .to(kFloat32) first");
  const Tensor x = leaf({1, 3, 2});
  EXPECT_FALSE(x.argmax().requires_grad());
  EXPECT_FALSE(x.to(kInt64).requires_grad());
  const Tensor accuracy = (x.argmax() == tensor(std::vector<int64_t>{1})).to(kFloat32).mean();
  EXPECT_EQ(accuracy.item<double>(), 1);
  const Error no_graph = error_of([&] { accuracy.backward(); });
  EXPECT_EQ(no_graph.code(), "E-REQUIRES-GRAD");
  EXPECT_NE(std::string(no_graph.what()).find("does not require grad"), std::string::npos);
  EXPECT_FALSE(x.grad().defined());
}

TEST_F(Engine, AG_09_broadcast_gradient_with_an_empty_dimension) {
  Tensor a = ones({4, 0}).requires_grad_(), b = ones({4}).requires_grad_();
  const Tensor loss = (a + b.unsqueeze(1)).sum();
  EXPECT_EQ(loss.item<double>(), 0);
  loss.backward();
  EXPECT_EQ(b.grad().to_vector<double>(), (Doubles{0, 0, 0, 0}));
  EXPECT_EQ(a.grad().sizes(), (Shape{4, 0}));
}

TEST_F(Engine, gradients_have_the_layout_of_their_leaf) {
  Tensor x = empty({2, 3, 2, 2}, {.memory_format = MemoryFormat::channels_last});
  x.fill_(1);
  x.requires_grad_();
  (x * 2).sum().backward();
  EXPECT_TRUE(x.grad().is_contiguous(MemoryFormat::channels_last));
  EXPECT_EQ(x.grad().to_vector<double>(), Doubles(24, 2.0));
}

TEST_F(Engine, an_incoming_gradient_is_not_shared_with_grad) {
  Tensor x = leaf({1});
  Tensor g = tensor({5.});
  x.backward(g);
  g.fill_(0);
  EXPECT_EQ(x.grad().to_vector<double>(), Doubles{5});
}

TEST_F(Engine, threads_may_run_passes_over_shared_leaves) {
  Tensor w = leaf({1});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) (w * 2).backward();
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(w.grad().to_vector<double>(), Doubles{400});
}

TEST_F(Engine, set_grad_checks_what_it_is_given) {
  Tensor x = leaf({1, 2});
  EXPECT_EQ(error_of([&] { x.set_grad(tensor({1.})); }).code(), "E-GRAD");
  EXPECT_EQ(error_of([&] { x.set_grad(tensor({1., 2.}, {.dtype = kFloat64})); }).code(), "E-GRAD");
  x.set_grad(tensor({1., 2.}));
  (x * 1).sum().backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{2, 3}));
}

TEST_F(Engine, a_queued_callback_runs_once_when_the_outermost_pass_has_ended) {
  Tensor x = leaf({1}), inner = leaf({1});
  std::vector<std::string> log;
  inner.register_post_accumulate_grad_hook(
      [&](const Tensor&) { autograd::queue_callback([&] { log.push_back("callback"); }); });
  const Tensor y = x * 2;
  Tensor hooked = y;
  hooked.register_hook([&](const Tensor& g) {
    AutoGradMode grad(true);
    (inner * 3).sum().backward();
    log.push_back("hook");
    return g;
  });
  x.register_post_accumulate_grad_hook([&](const Tensor&) { log.push_back("leaf"); });
  y.sum().backward();
  EXPECT_EQ(log, (std::vector<std::string>{"hook", "leaf", "callback"}));
}

TEST_F(Engine, a_callbacks_exception_reaches_the_caller_and_that_of_a_failed_pass_is_forgotten) {
  Tensor x = leaf({1});
  int calls = 0;
  bool fail = false;
  x.register_post_accumulate_grad_hook([&](const Tensor&) {
    autograd::queue_callback([&] {
      ++calls;
      throw std::runtime_error("callback");
    });
    if (fail) throw std::runtime_error("hook");
  });
  EXPECT_THROW((x * 2).sum().backward(), std::runtime_error);
  EXPECT_EQ(calls, 1);
  fail = true;
  EXPECT_THROW((x * 2).sum().backward(), std::runtime_error);
  EXPECT_EQ(calls, 1);
  Tensor other = leaf({1});
  (other * 2).sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(error_of([] { autograd::queue_callback([] {}); }).code(), "E-GRAD");
}

}  // namespace
}  // namespace gradus
