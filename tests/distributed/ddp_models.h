// Small models, and what tests of DistributedDataParallel compare.
#pragma once
#include <gradus/gradus.h>
#include <gtest/gtest.h>

#include <cstring>

#include "support/expect_error.h"
#include "support/ranks.h"

namespace gradus::nn::ddp_testing {

using namespace distributed;
using ::gradus::testing::error_in;
using ::gradus::testing::error_of;
using ::gradus::testing::in_ranks;
using ::gradus::testing::run_ranks;
using ::testing::HasSubstr;

inline constexpr int64_t kRows = 4;  // of each rank

struct Net : Module {
  Linear fc1 = register_module("fc1", Linear(6, 8));
  Linear fc2 = register_module("fc2", Linear(8, 8));
  Linear fc3 = register_module("fc3", Linear(8, 3));
  double p;
  explicit Net(double drop = 0) : p(drop) {}
  Tensor forward(const Tensor& x) override { return fc3(dropout(relu(fc2(relu(fc1(x)))), p, is_training())); }
};

template <class M = Net, class... A>
std::shared_ptr<M> make(uint64_t seed = 7, A... a) {
  manual_seed(seed);
  return std::make_shared<M>(a...);
}

// Each parameter of Net in a bucket of its own.
inline const DistributedDataParallelOptions kSmall{.bucket_cap_mb = 1e-6, .first_bucket_mb = 1e-6};

inline Tensor batch(int step, int64_t rows) {
  Generator generator(100 + static_cast<uint64_t>(step));
  const GeneratorGuard guard(generator);
  return randn({rows, 6});
}
inline Tensor rows_of(const Tensor& all, int rank) { return all.narrow(0, rank * kRows, kRows); }
inline Tensor loss_of(const Tensor& y) { return (y * y).mean(); }

inline double largest_difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = (a[i].detach() - b[i].detach()).abs().max().item<double>();
    if (!(d <= worst)) worst = d;
  }
  return worst;
}
inline std::vector<Tensor> grads_of(const Module& module) {
  std::vector<Tensor> all;
  for (const Tensor& p : module.parameters()) all.push_back(p.grad());
  return all;
}

inline void expect_same_bits_on_all_ranks(const Module& module) {
  for (const auto& [name, p] : module.named_parameters()) {
    const Tensor all = empty({get_world_size(), p.numel()});
    all_gather_into_tensor(all, p.detach().contiguous());
    for (int rank = 0; rank < get_world_size(); ++rank)
      EXPECT_EQ(std::memcmp(all[rank].raw_data(), all[0].raw_data(), p.nbytes()), 0)
          << name << " of rank " << rank;
  }
}

// Of two heads, a pass uses one.
struct Heads : Module {
  Linear body = register_module("body", Linear(6, 4));
  Linear left = register_module("left", Linear(4, 1)), right = register_module("right", Linear(4, 1));
  int used = 0;  // 0: left, 1: right
  Tensor forward(const Tensor& x) override { return used == 0 ? left(body(x)) : right(body(x)); }
};

struct Norm : Module {
  BatchNorm1d bn = register_module("bn", BatchNorm1d(1));
  Tensor forward(const Tensor& x) override { return bn(x); }
};

}  // namespace gradus::nn::ddp_testing
