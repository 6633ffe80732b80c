// Lesson 06: mixed precision.
//
// You will learn how float16 and bfloat16 divide their 16 bits, what autocast converts and what it leaves,
// why small gradients are lost in float16 and how a scaled loss saves them, and in which order scale,
// unscale, clip, step and update belong.
//
// Run: ./gradus learn 06          or: build/release/lessons/06_amp --device cpu
#include <fmt/format.h>
#include <gradus/gradus.h>

#include <cmath>
#include <cstdio>

#include "../common/app.h"
#include "../common/models.h"

using namespace gradus;

// [snippet formats]
// What `value` becomes in `dtype`.
double as(DType dtype, double value) { return full({}, value).to(dtype).item<double>(); }

// Measured, not looked up: how far 1 + 2^-k, 2^-k and 2^k can be told from 1, 0 and infinity.
void formats() {
  lesson::section(1, "Three formats");
  fmt::print("{:<9} {:>9} {:>9} {:>12} {:>12} {:>12} {:>10}\n", "", "exponent", "fraction", "largest",
             "smallest", "1e-8", "70000");
  for (const DType dtype : {kFloat32, kFloat16, kBFloat16}) {
    int fraction = 0, smallest = 0, top = 0;
    while (as(dtype, 1 + std::ldexp(1, -fraction - 1)) != 1) ++fraction;
    while (as(dtype, std::ldexp(1, -smallest - 1)) != 0) ++smallest;
    while (std::isfinite(as(dtype, std::ldexp(1, top + 1)))) ++top;
    const int exponent = static_cast<int>(element_size(dtype)) * 8 - 1 - fraction;
    const double largest = std::ldexp(2 - std::ldexp(1, -fraction), top);
    fmt::print("{:<9} {:>9} {:>9} {:>12.4g} {:>12.4g} {:>12.5g} {:>10g}\n", to_string(dtype), exponent,
               fraction, largest, std::ldexp(1, -smallest), as(dtype, 1e-8), as(dtype, 70000));
    lesson::result("C28_exponent_bits", exponent);
    lesson::result("C28_fraction_bits", fraction);
  }
  fmt::print("1e-8 * 65536 in float16: {:.5g}\n", as(kFloat16, 1e-8 * 65536));
}
// [/snippet formats]

// [snippet autocast]
void autocasting(Device device, DType half) {
  lesson::section(2, "What autocast converts");
  lesson::SimpleNet model;
  model.to(device);
  const Tensor x = randn({32, 784}).to(device), labels = randint(10, {32}).to(device);
  Tensor output, loss;
  {
    amp::autocast scope(device.type(), {.dtype = half});
    output = model(x);
    loss = cross_entropy(output, labels);
    const int64_t before = stats().launches;
    model(x);
    fmt::print("launches of a second pass: {}, no weight is converted again\n", stats().launches - before);
    amp::autocast island(device.type(), {.enabled = false});
    lesson::print_error([&] { model(output.narrow(1, 0, 1).expand({32, 784})); });
  }
  loss.backward();
  fmt::print("input {}, output {}, loss {}, parameters {}, their gradients {}\n", to_string(x.dtype()),
             to_string(output.dtype()), to_string(loss.dtype()), to_string(model.parameters()[0].dtype()),
             to_string(model.parameters()[0].grad().dtype()));
}
// [/snippet autocast]

// [snippet underflow]
// A mean over many numbers makes small gradients: here 128 pictures of 784 pixels, in [0, 1].
std::vector<Tensor> gradients(Device device, DType dtype, amp::GradScaler& scaler) {
  manual_seed(0);
  nn::Sequential model(nn::Linear(784, 64), nn::ReLU(), nn::Linear(64, 784));
  model->to(device);
  const Tensor x = rand({128, 784}).to(device);
  optim::SGD optimizer(model->parameters(), {.lr = 0.1});
  Tensor loss;
  {
    amp::autocast scope(device.type(),
                        {.dtype = dtype == kFloat32 ? kBFloat16 : dtype, .enabled = dtype != kFloat32});
    loss = mse_loss(model(x), x * 0.05) * 0.01;  // one of several losses, of little weight
  }
  scaler.scale(loss).backward();
  scaler.unscale_(optimizer);
  std::vector<Tensor> grads;
  for (const Tensor& p : model->parameters()) grads.push_back(p.grad());
  return grads;
}

void underflow(Device device) {
  lesson::section(3, "Gradients that become 0");
  amp::GradScaler none({.enabled = false});
  const std::vector<Tensor> exact = gradients(device, kFloat32, none);
  const auto lost = [&](const char* name, DType dtype, bool scaled) {
    amp::GradScaler scaler({.enabled = scaled});
    const std::vector<Tensor> grads = gradients(device, dtype, scaler);
    int64_t zero = 0, all = 0;
    for (size_t i = 0; i < grads.size(); ++i) {
      const Tensor there = exact[i] != 0;
      all += there.sum().item<int64_t>();
      zero += logical_and(there, grads[i] == 0).sum().item<int64_t>();
    }
    fmt::print("{:<28} {:>6} of {} ({:.1f} %)\n", name, zero, all, 100.0 * zero / all);
    lesson::result(str("C26_lost_", scaled ? "scaled_" : "", to_string(dtype)), static_cast<double>(zero));
  };
  lost("float16:", kFloat16, false);
  lost("float16, loss times 65536:", kFloat16, true);
  lost("bfloat16:", kBFloat16, false);
}
// [/snippet underflow]

// [snippet clip]
// The true gradient is (3, 4), of norm 5, and the step is clipped to norm 1.
void clipping(Device device, bool unscale_first) {
  Tensor p = zeros({2}, {.device = device}).requires_grad_();
  optim::SGD optimizer({p}, {.lr = 1});
  amp::GradScaler scaler({.init_scale = 1024});
  scaler.scale((p * tensor({3.f, 4.f}).to(device)).sum()).backward();
  if (unscale_first) scaler.unscale_(optimizer);
  const double norm = nn::utils::clip_grad_norm_({p}, 1).item<double>();
  scaler.step(optimizer);
  scaler.update();
  const auto v = p.to_vector<double>();
  fmt::print("{} norm {:g}, parameters after the step {:.5f} {:.5f}\n",
             unscale_first ? "unscale_, clip:" : "clip alone:    ", norm, v[0], v[1]);
}
// [/snippet clip]

// [snippet skip]
void skipping(Device device) {
  lesson::section(4, "GradScaler: order, and steps that are skipped");
  clipping(device, true);
  clipping(device, false);
  Tensor p = ones({1}, {.device = device}).requires_grad_();
  optim::Adam optimizer({p}, {.lr = 0.1});
  amp::GradScaler scaler({.growth_interval = 3});
  optim::StepLR scheduler(optimizer, 1000);
  for (const double g : {1.0, 1e40, 1.0, 1.0, 1.0, std::nan(""), 1.0}) {
    optimizer.zero_grad();
    scaler.scale((p * g).sum()).backward();
    const bool stepped = scaler.step(optimizer);
    if (stepped) scheduler.step();  // or it would run ahead of the optimizer
    scaler.update();
    fmt::print("gradient {:>5g}: {:<7} parameter {:.2f}, scale {:g}\n", g, stepped ? "stepped" : "skipped",
               p.item<double>(), scaler.get_scale());
  }
  fmt::print("skipped steps: {}\n", scaler.skipped_steps());
  scaler.scale(p.sum()).backward();
  scaler.unscale_(optimizer);
  lesson::print_error([&] { scaler.unscale_(optimizer); });
}
// [/snippet skip]

int main(int argc, char** argv) {
  lesson::Flags flags{.unused = "--epochs, --batch-size, --data and --quick"};
  return lesson::run(argc, argv, "Lesson 06: mixed precision", flags, [&] {
    const Device device = select_device(flags.device);
    std::printf("device: %s\n", to_string(device).c_str());
    formats();
    autocasting(device, kBFloat16);
    underflow(device);
    skipping(device);
  });
}
