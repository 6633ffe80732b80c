// Each rank's share of a dataset.
#pragma once
#include <gradus/data/sampler.h>

#include <algorithm>
#include <atomic>

namespace gradus {

/// PyTorch's arguments, by its names, and `pad`.
struct DistributedSamplerOptions {
  bool shuffle = true;
  uint64_t seed = 0;  ///< of the shuffle; the same on all ranks
  bool drop_last =
      false;  ///< shares are made equal by leaving out the last indices, in place of repeating some
  /// false: shares are not made equal, each index comes once over all ranks, and shares differ by at most
  /// one.
  bool pad = true;
};

/// The share of rank r of R: of one order of 0 … n - 1 the elements r, r + R, r + 2 R, …
///
/// All ranks must use one seed and one epoch; then the shares are disjoint, and the ranks' k-th batches of
/// size B are together the k-th batch of size B R that a RandomSampler of the same seed and epoch gives one
/// process.
///
/// The order depends on this sampler's seed and on set_epoch(), and not on the loader's seed or epoch, as in
/// PyTorch: ranks whose generators were seeded apart still agree. Without set_epoch() before each epoch,
/// every epoch has the order of epoch 0; an order that a loader asks for again for another epoch warns, once
/// a sampler.
///
/// Padding: where R does not divide n, the order is lengthened from its own start until it does, so ranks
/// have equally many batches, and up to R - 1 samples come twice in an epoch. In training that is harmless;
/// an average over an evaluation set would count them twice. So evaluate with `.shuffle = false, .pad =
/// false`: add up the losses and the right answers of samples (not the means of batches), and divide their
/// sums over all ranks by n. Numbers of batches may then differ by one, so the loop must call no collective,
/// and no DistributedDataParallel in training mode.
class DistributedSampler : public Sampler {
 public:
  /// Throws E-ARG unless n >= 0, num_replicas >= 1, 0 <= rank < num_replicas; or for drop_last without pad.
  DistributedSampler(int64_t n, int64_t num_replicas, int64_t rank, DistributedSamplerOptions options = {});
  /// Indices of this rank's share: ceil(n / R) padded, floor(n / R) with drop_last.
  int64_t size() const override { return share_; }
  /// How many indices of all ranks' together are repetitions: 0 … R - 1, or more where n < R.
  int64_t padding() const { return std::max<int64_t>(0, total_ - n_); }
  /// This rank's share of the order of epoch(). What a loader passes is not used for it.
  std::vector<int64_t> order(uint64_t loader_seed, int64_t loader_epoch) const override;
  /// Before each epoch, on each rank. Throws E-ARG for a negative number.
  void set_epoch(int64_t epoch);
  int64_t epoch() const { return epoch_; }

 private:
  void warn_if_repeated(int64_t loader_epoch) const;

  int64_t n_, num_replicas_, rank_;
  DistributedSamplerOptions options_;
  int64_t total_ = 0, share_ = 0;  // indices of all ranks' shares; of this one's
  int64_t epoch_ = 0;
  mutable std::atomic<int64_t> asked_for_{-1};  // the loader's epoch that this order was given to
  mutable std::atomic<bool> warned_{false};
};

}  // namespace gradus
