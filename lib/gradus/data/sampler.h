// In which order an epoch visits a dataset: a function of (seed, epoch) alone, so a run can be resumed.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace gradus {

class Sampler {
 public:
  virtual ~Sampler() = default;
  /// How many indices an epoch has.
  virtual int64_t size() const = 0;
  /// The indices of one epoch, in order.
  virtual std::vector<int64_t> order(uint64_t seed, int64_t epoch) const = 0;
};

/// 0, 1, … n - 1.
class SequentialSampler : public Sampler {
 public:
  explicit SequentialSampler(int64_t n);
  int64_t size() const override { return n_; }
  std::vector<int64_t> order(uint64_t seed, int64_t epoch) const override;

 private:
  int64_t n_;
};

/// Each given index once, shuffled anew each epoch.
class SubsetRandomSampler : public Sampler {
 public:
  explicit SubsetRandomSampler(std::vector<int64_t> indices) : indices_(std::move(indices)) {}
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  std::vector<int64_t> order(uint64_t seed, int64_t epoch) const override;

 private:
  std::vector<int64_t> indices_;
};

/// 0 … n - 1 shuffled anew each epoch; with replacement, `num_samples` independent draws from them.
class RandomSampler : public Sampler {
 public:
  /// num_samples 0 means n. Throws E-ARG for a negative number, or for num_samples > n without replacement.
  explicit RandomSampler(int64_t n, bool replacement = false, int64_t num_samples = 0);
  int64_t size() const override { return num_samples_; }
  std::vector<int64_t> order(uint64_t seed, int64_t epoch) const override;

 private:
  int64_t n_, num_samples_;
  bool replacement_;
};

/// Groups a sampler's indices into batches.
class BatchSampler {
 public:
  /// Throws E-ARG unless batch_size >= 1.
  BatchSampler(std::shared_ptr<const Sampler> sampler, int64_t batch_size, bool drop_last);
  virtual ~BatchSampler() = default;
  /// Batches per epoch.
  virtual int64_t size() const;
  virtual std::vector<std::vector<int64_t>> batches(uint64_t seed, int64_t epoch) const;

 private:
  std::shared_ptr<const Sampler> sampler_;
  int64_t batch_size_;
  bool drop_last_;
};

}  // namespace gradus
