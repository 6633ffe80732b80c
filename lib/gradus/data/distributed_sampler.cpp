#include <gradus/base/error.h>
#include <gradus/base/log.h>
#include <gradus/data/distributed_sampler.h>

namespace gradus {

DistributedSampler::DistributedSampler(int64_t n, int64_t num_replicas, int64_t rank,
                                       DistributedSamplerOptions options)
    : n_(n), num_replicas_(num_replicas), rank_(rank), options_(options) {
  GRADUS_CHECK(n >= 0, "E-ARG", "DistributedSampler: the size must not be negative, got ", n);
  GRADUS_CHECK(num_replicas >= 1, "E-ARG", "DistributedSampler: num_replicas must be at least 1, got ",
               num_replicas, hint("it is the number of ranks, WORLD_SIZE"));
  GRADUS_CHECK(rank >= 0 && rank < num_replicas, "E-ARG", "DistributedSampler: rank must be 0 to ",
               num_replicas - 1, " with num_replicas ", num_replicas, ", got ", rank);
  GRADUS_CHECK(options.pad || !options.drop_last, "E-ARG",
               "DistributedSampler: drop_last makes the shares equal, and without pad they are not");
  const int64_t rest = n % num_replicas;
  total_ = !options.pad || rest == 0 ? n : options.drop_last ? n - rest : n - rest + num_replicas;
  share_ = total_ / num_replicas + (rank < total_ % num_replicas ? 1 : 0);
}

std::vector<int64_t> DistributedSampler::order(uint64_t, int64_t loader_epoch) const {
  warn_if_repeated(loader_epoch);
  const std::vector<int64_t> all =
      options_.shuffle ? RandomSampler(n_).order(options_.seed, epoch_) : SequentialSampler(n_).order(0, 0);
  std::vector<int64_t> share;
  share.reserve(static_cast<size_t>(share_));
  for (int64_t i = rank_; i < total_; i += num_replicas_) share.push_back(all[static_cast<size_t>(i % n_)]);
  return share;
}

void DistributedSampler::warn_if_repeated(int64_t loader_epoch) const {
  const int64_t before = asked_for_.exchange(loader_epoch);
  if (!options_.shuffle || before < 0 || before == loader_epoch || warned_.exchange(true)) return;
  warn("DistributedSampler: the loader's epoch ", loader_epoch, " has the same order as its epoch ", before,
       "; call set_epoch() before each epoch to shuffle anew");
}

void DistributedSampler::set_epoch(int64_t epoch) {
  GRADUS_CHECK(epoch >= 0, "E-ARG", "DistributedSampler: the epoch must not be negative, got ", epoch);
  epoch_ = epoch;
  asked_for_ = -1;
}

}  // namespace gradus
