// DistributedDataParallel: what one process computes on the joined batch, what is sent, and what goes wrong.
#include <gradus/gradus.h>
#include <gtest/gtest.h>

#include <cstring>

#include "support/expect_error.h"
#include "support/ranks.h"
#include "support/temp_dir.h"

namespace gradus::nn {
namespace {

using namespace distributed;
using ::gradus::testing::error_in;
using ::gradus::testing::error_of;
using ::gradus::testing::in_ranks;
using ::gradus::testing::run_ranks;
using ::testing::HasSubstr;

constexpr int64_t kRows = 4;  // of each rank

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
const DistributedDataParallelOptions kSmall{.bucket_cap_mb = 1e-6, .first_bucket_mb = 1e-6};

Tensor batch(int step, int64_t rows) {
  Generator generator(100 + static_cast<uint64_t>(step));
  const GeneratorGuard guard(generator);
  return randn({rows, 6});
}
Tensor rows_of(const Tensor& all, int rank) { return all.narrow(0, rank * kRows, kRows); }
Tensor loss_of(const Tensor& y) { return (y * y).mean(); }

double largest_difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = (a[i].detach() - b[i].detach()).abs().max().item<double>();
    if (!(d <= worst)) worst = d;
  }
  return worst;
}
std::vector<Tensor> grads_of(const Module& module) {
  std::vector<Tensor> all;
  for (const Tensor& p : module.parameters()) all.push_back(p.grad());
  return all;
}

void expect_same_bits_on_all_ranks(const Module& module) {
  for (const auto& [name, p] : module.named_parameters()) {
    const Tensor all = empty({get_world_size(), p.numel()});
    all_gather_into_tensor(all, p.detach().contiguous());
    for (int rank = 0; rank < get_world_size(); ++rank)
      EXPECT_EQ(std::memcmp(all[rank].raw_data(), all[0].raw_data(), p.nbytes()), 0)
          << name << " of rank " << rank;
  }
}

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

// Of two heads, a pass uses one.
struct Heads : Module {
  Linear body = register_module("body", Linear(6, 4));
  Linear left = register_module("left", Linear(4, 1)), right = register_module("right", Linear(4, 1));
  int used = 0;  // 0: left, 1: right
  Tensor forward(const Tensor& x) override { return used == 0 ? left(body(x)) : right(body(x)); }
};

TEST(DdpUnused, parameters_without_gradient_are_named) {
  in_ranks(2, [](int rank) {
    DistributedDataParallel ddp(make<Heads>());
    const Tensor loss = loss_of(ddp(rows_of(batch(0, 8), rank)));
    EXPECT_GRADUS_ERROR(
        loss.backward(), "E-DDP-UNUSED",
        str("the backward pass of rank ", rank, " gave no gradient to right.weight, right.bias"));
  });
}

TEST(DdpUnused, find_unused_parameters_averages_what_some_rank_used) {
  in_ranks(2, [](int rank) {
    DistributedDataParallel ddp(make<Heads>(), {.bucket_cap_mb = 1e-6, .find_unused_parameters = true});
    const Tensor x = rows_of(batch(0, 8), rank);
    loss_of(ddp(x)).backward();  // nobody uses right
    EXPECT_FALSE(ddp.module().right->weight.grad().defined());
    EXPECT_TRUE(ddp.module().left->weight.grad().defined());
    expect_same_bits_on_all_ranks(ddp);

    ddp.zero_grad();
    ddp.module().used = rank;  // rank 1 does
    loss_of(ddp(x)).backward();
    auto alone = make<Heads>();
    alone->used = 1;
    loss_of((*alone)(rows_of(batch(0, 8), 1))).backward();
    EXPECT_LT(largest_difference({ddp.module().right->weight.grad()},
                                 {alone->right->weight.grad().mul(full({1}, 0.5))}),
              1e-6);
  });
}

TEST(DdpModels, DDP_13_models_that_differ_are_an_error_on_every_rank) {
  struct Case {
    std::function<std::shared_ptr<Module>(int)> make;
    std::string says;
  };
  struct Two : Module {
    explicit Two(bool swapped) {
      register_module(swapped ? "b" : "a", Linear(2, 2));
      register_module(swapped ? "a" : "b", Linear(2, 2));
    }
  };
  const auto linear = [](int64_t in, bool bias) { return std::make_shared<LinearImpl>(in, 1, bias); };
  const std::vector<Case> cases = {
      {[&](int r) { return linear(2 + r, true); },
       "rank 0 has parameter weight float32 [1, 2], rank 1 has parameter weight float32 [1, 3]"},
      {[&](int r) { return linear(2, r == 0); },
       "rank 0 has parameter bias float32 [1], rank 1 has nothing more"},
      {[&](int r) { return std::make_shared<Two>(r == 1); },
       "rank 0 has parameter a.weight float32 [2, 2], rank 1 has parameter b.weight float32 [2, 2]"},
      {[&](int r) {
         auto m = linear(2, true);
         if (r) m->to(kFloat64);
         return m;
       },
       "rank 1 has parameter weight float64 [1, 2]"},
      {[&](int r) {
         auto m = linear(2, true);
         if (r) m->weight.requires_grad_(false);
         return m;
       },
       "rank 1 has parameter weight float32 [1, 2], not trained"},
  };
  in_ranks(2, [&](int rank) {
    for (const Case& c : cases)
      EXPECT_GRADUS_ERROR(DistributedDataParallel<Module>(c.make(rank)), "E-DDP", c.says);
    auto frozen = make();
    frozen->requires_grad_(false);
    EXPECT_GRADUS_ERROR(DistributedDataParallel<Net>(frozen), "E-DDP",
                        "is not needed when a module doesn't have any parameters");
  });
}

TEST(DdpModels, a_group_comes_first_and_create_graph_is_refused) {
  EXPECT_GRADUS_ERROR(DistributedDataParallel<Net>(make()), "E-INIT",
                      "Default process group has not been initialized");
  in_ranks(1, [](int) {
    DistributedDataParallel ddp(make());
    const Tensor loss = loss_of(ddp(batch(0, 4)));
    EXPECT_GRADUS_ERROR(loss.backward({}, true, true), "E-DDP", "backward() cannot create_graph");
    ddp.module().to(kFloat64);
    EXPECT_GRADUS_ERROR(ddp(batch(0, 4)), "E-DDP", "fc1.weight was float32 on cpu and is float64 on cpu now");
  });
}

struct Norm : Module {
  BatchNorm1d bn = register_module("bn", BatchNorm1d(1));
  Tensor forward(const Tensor& x) override { return bn(x); }
};

TEST(DdpBuffers, DDP_11_are_rank_0s_before_each_pass_in_training) {
  in_ranks(2, [](int rank) {
    DistributedDataParallel ddp(make<Norm>());
    const Tensor x = rank == 0 ? tensor({{0.F}, {2.F}}) : tensor({{10.F}, {20.F}});
    const float expected[2][2][2] = {{{.1F, 1.1F}, {1.5F, 5.9F}}, {{.19F, 1.19F}, {1.59F, 5.99F}}};
    for (int pass = 0; pass < 2; ++pass) {
      ddp(x).sum().backward();
      EXPECT_NEAR(ddp.module().bn->running_mean.item<float>(), expected[pass][rank][0], 1e-6);
      EXPECT_NEAR(ddp.module().bn->running_var.item<float>(), expected[pass][rank][1], 1e-5);
    }
  });
}

TEST(DdpBuffers, DDP_11_two_passes_before_one_backward_give_right_gradients) {
  in_ranks(2, [](int rank) {
    DistributedDataParallel ddp(make<Norm>());
    const Tensor x1 = rows_of(batch(1, 8), rank).narrow(1, 0, 1),
                 x2 = rows_of(batch(2, 8), rank).narrow(1, 0, 1);
    const Tensor a = ddp(x1), b = ddp(x2);
    (loss_of(a) + loss_of(b)).backward();
    auto one = make<Norm>();
    (loss_of((*one)(x1)) + loss_of((*one)(x2))).backward();
    Tensor average = one->bn->weight.grad().clone();
    all_reduce(average, ReduceOp::avg);
    EXPECT_LT(largest_difference({ddp.module().bn->weight.grad()}, {average}), 1e-6);
  });
}

TEST(DdpBuffers, DDP_17_one_rank_may_evaluate_alone) {
  in_ranks(2, [](int rank) {
    DistributedDataParallel ddp(make<Norm>());
    if (rank == 0) {
      ddp.eval();
      EXPECT_EQ(ddp(ones({4, 1})).size(0), 4);
      ddp.train();
      const NoGradGuard no_grad;
      EXPECT_EQ(ddp(ones({4, 1})).size(0), 4);
    }
    barrier();
  });
}

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
