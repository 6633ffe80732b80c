// Collectives among 1 to 4 processes, against what they should give.
#include <gradus/gradus.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/expect_error.h"
#include "support/ranks.h"

namespace gradus::distributed {
namespace {

using ::gradus::testing::error_of;
using ::gradus::testing::in_ranks;
using ::testing::HasSubstr;

class Collectives : public ::testing::TestWithParam<int> {
 protected:
  const int n_ = GetParam();
};
INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, ::testing::Values(1, 2, 3, 4));

const TensorOptions kF{.dtype = kFloat32};

// rank + 1, rank + 2, …
Tensor numbers(int rank, int64_t n, DType dtype = kFloat32) { return (arange(n) + (rank + 1)).to(dtype); }

TEST_P(Collectives, all_reduce_combines_the_ranks_elements) {
  in_ranks(n_, [&](int rank) {
    for (const DType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64, kInt32, kUInt8}) {
      Tensor sum = numbers(rank, 5, dtype), most = sum.clone(), least = sum.clone();
      all_reduce(sum);
      all_reduce(most, ReduceOp::max);
      all_reduce(least, ReduceOp::min);
      for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(sum[i].item<double>(), n_ * i + n_ * (n_ + 1) / 2) << to_string(dtype);
        EXPECT_EQ(most[i].item<double>(), n_ + i) << to_string(dtype);
        EXPECT_EQ(least[i].item<double>(), 1 + i) << to_string(dtype);
      }
    }
    Tensor mean = numbers(rank, 3);
    all_reduce(mean, ReduceOp::avg);
    EXPECT_FLOAT_EQ(mean[1].item<float>(), 1 + (static_cast<float>(n_) + 1) / 2);
  });
}

TEST_P(Collectives, all_reduce_of_many_elements_gives_every_rank_the_same_bits) {
  in_ranks(n_, [&](int rank) {
    manual_seed(static_cast<uint64_t>(rank));
    Tensor x = randn({1'000'003});
    all_reduce(x);
    const Tensor all = empty({n_, x.numel()});
    all_gather_into_tensor(all, x);
    for (int other = 0; other < n_; ++other)
      EXPECT_EQ(std::memcmp(all[other].data<float>(), x.data<float>(), x.nbytes()), 0);
  });
}

TEST_P(Collectives, NaN_reaches_every_rank) {
  in_ranks(n_, [&](int rank) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::max, ReduceOp::min}) {
      Tensor x = full({3}, rank == n_ - 1 ? NAN : 1.0);
      all_reduce(x, op);
      EXPECT_TRUE(std::isnan(x[0].item<float>())) << to_string(op);
    }
  });
}

TEST_P(Collectives, broadcast_copies_the_source) {
  in_ranks(n_, [&](int rank) {
    for (int src = 0; src < n_; ++src) {
      Tensor x = numbers(rank, 4, kInt64);
      broadcast(x, src);
      EXPECT_EQ(x.to_vector<int64_t>(), numbers(src, 4).to_vector<int64_t>());
    }
    Tensor flag = full({1}, rank == 0, {.dtype = kBool});
    broadcast(flag, 0);
    EXPECT_TRUE(flag.item<bool>());
  });
}

TEST_P(Collectives, gathers_and_scatters_by_rank) {
  in_ranks(n_, [&](int rank) {
    std::vector<Tensor> all;
    for (int r = 0; r < n_; ++r) all.push_back(zeros({2, 3}));
    const Tensor mine = full({2, 3}, rank, kF);
    all_gather(all, mine);
    for (int r = 0; r < n_; ++r) EXPECT_EQ(all[r].sum().item<float>(), 6.F * static_cast<float>(r));

    for (Tensor& part : all) part.zero_();
    const int root = n_ - 1;
    gather(mine, rank == root ? all : std::vector<Tensor>{}, root);
    for (int r = 0; r < n_; ++r) EXPECT_EQ(all[r].sum().item<int>(), rank == root ? 6 * r : 0);

    Tensor part = zeros({2, 3});
    scatter(part, rank == root ? all : std::vector<Tensor>{}, root);
    EXPECT_EQ(part.sum().item<int>(), 6 * rank);
  });
}

TEST_P(Collectives, reduce_scatter_gives_each_rank_its_part) {
  in_ranks(n_, [&](int rank) {
    std::vector<Tensor> parts;
    for (int r = 0; r < n_; ++r) parts.push_back(full({3}, 10 * r + rank, kF));
    Tensor mine = zeros({3});
    reduce_scatter(mine, parts);
    EXPECT_EQ(mine[2].item<int>(), 10 * rank * n_ + n_ * (n_ - 1) / 2);
    reduce_scatter_tensor(mine, cat(parts), ReduceOp::max);
    EXPECT_EQ(mine[0].item<int>(), 10 * rank + n_ - 1);
  });
}

TEST_P(Collectives, nothing_and_strided_tensors_work_too) {
  in_ranks(n_, [&](int rank) {
    all_reduce(zeros({0}));
    broadcast(zeros({3, 0}), 0);
    Tensor wide = zeros({4, 6});
    const Tensor column = wide.select(1, 2);
    Tensor ones = column;
    ones.fill_(rank + 1);
    all_reduce(column);
    EXPECT_EQ(column[3].item<int>(), n_ * (n_ + 1) / 2);
    EXPECT_EQ(wide.sum().item<int>(), 4 * n_ * (n_ + 1) / 2);
  });
}

TEST_P(Collectives, simulated_devices_go_through_the_host) {
  in_ranks(n_, [&](int rank) {
    const Device device(DeviceType::sim, 0);
    Tensor x = zeros({1000}, {.device = device});
    x.add_(rank + 1);  // queued, maybe not done
    const Tensor y = full({2}, rank, {.dtype = kFloat32, .device = device});
    std::vector<Tensor> all;
    for (int r = 0; r < n_; ++r) all.push_back(zeros({2}, {.device = device}));
    all_reduce(x);
    all_gather(all, y);
    x.mul_(2);
    EXPECT_EQ(x.cpu()[999].item<int>(), n_ * (n_ + 1));
    EXPECT_EQ(all[n_ - 1].cpu()[1].item<int>(), n_ - 1);
  });
}

TEST(CollectivesOrder, queued_work_runs_in_order_and_can_be_waited_for_later) {
  in_ranks(2, [](int rank) {
    const Stats before = stats();
    Tensor x = full({1}, rank + 1, kF);
    std::vector<Work> works;
    for (int i = 0; i < 10; ++i) works.push_back(all_reduce(x, ReduceOp::sum, /*async_op=*/true));
    works.back().wait();
    for (const Work& work : works) EXPECT_TRUE(work.is_completed());
    EXPECT_EQ(x.item<int>(), 3 * 512);
    const Stats done = stats() - before;
    EXPECT_EQ(done.all_reduces, 10);
    EXPECT_EQ(done.bytes_all_reduced, 40);
    barrier();
  });
}

TEST(CollectivesErrors, wrong_arguments_are_refused_and_the_group_goes_on) {
  in_ranks(2, [](int rank) {
    EXPECT_GRADUS_ERROR(broadcast(zeros({2}), 2), "E-ARG", "broadcast: there is no rank 2 among 2");
    EXPECT_GRADUS_ERROR(all_reduce(zeros({2}, {.dtype = kInt64}), ReduceOp::avg), "E-DTYPE",
                        "all_reduce: avg of int64 is not defined");
    EXPECT_GRADUS_ERROR(all_gather({zeros({2})}, zeros({2})), "E-ARG", "for each of 2 ranks, got 1");
    EXPECT_GRADUS_ERROR(all_gather({zeros({2}), zeros({3})}, zeros({2})), "E-SHAPE", "[2] and [3]");
    EXPECT_GRADUS_ERROR(all_gather_into_tensor(zeros({3}), zeros({2})), "E-SHAPE",
                        "does not make one of [3]");
    EXPECT_GRADUS_ERROR(init_process_group(), "E-INIT", "twice");
    Tensor x = full({1}, rank, kF);
    all_reduce(x);
    EXPECT_EQ(x.item<int>(), 1);
  });
}

TEST(CollectivesErrors, without_a_group_they_say_so) {
  EXPECT_FALSE(is_initialized());
  EXPECT_GRADUS_ERROR(get_rank(), "E-INIT", "Default process group has not been initialized");
  EXPECT_GRADUS_ERROR(all_reduce(zeros({1})), "E-INIT", "call init_process_group()");
}

}  // namespace
}  // namespace gradus::distributed
