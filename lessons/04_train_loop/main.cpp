// Lesson 04: the full training loop.
//
// You will learn to train a convolutional network on real images: data loading, the loop, validation, a
// learning curve, checkpoints that continue bit for bit, and what reading the loss every step costs.
//
// Run: ./gradus learn 04          or: build/release/lessons/04_train_loop --epochs 10 --curve curve.csv
#include <fmt/format.h>
#include <gradus/gradus.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>

#include "../common/app.h"
#include "../common/curve.h"
#include "../common/models.h"
#include "../common/progress.h"
#include "../common/resume.h"

using namespace gradus;

struct Options : lesson::Flags {
  std::string checkpoint, resume, curve;
  int workers = 2;
};

// [snippet data]
struct Loaders {
  DataLoader train, test;
};

// Bytes become floats in [-1, 1]. The order of the training images depends on the seed and the epoch alone.
Loaders load_data(const Options& o, Device device) {
  ImageData data = lesson::load_images(o);
  const int64_t used = o.quick ? std::min<int64_t>(30000, data.train.size()) : data.train.size();
  data.train = {data.train.images.narrow(0, 0, used), data.train.labels.narrow(0, 0, used)};
  std::printf("data: %s, %ld training and %ld test images\n", data.directory.c_str(), used, data.test.size());
  const Transform transform =
      transforms::Compose({transforms::ToTensor(), transforms::Normalize({0.5f}, {0.5f})});
  auto dataset = [&](const ImageSet& set) {
    return TransformedDataset(std::make_shared<TensorDataset>(set.images, set.labels), transform);
  };
  return {DataLoader(dataset(data.train), {.batch_size = o.batch_size,
                                           .shuffle = true,
                                           .num_workers = o.workers,
                                           .pin_memory = !device.is_cpu(),
                                           .persistent_workers = o.workers > 0,
                                           .seed = o.seed}),
          DataLoader(dataset(data.test),
                     {.batch_size = o.batch_size, .num_workers = o.workers, .pin_memory = !device.is_cpu()})};
}
// [/snippet data]

// [snippet epoch]
// One pass over the data; with an optimizer it trains. The next batch is copied to the device while this one
// is used. The sums stay on the device: two .item() an epoch, not two a batch.
lesson::Score run_epoch(nn::Module& model, DataLoader& loader, optim::Optimizer* optimizer, Device device,
                        const std::string& title) {
  model.train(optimizer != nullptr);
  AutoGradMode grad_mode(optimizer != nullptr);
  lesson::Progress progress(title, loader.size());
  Tensor loss_sum = zeros({}, {.device = device}), correct = zeros({}, {.dtype = kInt64, .device = device});
  int64_t samples = 0;
  for (auto& [images, y] : DevicePrefetcher(loader, device)) {
    lesson::check_interrupted("in " + title);
    const Tensor output = model(images.to(MemoryFormat::channels_last));
    const Tensor loss = cross_entropy(output, y);
    if (optimizer) {
      optimizer->zero_grad();
      loss.backward();
      optimizer->step();
    }
    NoGradGuard no_grad;
    loss_sum.add_(loss * y.size(0));  // by size: the last batch is smaller
    correct.add_((output.argmax(1) == y).sum());
    samples += y.size(0);
    progress.add(1, y.size(0));
  }
  return {loss_sum.item<double>() / static_cast<double>(samples),
          correct.item<double>() / static_cast<double>(samples)};
}
// [/snippet epoch]

// [snippet checkpoint]
// All that the next epoch depends on. The loader's order follows from seed and epoch, so a run that goes on
// must have the settings of the one that was saved.
void save(const std::string& path, nn::Module& model, optim::Optimizer& optimizer, int64_t epoch,
          const lesson::Settings& settings) {
  Checkpoint c;
  c["model"].tensors = model.state_dict();
  c["optimizer"].tensors = optimizer.state_dict();
  const auto rng = default_generator().get_state();
  c["rng"].tensors.add("state", tensor(std::vector<uint8_t>(rng.begin(), rng.end())));
  c["progress"].values["epoch"] = epoch;
  lesson::keep_settings(c["settings"], settings);
  save_checkpoint(path, c);
}

int64_t load(const std::string& path, nn::Module& model, optim::Optimizer& optimizer,
             const lesson::Settings& settings) {
  const Checkpoint c = load_checkpoint(path);
  lesson::check_settings(path, c.at("settings"), settings);
  const int64_t epoch = c.at("progress").get_int("epoch");
  const Tensor rng = c.at("rng").tensors.at("state");
  lesson::naming(path, [&] {
    model.load_state_dict(c.at("model").tensors);
    optimizer.load_state_dict(c.at("optimizer").tensors);
  });
  default_generator().set_state({rng.data<uint8_t>(), static_cast<size_t>(rng.numel())});
  return epoch;
}
// [/snippet checkpoint]

// [snippet train]
void train(Options o) {
  if (o.quick) o.epochs = 1;
  const Device device = select_device(o.device);
  std::printf("device: %s\n", to_string(device).c_str());
  Loaders loaders = load_data(o, device);
  lesson::CNN model;
  model.to(device);
  optim::Adam optimizer(model.parameters(), {.lr = 1e-3});
  const lesson::Settings settings = {{"--seed", str(o.seed)},
                                     {"--batch-size", str(o.batch_size)},
                                     {"batches an epoch", str(loaders.train.size())}};
  const int64_t done = o.resume.empty() ? 0 : load(o.resume, model, optimizer, settings);
  if (done > 0) std::printf("resumed after epoch %ld of %d\n", done, o.epochs);
  if (done >= o.epochs) std::printf("nothing is left to do: --epochs counts from the first run's start\n");
  lesson::Curve curve(o.curve, done);
  for (int64_t epoch = done + 1; epoch <= o.epochs; ++epoch) {
    const std::string title = str("epoch ", epoch, "/", o.epochs);
    loaders.train.set_epoch(epoch);
    const auto training = run_epoch(model, loaders.train, &optimizer, device, title);
    GRADUS_CHECK(std::isfinite(training.loss), "E-NONFINITE", title, ": the training loss is ", training.loss,
                 hint("the checkpoint of an earlier epoch is as it was"));
    const auto validation = run_epoch(model, loaders.test, nullptr, device, title + " validation");
    fmt::print("Epoch {:02} | Train {} | Val {}\n         | {}\n", epoch, to_string(training),
               to_string(validation), lesson::usage(device));
    std::fflush(stdout);
    curve.add(epoch, training, validation);
    if (!o.checkpoint.empty()) save(o.checkpoint, model, optimizer, epoch, settings);
  }
}
// [/snippet train]

int main(int argc, char** argv) {
  Options o;
  auto more = [&](CLI::App& app) {
    app.add_option("--checkpoint", o.checkpoint, "written after each epoch")->check(lesson::directory_exists);
    app.add_option("--resume", o.resume, "checkpoint to go on from")->check(CLI::ExistingFile);
    app.add_option("--curve", o.curve, "CSV file for the learning curve")->check(lesson::directory_exists);
    app.add_option("--workers", o.workers, "loader threads")->check(CLI::Range(0, 64))->capture_default_str();
  };
  return lesson::run(
      argc, argv, "Lesson 04: the full training loop", o, [&] { train(o); }, more);
}
