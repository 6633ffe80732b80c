// Where samples come from: by index (Dataset) or one after the other (IterableDataset).
#pragma once
#include <gradus/tensor/tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace gradus {

/// One sample, or a batch of them with one more dimension in front. `target` may be undefined.
struct Example {
  Tensor data, target;
};

/// What a batch is made of, and what its randomness comes from: a random transform's draw for a sample
/// depends on (seed, epoch, index, stage) and on nothing else, so not on which worker makes the batch.
struct BatchRequest {
  std::span<const int64_t> indices = {};
  uint64_t seed = 0;
  int64_t epoch = 0;
  int stage = 0;  ///< place in a Compose, so that two random transforms draw different numbers
};

/// Samples by index. All calls are const and may come from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual Example get(int64_t index) const = 0;
  /// All of `request.indices` as one batch. Unless overridden: get() each and default_collate(). Datasets
  /// that hold tensors gather whole batches at once, which is far faster.
  virtual Example get_batch(const BatchRequest& request) const;
};

/// Joins samples of equal shape and dtype into a batch by adding a dimension in front. Throws E-SHAPE or
/// E-DTYPE naming the first that differs.
Example default_collate(const std::vector<Example>& samples);

/// Tensors whose first dimension counts samples: sample i is {data[i], target[i]}.
class TensorDataset : public Dataset {
 public:
  /// Throws E-SHAPE naming both sizes unless they hold equally many samples, E-DEVICE off the cpu.
  explicit TensorDataset(Tensor data, Tensor target = {});
  int64_t size() const override { return data_.size(0); }
  /// Views into the tensors. Throws E-INDEX for an index outside 0 … size() - 1.
  Example get(int64_t index) const override;
  /// Copies, in one pass.
  Example get_batch(const BatchRequest& request) const override;

 private:
  Tensor data_, target_;
};

/// Part of a dataset: sample i is sample indices[i] of the whole.
class Subset : public Dataset {
 public:
  /// Throws E-INDEX for an index that the dataset does not have.
  Subset(std::shared_ptr<const Dataset> dataset, std::vector<int64_t> indices);
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  Example get(int64_t index) const override;
  Example get_batch(const BatchRequest& request) const override;
  const std::vector<int64_t>& indices() const { return indices_; }

 private:
  int64_t of_whole(int64_t index) const;
  std::shared_ptr<const Dataset> dataset_;
  std::vector<int64_t> indices_;
};

/// Parts of the given lengths, without overlap, at random. Throws E-ARG unless the lengths add up to the
/// dataset's size. The split depends on the seed only.
std::vector<std::shared_ptr<Subset>> random_split(std::shared_ptr<const Dataset> dataset,
                                                  const std::vector<int64_t>& lengths, uint64_t seed = 0);

/// Which worker asks, of how many.
struct WorkerInfo {
  int id = 0;
  int num_workers = 1;
  uint64_t seed = 0;
  int64_t epoch = 0;
};

/// Gives the next sample, or nothing at the end.
using ExampleStream = std::function<std::optional<Example>()>;

/// Samples that come one after the other, such as lines of a file. Each worker gets a stream of its own:
/// unless the dataset gives each its share, every sample comes num_workers times.
class IterableDataset {
 public:
  virtual ~IterableDataset() = default;
  /// A new pass over the samples of one worker. Called once per worker and epoch, on the worker's thread.
  virtual ExampleStream stream(const WorkerInfo& worker) const = 0;
  /// True if stream() gives each worker its share. The loader warns if it does not and there are several.
  virtual bool is_sharded() const { return false; }
};

/// Every num_workers-th sample of `stream`, starting at the worker's id: what a dataset that can skip cheaply
/// needs to be sharded.
ExampleStream shard(ExampleStream stream, const WorkerInfo& worker);

namespace detail {
// Samples one by one; a failure names the index that it came from.
std::vector<Example> get_each(const Dataset& dataset, std::span<const int64_t> indices);
// To be called in a catch block: rethrows the exception as an Error of the same code with `context` in front.
[[noreturn]] void rethrow_with_context(const std::string& context);
}  // namespace detail

}  // namespace gradus
