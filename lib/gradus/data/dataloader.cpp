#include <gradus/base/log.h>
#include <gradus/base/random.h>
#include <gradus/data/dataloader.h>
#include <gradus/data/epoch.h>
#include <gradus/runtime/device_info.h>

#include <cmath>

namespace gradus {
namespace {

constexpr int kDefaultPrefetch = 2;

std::shared_ptr<const Sampler> sampler_for(const DataLoaderOptions& options, int64_t n) {
  if (options.sampler) return options.sampler;
  if (options.shuffle) return std::make_shared<RandomSampler>(n);
  return std::make_shared<SequentialSampler>(n);
}

}  // namespace

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, DataLoaderOptions options)
    : options_(std::move(options)), dataset_(std::move(dataset)) {
  GRADUS_CHECK(dataset_, "E-ARG", "DataLoader: the dataset is null");
  check_options();
  batch_sampler_ = options_.batch_sampler
                       ? options_.batch_sampler
                       : std::make_shared<BatchSampler>(sampler_for(options_, dataset_->size()),
                                                        options_.batch_size, options_.drop_last);
}

DataLoader::DataLoader(std::shared_ptr<const IterableDataset> dataset, DataLoaderOptions options)
    : options_(std::move(options)), iterable_(std::move(dataset)) {
  GRADUS_CHECK(iterable_, "E-ARG", "DataLoader: the dataset is null");
  check_options();
  GRADUS_CHECK(!options_.shuffle && !options_.sampler && !options_.batch_sampler, "E-ARG",
               "DataLoader: an iterable dataset sets its own order; shuffle and samplers do not apply to it");
  if (options_.num_workers > 1 && !iterable_->is_sharded())
    warn("DataLoader: each of the ", options_.num_workers,
         " workers gets the whole stream, so every sample comes ", options_.num_workers,
         " times; give each its share (see shard()) and let is_sharded() return true");
}

DataLoader::~DataLoader() = default;
DataLoader::DataLoader(DataLoader&&) noexcept = default;

void DataLoader::check_options() const {
  const DataLoaderOptions& o = options_;
  GRADUS_CHECK(o.batch_size >= 1, "E-ARG", "DataLoader: batch_size must be at least 1, got ", o.batch_size);
  GRADUS_CHECK(o.num_workers >= 0, "E-ARG", "DataLoader: num_workers must not be negative, got ",
               o.num_workers);
  GRADUS_CHECK(o.timeout >= 0 && std::isfinite(o.timeout), "E-ARG",
               "DataLoader: timeout must be a number of seconds from 0, got ", o.timeout);
  GRADUS_CHECK(!o.prefetch_factor || *o.prefetch_factor >= 1, "E-ARG",
               "DataLoader: prefetch_factor must be at least 1, got ", o.prefetch_factor.value_or(0));
  if (o.num_workers == 0) {
    const char* needs = o.persistent_workers ? "persistent_workers"
                        : o.prefetch_factor  ? "prefetch_factor"
                        : o.timeout > 0      ? "timeout"
                                             : nullptr;
    GRADUS_CHECK(!needs, "E-ARG", "DataLoader: ", needs, " needs workers, but num_workers is 0",
                 hint("set num_workers to 1 or more, or leave ", needs, " out"));
  }
  GRADUS_CHECK(!(o.sampler && o.shuffle), "E-ARG", "DataLoader: sampler and shuffle exclude each other");
  GRADUS_CHECK(!o.batch_sampler || (o.batch_size == 1 && !o.shuffle && !o.sampler && !o.drop_last), "E-ARG",
               "DataLoader: batch_sampler excludes batch_size, shuffle, sampler and drop_last");
  if (o.pin_memory && !is_available())
    GRADUS_WARN_ONCE(
        "DataLoader: pin_memory has no effect, there is no device that copies from pinned memory");
}

uint64_t DataLoader::seed() const {
  return options_.seed ? *options_.seed : default_generator().initial_seed();
}

int64_t DataLoader::size() const {
  GRADUS_CHECK(batch_sampler_, "E-ARG", "DataLoader: the length of an iterable dataset is not known");
  return batch_sampler_->size();
}

DataLoader::Iterator DataLoader::begin() {
  if (auto running = current_.lock()) running->supersede();
  std::shared_ptr<detail::Epoch> epoch = new_epoch();
  if (options_.persistent_workers) current_ = epoch;
  ++epoch_;
  return Iterator(std::move(epoch));
}

std::shared_ptr<detail::Epoch> DataLoader::new_epoch() {
  const int sources = std::max(1, options_.num_workers);
  auto source = iterable_ ? detail::make_stream_source(iterable_, options_, seed(), epoch_, sources)
                          : detail::make_map_source(dataset_, batch_sampler_->batches(seed(), epoch_),
                                                    options_.collate, seed(), epoch_, sources);
  // Which device is current is a thread's own matter, so it is asked here, not by a worker.
  if (options_.pin_memory && is_available())
    source = detail::make_pinning_source(std::move(source), current_accelerator());
  std::shared_ptr<detail::WorkerPool> pool = pool_;
  if (!pool && options_.num_workers > 0) pool = std::make_shared<detail::WorkerPool>(options_.num_workers);
  if (options_.persistent_workers) pool_ = pool;
  const auto prefetch = static_cast<size_t>(options_.prefetch_factor.value_or(kDefaultPrefetch));
  return std::make_shared<detail::Epoch>(std::move(source), std::move(pool), prefetch, options_.timeout);
}

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  batch_.reset();  // before the next is made, so that its memory can be reused
  if (std::optional<Example> next = epoch_->next()) {
    batch_ = std::make_shared<Example>(std::move(*next));
  } else {
    epoch_.reset();  // joins the workers
  }
  return *this;
}

}  // namespace gradus
