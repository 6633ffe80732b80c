// Batches of a dataset, made ahead of time by worker threads.
#pragma once
#include <gradus/data/dataset.h>
#include <gradus/data/sampler.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

namespace gradus {

using CollateFunction = std::function<Example(const std::vector<Example>&)>;

/// PyTorch's arguments, by its names.
struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;                         ///< a new order each epoch
  std::shared_ptr<const Sampler> sampler = {};  ///< in place of shuffle
  /// In place of batch_size, shuffle, sampler and drop_last.
  std::shared_ptr<const BatchSampler> batch_sampler = {};
  int num_workers = 0;           ///< threads; 0 makes each batch when it is asked for
  CollateFunction collate = {};  ///< in place of the dataset's get_batch()
  /// Batches in pinned memory, for copies to current_accelerator() that do not block; without an accelerator
  /// no effect, and a warning.
  bool pin_memory = false;
  bool drop_last = false;                   ///< leaves out a last batch that is not full
  double timeout = 0;                       ///< seconds to wait for a batch; 0 waits for ever
  std::optional<int> prefetch_factor = {};  ///< batches each worker makes ahead; 2 unless given
  bool persistent_workers = false;          ///< keeps the threads between epochs
  std::optional<uint64_t> seed = {};        ///< of shuffle and transforms; the default generator's if empty
};

namespace detail {
class Epoch;
class WorkerPool;
}  // namespace detail

/// `for (auto& [data, target] : loader)` is one epoch.
///
/// What an epoch yields, and in which order, depends on the seed, the epoch's number and the dataset; not on
/// the number of workers. Iterating draws nothing from any generator. Each begin() starts the next epoch:
/// after resuming, set_epoch() says which one that is. Leaving an epoch early discards what was made ahead.
///
/// An exception in a worker reaches the caller as an Error of the same code that names the worker and, if it
/// came from Dataset::get(), the index; the epoch then is over.
class DataLoader {
 public:
  /// Throws E-ARG for options that are out of range or contradict each other.
  explicit DataLoader(std::shared_ptr<const Dataset> dataset, DataLoaderOptions options = {});
  explicit DataLoader(std::shared_ptr<const IterableDataset> dataset, DataLoaderOptions options = {});
  template <class D>
  requires std::derived_from<D, Dataset> || std::derived_from<D, IterableDataset>
  explicit DataLoader(D dataset, DataLoaderOptions options = {})
      : DataLoader(std::make_shared<const D>(std::move(dataset)), std::move(options)) {}
  ~DataLoader();
  DataLoader(DataLoader&&) noexcept;
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  /// Batches per epoch. Throws E-ARG for an iterable dataset, whose length is not known.
  int64_t size() const;
  /// The number of the epoch that the next begin() starts; the first is 0.
  int64_t epoch() const { return epoch_; }
  void set_epoch(int64_t epoch) { epoch_ = epoch; }
  /// The seed given, or else that of the default generator at this moment; begin() uses it.
  uint64_t seed() const;

  /// Walks one epoch, once.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Example;
    using difference_type = std::ptrdiff_t;
    using pointer = Example*;
    using reference = Example&;

    Iterator() = default;
    explicit Iterator(std::shared_ptr<detail::Epoch> epoch) : epoch_(std::move(epoch)) { ++*this; }
    Example& operator*() const { return *batch_; }
    Example* operator->() const { return batch_.get(); }
    /// Waits for the next batch. Throws what making it threw, or E-TIMEOUT.
    Iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return !it.batch_; }

   private:
    std::shared_ptr<detail::Epoch> epoch_;
    std::shared_ptr<Example> batch_;
  };

  /// Starts an epoch. With persistent workers it ends the one before, whose iterators then throw E-STATE.
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

 private:
  void check_options() const;
  std::shared_ptr<detail::Epoch> new_epoch();

  DataLoaderOptions options_;
  std::shared_ptr<const Dataset> dataset_;             // this one
  std::shared_ptr<const IterableDataset> iterable_;    // or that one
  std::shared_ptr<const BatchSampler> batch_sampler_;  // of dataset_
  std::shared_ptr<detail::WorkerPool> pool_;           // of persistent workers
  std::weak_ptr<detail::Epoch> current_;               // that runs on pool_
  int64_t epoch_ = 0;
};

}  // namespace gradus
