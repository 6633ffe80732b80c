#include <gradus/data/batch_source.h>

namespace gradus::detail {
namespace {

class MapSource : public BatchSource {
 public:
  MapSource(std::shared_ptr<const Dataset> dataset, std::vector<std::vector<int64_t>> batches,
            CollateFunction collate, uint64_t seed, int64_t epoch, int workers)
      : dataset_(std::move(dataset)),
        batches_(std::move(batches)),
        collate_(std::move(collate)),
        seed_(seed),
        epoch_(epoch),
        taken_(static_cast<size_t>(workers)) {}

  std::optional<Example> next(int worker) override {
    const auto w = static_cast<size_t>(worker);
    const size_t k = w + taken_[w]++ * taken_.size();
    if (k >= batches_.size()) return {};
    if (collate_) return collate_(get_each(*dataset_, batches_[k]));
    return dataset_->get_batch({batches_[k], seed_, epoch_, 0});
  }

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::vector<std::vector<int64_t>> batches_;
  CollateFunction collate_;
  uint64_t seed_;
  int64_t epoch_;
  std::vector<size_t> taken_;  // batches by each worker; each touches its own
};

class StreamSource : public BatchSource {
 public:
  StreamSource(std::shared_ptr<const IterableDataset> dataset, const DataLoaderOptions& options,
               uint64_t seed, int64_t epoch, int workers)
      : dataset_(std::move(dataset)),
        collate_(options.collate ? options.collate : default_collate),
        batch_size_(static_cast<size_t>(options.batch_size)),
        drop_last_(options.drop_last),
        seed_(seed),
        epoch_(epoch),
        streams_(static_cast<size_t>(workers)) {}

  std::optional<Example> next(int worker) override {
    ExampleStream& stream = streams_[static_cast<size_t>(worker)];
    if (!stream) stream = dataset_->stream({worker, static_cast<int>(streams_.size()), seed_, epoch_});
    std::vector<Example> samples;
    while (samples.size() < batch_size_) {
      std::optional<Example> sample = stream();
      if (!sample) break;
      samples.push_back(std::move(*sample));
    }
    if (samples.empty() || (drop_last_ && samples.size() < batch_size_)) return {};
    return collate_(samples);
  }

 private:
  std::shared_ptr<const IterableDataset> dataset_;
  CollateFunction collate_;
  size_t batch_size_;
  bool drop_last_;
  uint64_t seed_;
  int64_t epoch_;
  std::vector<ExampleStream> streams_;  // each made and used by its worker
};

class PinningSource : public BatchSource {
 public:
  PinningSource(std::unique_ptr<BatchSource> source, Device device)
      : source_(std::move(source)), device_(device) {}

  std::optional<Example> next(int worker) override {
    std::optional<Example> batch = source_->next(worker);
    if (batch)
      for (Tensor* t : {&batch->data, &batch->target})
        if (t->defined()) *t = t->pin_memory(device_);
    return batch;
  }

 private:
  std::unique_ptr<BatchSource> source_;
  Device device_;
};

}  // namespace

std::unique_ptr<BatchSource> make_map_source(std::shared_ptr<const Dataset> dataset,
                                             std::vector<std::vector<int64_t>> batches,
                                             CollateFunction collate, uint64_t seed, int64_t epoch,
                                             int workers) {
  return std::make_unique<MapSource>(std::move(dataset), std::move(batches), std::move(collate), seed, epoch,
                                     workers);
}

std::unique_ptr<BatchSource> make_stream_source(std::shared_ptr<const IterableDataset> dataset,
                                                const DataLoaderOptions& options, uint64_t seed,
                                                int64_t epoch, int workers) {
  return std::make_unique<StreamSource>(std::move(dataset), options, seed, epoch, workers);
}

std::unique_ptr<BatchSource> make_pinning_source(std::unique_ptr<BatchSource> source, Device device) {
  return std::make_unique<PinningSource>(std::move(source), device);
}

}  // namespace gradus::detail
