// Lesson 06, the price: accuracy after the same training in float32, bfloat16 and float16, over three seeds.
//
// Run: build/release/lessons/06_amp_accuracy          with --data made: drawn digits
#include <fmt/format.h>
#include <gradus/gradus.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "../common/app.h"
#include "../common/models.h"

using namespace gradus;

// [snippet train]
struct Data {
  Tensor x, labels, test_x, test_labels;
};

Data load(const lesson::Flags& flags, Device device) {
  const ImageData images = lesson::load_images(flags);
  const int64_t n = flags.quick ? std::min<int64_t>(5000, images.train.size()) : images.train.size();
  const auto scaled = [&](const Tensor& pixels) {
    return (pixels.to(kFloat32).reshape({pixels.size(0), 784}) / 127.5 - 1).to(device);
  };
  std::printf("data: %s, %ld training and %ld test images\n", images.directory.c_str(), n,
              images.test.size());
  return {scaled(images.train.images.narrow(0, 0, n)), images.train.labels.narrow(0, 0, n).to(device),
          scaled(images.test.images), images.test.labels.to(device)};
}

// float32 is the same program with scope and scaler disabled.
double accuracy(const Data& data, DType dtype, uint64_t seed, const lesson::Flags& flags) {
  manual_seed(seed);
  const Device device = data.x.device();
  lesson::SimpleNet model;
  model.to(device);
  optim::Adam optimizer(model.parameters());
  amp::GradScaler scaler({.enabled = dtype == kFloat16});
  const amp::AutocastOptions options{.dtype = dtype == kFloat32 ? kBFloat16 : dtype,
                                     .enabled = dtype != kFloat32};
  const auto logits = [&](const Tensor& x) {
    amp::autocast scope(device.type(), options);
    return model(x);
  };
  for (int epoch = 0; epoch < flags.epochs; ++epoch) {
    const Tensor order = randperm(data.x.size(0)).to(device);
    for (int64_t i = 0; i < data.x.size(0); i += flags.batch_size) {
      lesson::check_interrupted("in training");
      const Tensor rows = order.narrow(0, i, std::min(flags.batch_size, data.x.size(0) - i));
      optimizer.zero_grad();
      const Tensor loss = cross_entropy(logits(index_select(data.x, 0, rows)).to(kFloat32),
                                        index_select(data.labels, 0, rows));
      scaler.scale(loss).backward();
      scaler.step(optimizer);
      scaler.update();
    }
  }
  NoGradGuard no_grad;
  return (logits(data.test_x).argmax(1) == data.test_labels).to(kFloat32).mean().item<double>();
}
// [/snippet train]

// [snippet interval]
// Mean and the half width of its 95 % interval, by Student's t for three samples.
void report(DType dtype, const std::vector<double>& samples) {
  double mean = 0, squares = 0;
  for (const double s : samples) mean += s / 3;
  for (const double s : samples) squares += (s - mean) * (s - mean);
  const double half = 4.303 * std::sqrt(squares / 2) / std::sqrt(3.0);
  fmt::print("{:<9} accuracy {:.4f}, 95 % interval {:.4f} wide: {:.4f} {:.4f} {:.4f}\n", to_string(dtype),
             mean, 2 * half, samples[0], samples[1], samples[2]);
  for (const double s : samples) lesson::result(str("C25_accuracy_", to_string(dtype)), s);
}
// [/snippet interval]

int main(int argc, char** argv) {
  lesson::Flags flags{.epochs = 3};
  return lesson::run(argc, argv, "Lesson 06: accuracy by precision", flags, [&] {
    const Device device = select_device(flags.device);
    std::printf("device: %s\n", to_string(device).c_str());
    const Data data = load(flags, device);
    for (const DType dtype : {kFloat32, kBFloat16, kFloat16}) {
      std::vector<double> samples;
      for (uint64_t seed = 0; seed < 3; ++seed)
        samples.push_back(accuracy(data, dtype, flags.seed + seed, flags));
      report(dtype, samples);
    }
  });
}
