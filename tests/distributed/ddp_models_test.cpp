// DistributedDataParallel's demands on the model: equal on all ranks, all of it used, and its buffers.
#include "distributed/ddp_models.h"

namespace gradus::nn {
namespace {

using namespace ddp_testing;

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

}  // namespace
}  // namespace gradus::nn
