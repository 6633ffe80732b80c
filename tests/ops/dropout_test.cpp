#include <gradus/base/random_scope.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/dropout.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/random.h>
#include <gradus/ops/reduce.h>
#include <gradus/tensor/node.h>

#include <cmath>

#include "op_case.h"
#include "support/devices.h"

namespace gradus::optest {
namespace {

using Doubles = std::vector<double>;

// Each call draws anew, so the case starts the generator again; the reference knows the first stream.
OpCase dropout_case(const char* name, double p) {
  return {.name = name,
          .shapes = pointwise_shapes(1),
          .inputs = {{normal()}},
          .forward =
              [p](const Tensors& x) {
                manual_seed(11);
                return dropout(x[0], p);
              },
          .reference =
              [p](const RefArrays& x) {
                RefArray y = x[0];
                const PhiloxStream stream{11, 0};
                for (int64_t i = 0; i < y.numel(); ++i)
                  y[i] *= stream.uniform<float>(static_cast<uint64_t>(i)) >= p ? 1 / (1 - p) : 0;
                return y;
              }};
}

GRADUS_OP_CASES(dropout, dropout_case("dropout", 0.5), dropout_case("dropout_quarter", 0.25));

TEST(Dropout, keeps_the_mean_and_drops_a_share_of_p) {
  manual_seed(3);
  const RefArray y = values_of(dropout(ones({100, 1000}), 0.3));
  int64_t dropped = 0;
  double sum = 0;
  for (double v : y.values) dropped += v == 0, sum += v;
  EXPECT_TRUE(std::fabs(static_cast<double>(dropped) / 1e5 - 0.3) <= 0.005) << dropped;
  EXPECT_TRUE(std::fabs(sum / 1e5 - 1) <= 0.01) << sum;
}

TEST(Dropout, calls_differ_and_a_seed_repeats_them) {
  const Tensor x = ones({64});
  manual_seed(5);
  const Doubles first = values_of(dropout(x)).values, second = values_of(dropout(x)).values;
  EXPECT_NE(first, second);
  manual_seed(5);
  EXPECT_EQ(values_of(dropout(x)).values, first);
  EXPECT_EQ(values_of(dropout(x)).values, second);
}

TEST(Dropout, the_gradient_drops_the_same_elements) {
  Tensor x = ones({1000}).requires_grad_();
  const Tensor y = dropout(x, 0.4);
  (void)dropout(x, 0.4);  // others may draw before backward
  y.sum().backward();
  EXPECT_EQ(values_of(x.grad()).values, values_of(y).values);
}

// On each device, so that a batch may be cut over several.
TEST(Dropout, parts_of_a_batch_drop_what_the_whole_does) {
  std::vector<Device> devices = testing::devices_with_queues();
  devices.push_back(Device());
  for (const Device device : devices) {
    for (const int64_t width : {8, 6, 1}) {
      const Tensor x = rand({7, width}).to(device);
      manual_seed(5);
      const Tensor whole = dropout(x, 0.4);
      for (const auto& [first, rows] : {std::pair{0, 3}, {3, 4}, {6, 1}}) {
        manual_seed(5);
        const BatchPartGuard guard({first, rows});
        Tensor part = x.narrow(0, first, rows).clone().requires_grad_();
        const Tensor y = dropout(part, 0.4);
        EXPECT_EQ(values_of(y).values, values_of(whole.narrow(0, first, rows)).values);
        y.sum().backward();
        for (size_t i = 0; i < values_of(y).values.size(); ++i)
          EXPECT_EQ(values_of(part.grad()).values[i] == 0, values_of(y).values[i] == 0);
        EXPECT_EQ(values_of(dropout(ones({0, width}))).values, Doubles());
      }
    }
  }
}

TEST(Dropout, nothing_happens_outside_training_or_at_zero) {
  const Tensor x = ones({4});
  manual_seed(1);
  EXPECT_TRUE(dropout(x, 0.5, false).is_same(x));
  EXPECT_TRUE(dropout(x, 0).is_same(x));
  const Doubles drawn = values_of(dropout(ones({64}))).values;
  manual_seed(1);
  EXPECT_EQ(values_of(dropout(ones({64}))).values, drawn);  // the two above have not drawn
}

TEST(Dropout, at_one_all_is_dropped) {
  Tensor x = ones({5}).requires_grad_();
  const Tensor y = dropout(x, 1);
  y.sum().backward();
  EXPECT_EQ(values_of(y).values, Doubles(5, 0.0));
  EXPECT_EQ(values_of(x.grad()).values, Doubles(5, 0.0));
}

TEST(Dropout, refusals) {
  for (double p : {-0.1, 1.5, std::nan("")}) {
    try {
      dropout(ones({1}), p);
      FAIL() << p;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "E-ARG");
    }
  }
  try {
    dropout(ones({1}), 1.5);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "dropout: dropout probability has to be between 0 and 1, but got 1.5");
  }
  try {
    dropout(ones({1}, {.dtype = kInt64}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-DTYPE");
  }
}

}  // namespace
}  // namespace gradus::optest
