// DistributedDataParallel: what one process computes on the joined batch, and what is sent for it.
#include "distributed/ddp_models.h"

namespace gradus::nn {
namespace {

using namespace ddp_testing;

class Ddp : public ::testing::TestWithParam<int> {
 protected:
  const int n_ = GetParam();
};
INSTANTIATE_TEST_SUITE_P(Ranks, Ddp, ::testing::Values(1, 2, 3, 4));

// Adam would make 1e-3 of a difference of 1e-9 in a small gradient, so SGD; the parameters that the ranks
// begin with differ.
void train_beside_one_process(int n, double drop, const DistributedDataParallelOptions& options) {
  in_ranks(n, [&](int rank) {
    auto one = make<Net>(7, drop);
    DistributedDataParallel ddp(make<Net>(rank == 0 ? 7 : 100 + static_cast<uint64_t>(rank), drop), options);
    optim::SGD of_one(one->parameters(), {.lr = 0.1, .momentum = 0.9});
    optim::SGD of_ranks(ddp.parameters(), {.lr = 0.1, .momentum = 0.9});
    for (int step = 0; step < 5; ++step) {
      const Tensor all = batch(step, n * kRows);
      manual_seed(50 + static_cast<uint64_t>(step));
      of_one.zero_grad();
      loss_of((*one)(all)).backward();
      manual_seed(50 + static_cast<uint64_t>(step));
      of_ranks.zero_grad(/*set_to_none=*/step % 2 == 0);
      loss_of(ddp(rows_of(all, rank))).backward();
      EXPECT_LT(largest_difference(grads_of(*one), grads_of(ddp)), 1e-6) << "step " << step;
      of_one.step();
      of_ranks.step();
    }
    EXPECT_LT(largest_difference(one->parameters(), ddp.parameters()), 1e-6);
    expect_same_bits_on_all_ranks(ddp);
  });
}

TEST_P(Ddp, a_step_of_all_ranks_is_the_step_of_one_process_on_the_joined_batch) {
  train_beside_one_process(n_, 0, kSmall);
}
TEST_P(Ddp, dropout_drops_what_one_process_drops) { train_beside_one_process(n_, 0.5, {}); }

TEST_P(Ddp, uneven_buckets_of_several_parameters_work_too) {
  train_beside_one_process(n_, 0, {.bucket_cap_mb = 400.0 / (1 << 20), .first_bucket_mb = 100.0 / (1 << 20)});
}

TEST(DdpCounts, a_pass_is_one_all_reduce_a_bucket_and_no_sync_is_none) {
  in_ranks(2, [](int rank) {
    DistributedDataParallel ddp(make(), kSmall);
    EXPECT_EQ(ddp.bucket_count(), 6U);
    int64_t bytes = 0;
    for (const Tensor& p : ddp.parameters()) bytes += static_cast<int64_t>(p.nbytes());
    const auto pass = [&] { loss_of(ddp(rows_of(batch(0, 8), rank))).backward(); };
    Stats before = stats();
    pass();
    EXPECT_EQ((stats() - before).all_reduces, 6);
    EXPECT_EQ((stats() - before).bytes_all_reduced, bytes);

    before = stats();
    for (int i = 0; i < 3; ++i) {
      const auto guard = ddp.no_sync();
      pass();
    }
    EXPECT_EQ((stats() - before).all_reduces, 0);
    pass();
    EXPECT_EQ((stats() - before).all_reduces, 6);

    DistributedDataParallel whole(make());
    before = stats();
    EXPECT_EQ(whole.bucket_count(), 1U);
    loss_of(whole(batch(0, 4))).backward();
    EXPECT_EQ((stats() - before).all_reduces, 1);
  });
}

TEST(DdpCounts, gradients_that_were_added_up_without_sync_are_averaged_at_last) {
  in_ranks(2, [](int rank) {
    DistributedDataParallel ddp(make(), kSmall);
    auto one = make();
    for (int i = 0; i < 3; ++i) {
      const Tensor all = batch(i, 2 * kRows);
      loss_of((*one)(all)).backward();
      const auto guard = ddp.no_sync(i < 2);
      loss_of(ddp(rows_of(all, rank))).backward();
    }
    EXPECT_LT(largest_difference(grads_of(*one), grads_of(ddp)), 1e-6);
  });
}

// The hook of the first layer, whose gradient comes last, finds all buckets but its own under way.
TEST(DdpOverlap, buckets_are_sent_while_the_pass_goes_on) {
  in_ranks(2, [](int rank) {
    auto net = make();
    std::vector<int64_t> sent;
    Stats before;
    for (Tensor& p : std::vector<Tensor>{net->fc3->bias, net->fc1->bias})
      p.register_post_accumulate_grad_hook(
          [&](const Tensor&) { sent.push_back((stats() - before).all_reduces); });
    DistributedDataParallel ddp(net, kSmall);
    const Tensor loss = loss_of(ddp(rows_of(batch(0, 8), rank)));
    before = stats();
    loss.backward();
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_EQ(sent[0], 0);
    EXPECT_GE(sent[1], 4);
    EXPECT_EQ((stats() - before).all_reduces, 6);
  });
}

TEST(DdpGradients, are_views_of_the_buckets) {
  in_ranks(2, [](int rank) {
    DistributedDataParallel ddp(make());
    loss_of(ddp(rows_of(batch(0, 8), rank))).backward();
    const auto grads = grads_of(ddp);
    for (const Tensor& grad : grads) EXPECT_TRUE(grad.is_alias_of(grads[0]));
    const Stats before = stats();
    ddp.zero_grad(/*set_to_none=*/false);
    loss_of(ddp(rows_of(batch(0, 8), rank))).backward();
    for (size_t i = 0; i < grads.size(); ++i) EXPECT_EQ(grads_of(ddp)[i].raw_data(), grads[i].raw_data());
    EXPECT_EQ((stats() - before).driver_allocations, 0);
  });
}

TEST(DdpGradients, follow_channels_last_weights) {
  in_ranks(2, [](int rank) {
    const auto make_conv = [] {
      auto conv = make<Conv2dImpl>(7, 3, 4, 3);
      conv->weight.set_data(conv->weight.detach().contiguous(MemoryFormat::channels_last));
      return conv;
    };
    auto one = make_conv();
    DistributedDataParallel ddp(make_conv());
    manual_seed(5);
    const Tensor all = randn({4, 3, 6, 6});
    loss_of((*one)(all)).backward();
    loss_of(ddp(all.narrow(0, 2 * rank, 2))).backward();
    EXPECT_LT(largest_difference(grads_of(*one), grads_of(ddp)), 1e-6);
    EXPECT_EQ(ddp.module().weight.grad().strides(), one->weight.strides());
  });
}

TEST(DdpDevices, simulated_devices_train_through_the_host) {
  in_ranks(2, [](int rank) {
    const Device device(DeviceType::sim, 0);
    auto one = make();
    auto mine = make();
    mine->to(device);
    DistributedDataParallel ddp(mine, kSmall);
    optim::SGD of_one(one->parameters(), {.lr = 0.1}), of_ranks(ddp.parameters(), {.lr = 0.1});
    for (int step = 0; step < 3; ++step) {
      const Tensor all = batch(step, 8);
      of_one.zero_grad();
      loss_of((*one)(all)).backward();
      of_one.step();
      of_ranks.zero_grad();
      loss_of(ddp(rows_of(all, rank).to(device))).backward();
      of_ranks.step();
    }
    std::vector<Tensor> here;
    for (const Tensor& p : ddp.parameters()) here.push_back(p.cpu());
    EXPECT_LT(largest_difference(one->parameters(), here), 1e-6);
  });
}

}  // namespace
}  // namespace gradus::nn
