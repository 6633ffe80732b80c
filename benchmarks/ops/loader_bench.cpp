// Images a second that a DataLoader delivers: 60,000 of Fashion-MNIST's size, shuffled, in batches of 256, as
// normalised float32. Arguments: worker threads. The bound is 600,000 a second with 2 workers, batched.
#include <benchmark/benchmark.h>
#include <gradus/data/dataloader.h>
#include <gradus/data/image_data.h>
#include <gradus/data/transforms.h>
#include <gradus/tensor/views.h>

#include <memory>

namespace {

using namespace gradus;
using namespace gradus::transforms;

// Real images where they are installed, else bytes of the same shape: the work is the same.
std::shared_ptr<const Dataset> images() {
  static const std::shared_ptr<const Dataset> dataset = [] {
    try {
      const ImageSet set = load_image_data().train;
      return std::make_shared<TensorDataset>(set.images, set.labels);
    } catch (const Error&) {
      const Tensor bytes = empty({60000, 1, 28, 28}, kUInt8), labels = empty({60000}, kInt64);
      for (int64_t i = 0; i < bytes.numel(); ++i) bytes.data<uint8_t>()[i] = static_cast<uint8_t>(i * 7);
      for (int64_t i = 0; i < labels.numel(); ++i) labels.data<int64_t>()[i] = i % 10;
      return std::make_shared<TensorDataset>(bytes, labels);
    }
  }();
  return dataset;
}

Transform to_normalized() { return Compose({ToTensor(), Normalize({0.2860f}, {0.3530f})}); }

// The usual way to write a dataset: one sample at a time, transformed in get().
class OneByOne : public Dataset {
 public:
  int64_t size() const override { return images()->size(); }
  Example get(int64_t index) const override {
    Example sample = images()->get(index);
    BatchRequest request;
    request.indices = {&index, 1};
    sample.data = transform_(sample.data, request);
    return sample;
  }

 private:
  Transform transform_ = to_normalized();
};

void run_epochs(benchmark::State& state, std::shared_ptr<const Dataset> dataset) {
  const auto workers = static_cast<int>(state.range(0));
  DataLoader loader(std::move(dataset), {.batch_size = 256,
                                         .shuffle = true,
                                         .num_workers = workers,
                                         .persistent_workers = workers > 0,
                                         .seed = 0});
  int64_t images = 0;
  for (auto _ : state)
    for (auto& [data, target] : loader) {
      benchmark::DoNotOptimize(data.raw_data());
      images += target.numel();
    }
  state.SetItemsProcessed(images);
}

void loader_batched(benchmark::State& state) {
  run_epochs(state, std::make_shared<TransformedDataset>(images(), to_normalized()));
}
void loader_per_sample(benchmark::State& state) { run_epochs(state, std::make_shared<OneByOne>()); }
void loader_augmented(benchmark::State& state) {
  const Transform augment =
      Compose({RandomCrop(28, 2), RandomHorizontalFlip(), ToTensor(), Normalize({0.2860f}, {0.3530f})});
  run_epochs(state, std::make_shared<TransformedDataset>(images(), augment));
}

BENCHMARK(loader_batched)->Arg(0)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(loader_augmented)->Arg(0)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(loader_per_sample)->Arg(0)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
