#include <gradus/base/random.h>
#include <gradus/data/dataset.h>
#include <gradus/tensor/views.h>

#include <cstring>
#include <limits>
#include <numeric>

namespace gradus {
namespace {

void check_index(int64_t index, int64_t size, const char* op) {
  GRADUS_CHECK(index >= 0 && index < size, "E-INDEX", op, ": index ", index, " is out of range for ", size,
               " samples");
}

Shape with_batch_size(const Shape& sample, int64_t n) {
  Shape sizes = sample;
  sizes.insert(0, n);
  return sizes;
}

// Rows `indices` of a contiguous tensor.
Tensor gather_rows(const Tensor& source, std::span<const int64_t> indices) {
  if (!source.defined()) return {};
  Shape sizes = source.sizes();
  sizes[0] = static_cast<int64_t>(indices.size());
  Tensor out = empty(sizes, source.dtype());
  if (out.numel() == 0) return out;
  const size_t row = source.nbytes() / static_cast<size_t>(source.size(0));
  const auto* from = static_cast<const char*>(source.raw_data());
  auto* to = static_cast<char*>(out.raw_data());
  for (int64_t index : indices) {
    std::memcpy(to, from + static_cast<size_t>(index) * row, row);
    to += row;
  }
  return out;
}

void check_alike(const Tensor& first, const Tensor& other, size_t i) {
  GRADUS_CHECK(other.defined() && other.is_cpu(), "E-DEVICE", "default_collate: sample ", i,
               " is not a tensor on the cpu");
  GRADUS_CHECK(other.sizes() == first.sizes(), "E-SHAPE", "default_collate: sample ", i, " has shape ",
               other.sizes(), ", the first has ", first.sizes(),
               hint("bring samples to one shape, or pass a collate function"));
  GRADUS_CHECK(other.dtype() == first.dtype(), "E-DTYPE", "default_collate: sample ", i, " is ",
               to_string(other.dtype()), ", the first is ", to_string(first.dtype()));
}

Tensor stack_samples(const std::vector<Example>& samples, Tensor Example::*field) {
  const Tensor& first = samples[0].*field;
  if (!first.defined()) return {};
  Tensor out = empty(with_batch_size(first.sizes(), static_cast<int64_t>(samples.size())), first.dtype());
  auto* to = static_cast<char*>(out.raw_data());
  for (size_t i = 0; i < samples.size(); ++i) {
    const Tensor& sample = samples[i].*field;
    check_alike(first, sample, i);
    const size_t bytes = sample.nbytes();
    if (bytes > 0) std::memcpy(to, sample.contiguous().raw_data(), bytes);
    to += bytes;
  }
  return out;
}

}  // namespace

Example Dataset::get_batch(const BatchRequest& request) const {
  return default_collate(detail::get_each(*this, request.indices));
}

Example default_collate(const std::vector<Example>& samples) {
  GRADUS_CHECK(!samples.empty(), "E-ARG", "default_collate: a batch needs at least one sample");
  return {stack_samples(samples, &Example::data), stack_samples(samples, &Example::target)};
}

TensorDataset::TensorDataset(Tensor data, Tensor target) {
  GRADUS_CHECK(data.defined() && data.dim() >= 1, "E-SHAPE",
               "TensorDataset: the data needs a first dimension that counts samples");
  for (const Tensor* t : {&data, &target})
    GRADUS_CHECK(!t->defined() || t->is_cpu(), "E-DEVICE",
                 "TensorDataset: expected a tensor on cpu, got one on ", t->device(),
                 hint("keep the data on the host and move each batch to the device"));
  if (target.defined()) {
    const int64_t targets = target.dim() >= 1 ? target.size(0) : 0;
    GRADUS_CHECK(targets == data.size(0), "E-SHAPE", "TensorDataset: ", data.size(0), " samples, but ",
                 targets, " targets");
    target_ = target.detach().contiguous();
  }
  data_ = data.detach().contiguous();
}

Example TensorDataset::get(int64_t index) const {
  check_index(index, size(), "TensorDataset");
  return {data_[index], target_.defined() ? target_[index] : Tensor()};
}

Example TensorDataset::get_batch(const BatchRequest& request) const {
  for (int64_t index : request.indices) check_index(index, size(), "TensorDataset");
  return {gather_rows(data_, request.indices), gather_rows(target_, request.indices)};
}

Subset::Subset(std::shared_ptr<const Dataset> dataset, std::vector<int64_t> indices)
    : dataset_(std::move(dataset)), indices_(std::move(indices)) {
  GRADUS_CHECK(dataset_, "E-ARG", "Subset: the dataset is null");
  for (int64_t index : indices_) check_index(index, dataset_->size(), "Subset");
}

int64_t Subset::of_whole(int64_t index) const {
  check_index(index, size(), "Subset");
  return indices_[static_cast<size_t>(index)];
}

Example Subset::get(int64_t index) const { return dataset_->get(of_whole(index)); }

Example Subset::get_batch(const BatchRequest& request) const {
  std::vector<int64_t> indices;
  indices.reserve(request.indices.size());
  for (int64_t index : request.indices) indices.push_back(of_whole(index));
  BatchRequest inner = request;
  inner.indices = indices;
  return dataset_->get_batch(inner);
}

std::vector<std::shared_ptr<Subset>> random_split(std::shared_ptr<const Dataset> dataset,
                                                  const std::vector<int64_t>& lengths, uint64_t seed) {
  GRADUS_CHECK(dataset, "E-ARG", "random_split: the dataset is null");
  int64_t sum = 0;
  for (int64_t length : lengths) {
    GRADUS_CHECK(length >= 0, "E-ARG", "random_split: a length must not be negative, got ", length);
    GRADUS_CHECK(length <= std::numeric_limits<int64_t>::max() - sum, "E-ARG",
                 "random_split: the lengths add up to more than 64 bits hold, but the dataset has ",
                 dataset->size(), " samples");
    sum += length;
  }
  GRADUS_CHECK(sum == dataset->size(), "E-ARG", "random_split: the lengths add up to ", sum,
               ", but the dataset has ", dataset->size(), " samples");
  Generator generator(seed);
  const std::vector<int64_t> order = random_permutation(sum, generator);
  std::vector<std::shared_ptr<Subset>> parts;
  auto begin = order.begin();
  for (int64_t length : lengths) {
    parts.push_back(std::make_shared<Subset>(dataset, std::vector<int64_t>(begin, begin + length)));
    begin += length;
  }
  return parts;
}

ExampleStream shard(ExampleStream stream, const WorkerInfo& worker) {
  return [stream = std::move(stream), worker, first = true]() mutable -> std::optional<Example> {
    int skip = first ? worker.id : worker.num_workers - 1;
    first = false;
    while (skip-- > 0)
      if (!stream()) return {};
    return stream();
  };
}

std::vector<Example> detail::get_each(const Dataset& dataset, std::span<const int64_t> indices) {
  std::vector<Example> samples;
  samples.reserve(indices.size());
  for (int64_t index : indices) {
    try {
      samples.push_back(dataset.get(index));
    } catch (...) {
      rethrow_with_context(str("sample ", index, ": "));
    }
  }
  return samples;
}

void detail::rethrow_with_context(const std::string& context) {
  try {
    throw;
  } catch (const Error& error) {
    const std::string text = error.what();
    const size_t end = error.hint().empty() ? text.size() : text.rfind("\n  hint: ");
    GRADUS_FAIL(error.code().c_str(), context, text.substr(0, end), hint(error.hint()));
  } catch (const std::exception& error) {
    GRADUS_FAIL("E-WORKER", context, error.what());
  } catch (...) {
    GRADUS_FAIL("E-WORKER", context, "an exception that is no std::exception");
  }
}

}  // namespace gradus
