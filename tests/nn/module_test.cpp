#include <gradus/base/log.h>
#include <gradus/nn/nn.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/random.h>
#include <gradus/tensor/grad_mode.h>

#include "support/expect_error.h"

namespace gradus::nn {
namespace {

using ::gradus::testing::error_of;
using ::testing::ElementsAre;

struct SimpleNet : Module {
  Linear fc1 = register_module("fc1", Linear(4, 3));
  Linear fc2 = register_module("fc2", Linear(3, 2));
  Tensor offset = register_buffer("offset", ones({2}));
  Tensor forward(const Tensor& x) override { return fc2(relu(fc1(x))) + offset; }
};

std::vector<std::string> names(const std::vector<std::pair<std::string, Tensor>>& named) {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : named) out.push_back(name);
  return out;
}

TEST(Module, parameters_buffers_and_modules_by_name) {
  SimpleNet net;
  EXPECT_THAT(names(net.named_parameters()), ElementsAre("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"));
  EXPECT_THAT(names(net.named_buffers()), ElementsAre("offset"));
  EXPECT_EQ(net.parameters().size(), 4u);
  EXPECT_EQ(net.buffers().size(), 1u);
  std::vector<std::string> modules;
  for (const auto& [name, module] : net.named_modules()) modules.push_back(name);
  EXPECT_THAT(modules, ElementsAre("", "fc1", "fc2"));
  EXPECT_EQ(net(ones({5, 4})).sizes(), (Shape{5, 2}));
  for (const Tensor& p : net.parameters()) EXPECT_TRUE(p.requires_grad() && p.is_leaf());
}

TEST(Module, a_shared_tensor_is_one_parameter_with_two_names_in_the_state) {
  struct Tied : Module {
    Linear in = register_module("in", Linear(2, 2, false));
    Linear out = register_module("out", in);
  } net;
  EXPECT_THAT(names(net.named_parameters()), ElementsAre("in.weight"));
  EXPECT_EQ(net.parameters().size(), 1u);
  EXPECT_EQ(net.state_dict().size(), 2u);
  EXPECT_TRUE(net.state_dict().contains("out.weight"));
  EXPECT_TRUE(net.load_state_dict(net.state_dict()).missing.empty());
  net.to(kFloat64);
  EXPECT_EQ(net.out->weight.dtype(), kFloat64);
}

TEST(Module, MOD_01_modules_in_a_plain_list_are_not_registered) {
  struct Plain : Module {
    std::vector<Linear> l = {Linear(2, 3), Linear(3, 1)};
  };
  struct Listed : Module {
    ModuleList l = register_module("l", ModuleList(Linear(2, 3), Linear(3, 1)));
  };
  EXPECT_TRUE(Plain().parameters().empty());
  Listed listed;
  EXPECT_THAT(names(listed.named_parameters()),
              ElementsAre("l.0.weight", "l.0.bias", "l.1.weight", "l.1.bias"));
  int64_t elements = 0;
  for (const Tensor& p : listed.parameters()) elements += p.numel();
  EXPECT_EQ(elements, 13);
  listed.to(kFloat64);
  for (const Tensor& p : listed.parameters()) EXPECT_EQ(p.dtype(), kFloat64);
}

TEST(Module, names_are_checked) {
  SimpleNet net;
  EXPECT_EQ(error_of([&] { net.register_buffer("fc1", ones({1})); }),
            "E-ARG: Module: 'fc1' is registered already");
  EXPECT_EQ(error_of([&] { net.register_parameter("a.b", ones({1})); }),
            "E-ARG: Module: 'a.b' cannot be a name\n  hint: names are not empty and hold no dot");
  EXPECT_GRADUS_ERROR(net.register_module("", Linear(1, 1)), "E-ARG", "''");
  EXPECT_GRADUS_ERROR(net.register_module("empty", std::shared_ptr<Module>()), "E-ARG", "'empty' is empty");
  EXPECT_EQ(error_of([] { Module()(ones({1})); }),
            "E-NOT-IMPLEMENTED: Module: forward() is not defined\n  hint: override forward() in your module");
}

TEST(Module, train_and_eval_reach_every_module) {
  Sequential net(Sequential(Dropout(0.5)), Linear(2, 2));
  EXPECT_TRUE(net->is_training());
  net->eval();
  for (const auto& [name, module] : net->named_modules()) EXPECT_FALSE(module->is_training()) << name;
  net->train();
  for (const auto& [name, module] : net->named_modules()) EXPECT_TRUE(module->is_training()) << name;
}

TEST(Module, apply_visits_children_first) {
  SimpleNet net;
  std::vector<std::string> seen;
  net.apply([&](Module& m) { seen.push_back(m.describe()); });
  EXPECT_THAT(seen, ElementsAre("Linear(in_features=4, out_features=3, bias=True)",
                                "Linear(in_features=3, out_features=2, bias=True)", "SimpleNet"));
}

TEST(Module, hooks_see_and_replace_input_and_output) {
  Linear layer(2, 1, false);
  init::ones_(layer->weight);
  std::vector<std::string> calls;
  layer->register_forward_pre_hook([&](Module&, const Tensor& x) {
    calls.push_back("before");
    return x * 10;
  });
  layer->register_forward_hook([&](Module& m, const Tensor& x, const Tensor& y) {
    calls.push_back("after");
    EXPECT_EQ(&m, layer.ptr().get());
    EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{10, 20}));
    EXPECT_EQ(y.item<float>(), 30);
    return Tensor();  // leaves the output as it is
  });
  layer->register_forward_hook([&](Module&, const Tensor&, const Tensor& y) { return y + 1; });
  EXPECT_EQ(layer(tensor<float>({1, 2}, {1, 2})).item<float>(), 31);
  EXPECT_THAT(calls, ElementsAre("before", "after"));
}

TEST(Module, to_converts_in_place_and_takes_gradients_along) {
  SimpleNet net;
  const Tensor weight = net.fc1->weight;
  net(ones({2, 4})).sum().backward();
  net.to(kFloat64);
  EXPECT_EQ(weight.dtype(), kFloat64);  // a handle from before sees it
  EXPECT_EQ(weight.grad().dtype(), kFloat64);
  EXPECT_EQ(net.offset.dtype(), kFloat64);
  EXPECT_TRUE(weight.requires_grad() && weight.is_leaf());
  net.zero_grad();
  EXPECT_FALSE(weight.grad().defined());
  net(ones({2, 4}, kFloat64)).sum().backward();
  EXPECT_EQ(weight.grad().dtype(), kFloat64);
  EXPECT_EQ(error_of([&] { net.to(kInt64); }),
            "E-DTYPE: Module::to: only floating point dtypes are accepted, got int64");
}

TEST(Module, to_leaves_integer_buffers_alone) {
  BatchNorm1d norm(2);
  norm->to(kFloat16);
  EXPECT_EQ(norm->running_mean.dtype(), kFloat16);
  EXPECT_EQ(norm->num_batches_tracked.dtype(), kInt64);
}

TEST(Module, zero_grad_and_requires_grad) {
  SimpleNet net;
  net(ones({1, 4})).sum().backward();
  net.zero_grad(false);
  EXPECT_EQ(net.fc2->bias.grad().to_vector<float>(), (std::vector<float>{0, 0}));
  net.requires_grad_(false);
  EXPECT_FALSE(net(ones({1, 4})).requires_grad());
  net.requires_grad_();
  EXPECT_TRUE(net(ones({1, 4})).requires_grad());
}

TEST(Module, prints_like_pytorch) {
  struct Net : Module {
    Sequential features = register_module(
        "features",
        Sequential(Conv2d(1, 32, 3, {.padding = 1}), BatchNorm2d(32), ReLU(), MaxPool2d(2), Flatten()));
    Dropout drop = register_module("drop", Dropout(0.25));
    Linear fc = register_module("fc", Linear(6272, 10, false));
    Identity nothing = register_module("nothing", Identity());
  };
  EXPECT_EQ(str(Net()),
            "Net(\n"
            "  (features): Sequential(\n"
            "    (0): Conv2d(1, 32, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))\n"
            "    (1): BatchNorm2d(32, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)\n"
            "    (2): ReLU()\n"
            "    (3): MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)\n"
            "    (4): Flatten(start_dim=1, end_dim=-1)\n"
            "  )\n"
            "  (drop): Dropout(p=0.25, inplace=False)\n"
            "  (fc): Linear(in_features=6272, out_features=10, bias=False)\n"
            "  (nothing): Identity()\n"
            ")");
  EXPECT_EQ(str(Sequential()), "Sequential()");
  EXPECT_EQ(str(LayerNorm(Shape{4, 5})), "LayerNorm((4, 5), eps=1e-05, elementwise_affine=True)");
  EXPECT_EQ(str(LayerNorm(Shape{4})), "LayerNorm((4,), eps=1e-05, elementwise_affine=True)");
  EXPECT_EQ(str(Embedding(10, 3)), "Embedding(10, 3)");
  EXPECT_EQ(str(Embedding(10, 3, 0)), "Embedding(10, 3, padding_idx=0)");
  EXPECT_EQ(str(AvgPool2d(Size2(3, 2))), "AvgPool2d(kernel_size=(3, 2), stride=(3, 2), padding=0)");
  EXPECT_EQ(str(AdaptiveAvgPool2d(1)), "AdaptiveAvgPool2d(output_size=1)");
  EXPECT_EQ(str(GELU()), "GELU(approximate='none')");
  EXPECT_EQ(str(Softmax(1)), "Softmax(dim=1)");
  EXPECT_EQ(str(LeakyReLU()), "LeakyReLU(negative_slope=0.01)");
}

TEST(Module, that_would_contain_itself_is_refused) {
  auto inner = std::make_shared<SequentialImpl>();
  auto outer = std::make_shared<SequentialImpl>(inner);
  EXPECT_GRADUS_ERROR(outer->push_back(outer), "E-ARG", "cannot contain itself");
  EXPECT_GRADUS_ERROR(inner->push_back(outer), "E-ARG", "cannot contain itself");
  EXPECT_EQ(outer->size(), 1u);
}

}  // namespace
}  // namespace gradus::nn
