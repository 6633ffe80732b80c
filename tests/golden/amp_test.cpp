// Mixed precision and accumulation give what they give in PyTorch.
#include <gradus/gradus.h>

#include <functional>

#include "golden.h"

namespace gradus::golden {
namespace {

struct Operands {
  Tensor x, y, i, t;
};
using Operation = std::function<Tensor(const Operands&)>;

const std::map<std::string, Operation>& operations() {
  static const std::map<std::string, Operation> all = {
      {"linear", [](const Operands& o) { return linear(o.x, o.y); }},
      {"matmul", [](const Operands& o) { return matmul(o.x, o.y.t()); }},
      {"mm", [](const Operands& o) { return mm(o.x, o.y.t()); }},
      {"bmm", [](const Operands& o) { return bmm(o.x.unsqueeze(0), o.y.t().unsqueeze(0)); }},
      {"vector", [](const Operands& o) { return matmul(o.x, o.y[0]); }},
      {"conv2d", [](const Operands& o) { return conv2d(o.i, o.i); }},
      {"exp", [](const Operands& o) { return exp(o.x); }},
      {"expm1", [](const Operands& o) { return expm1(o.x); }},
      {"log", [](const Operands& o) { return log(o.x); }},
      {"log1p", [](const Operands& o) { return log1p(o.x); }},
      {"reciprocal", [](const Operands& o) { return reciprocal(o.x); }},
      {"rdiv", [](const Operands& o) { return 1 / o.x; }},
      {"rsqrt", [](const Operands& o) { return rsqrt(o.x); }},
      {"pow", [](const Operands& o) { return pow(o.x, 3); }},
      {"pow_tensor", [](const Operands& o) { return pow(o.x, o.y); }},
      {"pow_of_number", [](const Operands& o) { return pow(Scalar(2), o.x); }},
      {"softplus", [](const Operands& o) { return softplus(o.x); }},
      {"softmax", [](const Operands& o) { return softmax(o.x, 1); }},
      {"log_softmax", [](const Operands& o) { return log_softmax(o.x, 1); }},
      {"logsumexp", [](const Operands& o) { return logsumexp(o.x, 1); }},
      {"layer_norm", [](const Operands& o) { return layer_norm(o.x, {3}); }},
      {"sum", [](const Operands& o) { return sum(o.x); }},
      {"sum_dim", [](const Operands& o) { return sum(o.x, 1); }},
      {"cumsum", [](const Operands& o) { return cumsum(o.x, 1); }},
      {"prod", [](const Operands& o) { return prod(o.x); }},
      {"prod_dim", [](const Operands& o) { return prod(o.x, 1); }},
      {"norm", [](const Operands& o) { return norm(o.x); }},
      {"mse_loss", [](const Operands& o) { return mse_loss(o.x, o.y); }},
      {"l1_loss", [](const Operands& o) { return l1_loss(o.x, o.y); }},
      {"huber_loss", [](const Operands& o) { return huber_loss(o.x, o.y); }},
      {"smooth_l1_loss", [](const Operands& o) { return smooth_l1_loss(o.x, o.y); }},
      {"binary_cross_entropy", [](const Operands& o) { return binary_cross_entropy(o.x, o.y); }},
      {"binary_cross_entropy_with_logits",
       [](const Operands& o) { return binary_cross_entropy_with_logits(o.x, o.y); }},
      {"cross_entropy", [](const Operands& o) { return cross_entropy(o.x, o.t); }},
      {"cross_entropy_soft", [](const Operands& o) { return cross_entropy(o.x, o.y); }},
      {"nll_loss", [](const Operands& o) { return nll_loss(o.x, o.t); }},
      {"pad_reflect",
       [](const Operands& o) {
         return pad(o.i, {1, 1, 1, 1}, PadMode::reflect);
       }},
      {"pad_replicate",
       [](const Operands& o) {
         return pad(o.i, {1, 1, 1, 1}, PadMode::replicate);
       }},
      {"pad_constant",
       [](const Operands& o) {
         return pad(o.i, {1, 1, 1, 1});
       }},
      {"cat",
       [](const Operands& o) {
         return cat({o.x, o.y});
       }},
      {"stack",
       [](const Operands& o) {
         return stack({o.x, o.y});
       }},
      {"add", [](const Operands& o) { return o.x + o.y; }},
      {"mul", [](const Operands& o) { return o.x * o.y; }},
      {"div", [](const Operands& o) { return o.x / o.y; }},
      {"where", [](const Operands& o) { return where(o.x > 0, o.x, o.y); }},
      {"mean", [](const Operands& o) { return mean(o.x); }},
      {"var", [](const Operands& o) { return var(o.x); }},
      {"sqrt", [](const Operands& o) { return sqrt(o.x); }},
      {"relu", [](const Operands& o) { return relu(o.x); }},
      {"gelu", [](const Operands& o) { return gelu(o.x); }},
      {"silu", [](const Operands& o) { return silu(o.x); }},
      {"sigmoid", [](const Operands& o) { return sigmoid(o.x); }},
      {"tanh", [](const Operands& o) { return tanh(o.x); }},
      {"max_pool2d", [](const Operands& o) { return max_pool2d(o.i, 2); }},
      {"avg_pool2d", [](const Operands& o) { return avg_pool2d(o.i, 2); }},
      {"batch_norm", [](const Operands& o) { return batch_norm(o.i, {}, {}, {}, {}, {.training = true}); }},
  };
  return all;
}

constexpr DType kOrder[] = {kFloat16, kBFloat16, kFloat32, kFloat64};

int64_t dtype_number(const Operation& operation, Device device, DType first, DType second) {
  const Operands o{full({2, 3}, 0.5, {.dtype = first, .device = device}),
                   full({2, 3}, 0.5, {.dtype = second, .device = device}),
                   full({1, 2, 4, 4}, 0.5, {.dtype = first, .device = device}),
                   zeros({2}, {.dtype = kInt64, .device = device})};
  try {
    return std::find(std::begin(kOrder), std::end(kOrder), operation(o).dtype()) - std::begin(kOrder);
  } catch (const Error&) {
    return -1;
  }
}

void check_dtypes(Device device, const std::string& list, DType half) {
  const DType pairs[][2] = {{half, half}, {kFloat32, kFloat32}, {half, kFloat32}, {kFloat64, kFloat64}};
  const std::string prefix = "autocast/" + list + "/";
  size_t known = 0;
  for (const auto& [name, wanted] : file("amp").tensors) {
    if (name.rfind(prefix, 0) != 0) continue;
    ++known;
    const auto operation = operations().find(name.substr(prefix.size()));
    ASSERT_NE(operation, operations().end()) << name;
    for (int64_t k = 0; k < 4; ++k) {
      amp::autocast scope(device.type());
      EXPECT_EQ(dtype_number(operation->second, device, pairs[k][0], pairs[k][1]), wanted[k].item<int64_t>())
          << name << " of " << to_string(pairs[k][0]) << " and " << to_string(pairs[k][1]);
    }
  }
  EXPECT_EQ(known, operations().size());
}

TEST(GoldenAmp, dtypes_under_autocast_on_the_cpu) { check_dtypes(Device(), "cpu", kBFloat16); }
TEST(GoldenAmp, dtypes_under_autocast_on_a_gpu_as_sim_has_them) {
  check_dtypes(Device("sim"), "cuda", kFloat16);
}

TEST(GoldenAmp, forty_steps_of_GradScaler_with_infinities) {
  const File& f = file("amp");
  Tensor p = f.at("scaler/p").new_zeros({3});
  for (int i = 0; i < 3; ++i) p.select(0, i).fill_(std::vector<double>{1, -2, 0.5}[i]);
  p.requires_grad_();
  optim::Adam adam({p}, {.lr = 0.01});
  amp::GradScaler scaler(
      {.init_scale = 1024, .growth_factor = 1.7, .backoff_factor = 0.3, .growth_interval = 4});
  for (int64_t k = 0; k < 40; ++k) {
    adam.zero_grad();
    scaler.scale((p * f.at("scaler/grad")[k]).sum()).backward();
    scaler.step(adam);
    scaler.update();
    EXPECT_EQ(scaler.get_scale(), f.at("scaler/scale")[k].item<double>()) << k;
    EXPECT_EQ(scaler.get_growth_tracker(), f.at("scaler/tracker")[k].item<int64_t>()) << k;
    EXPECT_TRUE(close(p.detach(), f.at("scaler/p")[k], 1e-6)) << k;
  }
  EXPECT_EQ(scaler.skipped_steps(), 6);
}

TEST(GoldenAmp, seven_micro_batches_in_groups_of_four) {
  const File& f = file("amp");
  Tensor w = f.at("accumulation/start").clone().requires_grad_();
  optim::SGD sgd({w}, {.lr = 0.1, .momentum = 0.9});
  const int64_t first[] = {0, 4, 7};
  for (int64_t group = 0; group < 2; ++group) {
    sgd.zero_grad();
    const int64_t size = first[group + 1] - first[group];
    for (int64_t k = first[group]; k < first[group + 1]; ++k) {
      const Tensor y = linear(f.at("accumulation/x")[k], w);
      (mse_loss(y, f.at("accumulation/y")[k]) / static_cast<double>(size)).backward();
    }
    EXPECT_TRUE(close(w.grad(), f.at("accumulation/grad")[group], 1e-14));
    sgd.step();
    EXPECT_TRUE(close(w.detach(), f.at("accumulation/w")[group], 1e-14));
  }
}

}  // namespace
}  // namespace gradus::golden
