// DistributedDataParallel over a whole run: ranks with fewer batches, ranks that die, checkpoints.
#include "distributed/ddp_models.h"
#include "support/temp_dir.h"

namespace gradus::nn {
namespace {

using namespace ddp_testing;

// loss = w x; rank 0 has three batches of x = 1, rank 1 one of x = 2.
struct Weight : Module {
  Tensor w = register_parameter("w", zeros({1}));
  Tensor forward(const Tensor& x) override { return w * x; }
};

TEST(DdpJoin, DDP_03_ranks_with_fewer_batches_take_part_with_zeros) {
  for (const bool initial : {true, false}) {
    in_ranks(2, [initial](int rank) {
      DistributedDataParallel ddp(std::make_shared<Weight>());
      optim::SGD sgd(ddp.parameters(), {.lr = 1});
      std::vector<float> grads;
      ddp.join(
          [&] {
            for (int i = 0; i < (rank == 0 ? 3 : 1); ++i) {
              sgd.zero_grad();
              ddp(full({1}, rank + 1.0)).sum().backward();
              grads.push_back(ddp.module().w.grad().item<float>());
              sgd.step();
            }
          },
          initial);
      const std::vector<float> expected =
          initial ? std::vector<float>{1.5, .5, .5} : std::vector<float>{1.5, 1, 1};
      EXPECT_EQ(grads, std::vector<float>(expected.begin(), expected.begin() + (rank == 0 ? 3 : 1)));
      EXPECT_EQ(ddp.module().w.item<float>(), initial ? -2.5F : -3.5F);
      expect_same_bits_on_all_ranks(ddp);
    });
  }
}

TEST(DdpJoin, works_with_buffers_accumulation_and_unused_parameters) {
  struct Both : Module {
    Heads heads;
    std::shared_ptr<Heads> h = register_module("heads", std::make_shared<Heads>());
    BatchNorm1d bn = register_module("bn", BatchNorm1d(1));
    Tensor forward(const Tensor& x) override { return bn((*h)(x)); }
  };
  in_ranks(3, [](int rank) {
    DistributedDataParallel ddp(make<Both>(), {.bucket_cap_mb = 1e-6, .find_unused_parameters = true});
    optim::SGD sgd(ddp.parameters(), {.lr = 0.1});
    ddp.join([&] {
      for (int i = 0; i < 2 * (rank + 1); ++i) {
        const auto guard = ddp.no_sync(i % 2 == 0);
        loss_of(ddp(rows_of(batch(i, 12), rank))).backward();
        if (i % 2 == 0) continue;
        sgd.step();
        sgd.zero_grad();
      }
    });
    expect_same_bits_on_all_ranks(ddp);
    EXPECT_GT(ddp.module().bn->running_mean.abs().sum().item<float>(), 0);
  });
}

TEST(DdpJoin, DDP_03_without_it_the_missing_rank_is_named) {
  const auto results = run_ranks(2, [](int rank) {
    DistributedDataParallel ddp(make());
    for (int i = 0; i < (rank == 0 ? 3 : 1); ++i) loss_of(ddp(batch(i, 4))).backward();
  });
  EXPECT_EQ(results[0].status, 2);
  EXPECT_THAT(error_in(results[0].output), HasSubstr("all_reduce avg float32"));
  EXPECT_THAT(error_in(results[0].output), HasSubstr("rank 1 called destroy_process_group() instead"));
}

TEST(DdpFaults, a_rank_that_dies_in_the_backward_pass_ends_that_of_the_others) {
  const auto results = run_ranks(3, [](int rank) {
    DistributedDataParallel ddp(make());
    for (int step = 0;; ++step) {
      const Tensor loss = loss_of(ddp(batch(step, 4)));
      if (rank == 1 && step == 2) ::abort();
      loss.backward();
    }
  });
  for (const int rank : {0, 2}) {
    EXPECT_EQ(results[rank].status, 2) << results[rank].output;
    EXPECT_THAT(error_in(results[rank].output), HasSubstr("E-RANK-LOST: all_reduce avg float32"));
    EXPECT_THAT(error_in(results[rank].output), HasSubstr("rank 1 has"));
    EXPECT_LT(results[rank].seconds, 15);
  }
}

TEST(DdpState, DDP_09_names_have_a_prefix_that_can_be_taken_off) {
  in_ranks(2, [](int) {
    DistributedDataParallel ddp(make());
    StateDict state = ddp.state_dict();
    EXPECT_TRUE(state.contains("module.fc1.weight"));
    auto bare = make(9);
    EXPECT_GRADUS_ERROR(bare->load_state_dict(state), "E-STATE-DICT", "missing key(s): \"fc1.weight\"");
    EXPECT_TRUE(consume_prefix_in_state_dict_if_present(state));
    bare->load_state_dict(state);
    EXPECT_EQ(largest_difference(bare->parameters(), ddp.parameters()), 0);
  });
}

// 4 steps of one process = 2 steps of 2 ranks, a checkpoint of rank 0, and 2 steps of 3 ranks.
TEST(DdpState, a_checkpoint_of_rank_0_is_resumed_by_another_number_of_ranks) {
  const ::gradus::testing::TempDir folder;
  ::gradus::testing::RanksOptions told;
  told.environment = {"CHECKPOINT=" + folder.path("c.safetensors")};
  const auto train = [](Module& model, optim::Optimizer& optimizer, int first, int rank, int ranks) {
    for (int step = first; step < first + 2; ++step) {
      const Tensor all = batch(step, 12);
      optimizer.zero_grad();
      loss_of(model(all.narrow(0, rank * 12 / ranks, 12 / ranks))).backward();
      optimizer.step();
    }
  };
  in_ranks(
      2,
      [&](int rank) {
        DistributedDataParallel ddp(make());
        optim::SGD sgd(ddp.parameters(), {.lr = 0.1, .momentum = 0.9});
        train(ddp, sgd, 0, rank, 2);
        if (rank != 0) return;
        Checkpoint checkpoint;
        checkpoint["model"].tensors = ddp.module().state_dict();
        checkpoint["optimizer"].tensors = sgd.state_dict();
        save_checkpoint(std::getenv("CHECKPOINT"), checkpoint);
      },
      told);
  in_ranks(
      3,
      [&](int rank) {
        const Checkpoint checkpoint = load_checkpoint(std::getenv("CHECKPOINT"));
        auto model = make(99);
        model->load_state_dict(checkpoint.at("model").tensors);
        DistributedDataParallel ddp(model);
        optim::SGD sgd(ddp.parameters(), {.lr = 0.1, .momentum = 0.9});
        sgd.load_state_dict(checkpoint.at("optimizer").tensors);
        train(ddp, sgd, 2, rank, 3);

        auto one = make();
        optim::SGD of_one(one->parameters(), {.lr = 0.1, .momentum = 0.9});
        train(*one, of_one, 0, 0, 1);
        train(*one, of_one, 2, 0, 1);
        EXPECT_LT(largest_difference(one->parameters(), ddp.parameters()), 1e-6);
        expect_same_bits_on_all_ranks(ddp);
      },
      told);
}

}  // namespace
}  // namespace gradus::nn
