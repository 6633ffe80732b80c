// Datasets and shorthands for tests of the loader.
#pragma once
#include <gradus/data/dataloader.h>
#include <gradus/tensor/views.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace gradus::testing {

inline Tensor scalar_of(int64_t value) {
  Tensor t = empty({}, kInt64);
  t.data<int64_t>()[0] = value;
  return t;
}

inline std::vector<int64_t> values_of(const Tensor& t) {
  return {t.data<int64_t>(), t.data<int64_t>() + t.numel()};
}

inline std::vector<int64_t> range(int64_t n) {
  std::vector<int64_t> out(static_cast<size_t>(n));
  std::iota(out.begin(), out.end(), int64_t{0});
  return out;
}

/// Sample i is {i, 10 i}, made one by one.
class Numbers : public Dataset {
 public:
  explicit Numbers(int64_t n) : n_(n) {}
  int64_t size() const override { return n_; }
  Example get(int64_t i) const override { return {scalar_of(i), scalar_of(10 * i)}; }

 private:
  int64_t n_;
};

/// Throws at one index; counts the samples that were made.
class Faulty : public Dataset {
 public:
  Faulty(int64_t n, int64_t bad) : n_(n), bad_(bad) {}
  int64_t size() const override { return n_; }
  Example get(int64_t i) const override {
    if (i == bad_) throw std::out_of_range("no such line");
    return {scalar_of(i), {}};
  }

 private:
  int64_t n_, bad_;
};

/// Takes its time.
class Slow : public Numbers {
 public:
  Slow(int64_t n, std::chrono::milliseconds each) : Numbers(n), each_(each) {}
  Example get(int64_t i) const override {
    std::this_thread::sleep_for(each_);
    return Numbers::get(i);
  }

 private:
  std::chrono::milliseconds each_;
};

/// 0 … n - 1 as a stream, whole for each worker or shared out.
class NumberStream : public IterableDataset {
 public:
  NumberStream(int64_t n, bool sharded) : n_(n), sharded_(sharded) {}
  ExampleStream stream(const WorkerInfo& worker) const override {
    ExampleStream all = [i = int64_t{0}, n = n_]() mutable -> std::optional<Example> {
      if (i == n) return {};
      return Example{scalar_of(i++), {}};
    };
    return sharded_ ? shard(std::move(all), worker) : all;
  }
  bool is_sharded() const override { return sharded_; }

 private:
  int64_t n_;
  bool sharded_;
};

/// The batches of one epoch, as numbers.
inline std::vector<std::vector<int64_t>> epoch_of(DataLoader& loader) {
  std::vector<std::vector<int64_t>> out;
  for (auto& [data, target] : loader) out.push_back(values_of(data));
  return out;
}

inline std::vector<int64_t> joined(const std::vector<std::vector<int64_t>>& batches) {
  std::vector<int64_t> out;
  for (const auto& batch : batches) out.insert(out.end(), batch.begin(), batch.end());
  return out;
}

template <class T>
std::vector<T> sorted(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace gradus::testing
