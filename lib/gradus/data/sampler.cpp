#include <gradus/base/error.h>
#include <gradus/base/random.h>
#include <gradus/data/sampler.h>

#include <numeric>

namespace gradus {
namespace {

// Keeps the shuffle's numbers apart from those of weights and dropout, which use the user's seed as it is.
constexpr uint64_t kStreamTag = 0x73687566666C6572;

std::vector<int64_t> shuffled(int64_t n, uint64_t seed, int64_t epoch) {
  Generator generator(seed ^ kStreamTag);
  generator.reserve(static_cast<uint64_t>(epoch));
  return random_permutation(n, generator);
}

}  // namespace

SequentialSampler::SequentialSampler(int64_t n) : n_(n) {
  GRADUS_CHECK(n >= 0, "E-ARG", "SequentialSampler: the size must not be negative, got ", n);
}

std::vector<int64_t> SequentialSampler::order(uint64_t, int64_t) const {
  std::vector<int64_t> indices(static_cast<size_t>(n_));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  return indices;
}

std::vector<int64_t> SubsetRandomSampler::order(uint64_t seed, int64_t epoch) const {
  std::vector<int64_t> result = shuffled(size(), seed, epoch);
  for (int64_t& index : result) index = indices_[static_cast<size_t>(index)];
  return result;
}

RandomSampler::RandomSampler(int64_t n, bool replacement, int64_t num_samples)
    : n_(n), num_samples_(num_samples == 0 ? n : num_samples), replacement_(replacement) {
  GRADUS_CHECK(n >= 0 && num_samples >= 0, "E-ARG", "RandomSampler: sizes must not be negative, got ", n,
               " and ", num_samples);
  GRADUS_CHECK(replacement ? n > 0 || num_samples_ == 0 : num_samples_ <= n, "E-ARG",
               "RandomSampler: ", num_samples_, " samples of ", n, " need ",
               replacement ? "at least one to draw from" : "replacement");
}

std::vector<int64_t> RandomSampler::order(uint64_t seed, int64_t epoch) const {
  if (!replacement_) {
    std::vector<int64_t> indices = shuffled(n_, seed, epoch);
    indices.resize(static_cast<size_t>(num_samples_));
    return indices;
  }
  const PhiloxStream stream{seed ^ kStreamTag, static_cast<uint64_t>(epoch)};
  std::vector<int64_t> indices(static_cast<size_t>(num_samples_));
  for (size_t i = 0; i < indices.size(); ++i)
    indices[i] = static_cast<int64_t>(stream.below(i, static_cast<uint64_t>(n_)));
  return indices;
}

BatchSampler::BatchSampler(std::shared_ptr<const Sampler> sampler, int64_t batch_size, bool drop_last)
    : sampler_(std::move(sampler)), batch_size_(batch_size), drop_last_(drop_last) {
  GRADUS_CHECK(sampler_, "E-ARG", "BatchSampler: the sampler is null");
  GRADUS_CHECK(batch_size >= 1, "E-ARG", "DataLoader: batch_size must be at least 1, got ", batch_size);
}

int64_t BatchSampler::size() const {
  const int64_t n = sampler_->size();
  return n / batch_size_ + (!drop_last_ && n % batch_size_ != 0 ? 1 : 0);
}

std::vector<std::vector<int64_t>> BatchSampler::batches(uint64_t seed, int64_t epoch) const {
  const std::vector<int64_t> order = sampler_->order(seed, epoch);
  std::vector<std::vector<int64_t>> result;
  for (size_t begin = 0; begin < order.size(); begin += static_cast<size_t>(batch_size_)) {
    const size_t end = std::min(order.size(), begin + static_cast<size_t>(batch_size_));
    if (drop_last_ && end - begin < static_cast<size_t>(batch_size_)) break;
    result.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(begin),
                        order.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return result;
}

}  // namespace gradus
