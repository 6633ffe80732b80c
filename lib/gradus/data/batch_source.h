// Makes the batches of one epoch, for several workers at once. Internal to data/.
#pragma once
#include <gradus/data/dataloader.h>

#include <memory>
#include <optional>
#include <vector>

namespace gradus::detail {

/// The batches of an epoch, dealt out to workers one after the other as cards: batch k is made by worker
/// k % workers. Calls for different workers may run at the same time.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// The worker's next batch, or nothing at its end.
  virtual std::optional<Example> next(int worker) = 0;
};

std::unique_ptr<BatchSource> make_map_source(std::shared_ptr<const Dataset> dataset,
                                             std::vector<std::vector<int64_t>> batches,
                                             CollateFunction collate, uint64_t seed, int64_t epoch,
                                             int workers);

std::unique_ptr<BatchSource> make_stream_source(std::shared_ptr<const IterableDataset> dataset,
                                                const DataLoaderOptions& options, uint64_t seed,
                                                int64_t epoch, int workers);

/// The batches of `source` in memory pinned for `device`.
std::unique_ptr<BatchSource> make_pinning_source(std::unique_ptr<BatchSource> source, Device device);

}  // namespace gradus::detail
