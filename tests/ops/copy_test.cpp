#include <gradus/base/stats.h>
#include <gradus/ops/cat.h>
#include <gradus/ops/copy.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/index.h>
#include <gradus/ops/random.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/view.h>
#include <gradus/tensor/node.h>

#include <cmath>

#include "shaping.h"

namespace gradus::optest {
namespace {

RefArray same(const RefArrays& x) { return x[0]; }

GRADUS_OP_CASES(
    copy,
    OpCase{.name = "clone",
           .shapes = pointwise_shapes(1),
           .inputs = {{normal()}},
           .forward = [](const Tensors& x) { return x[0].clone(); },
           .reference = same,
           .tolerance = 0},
    OpCase{.name = "contiguous",
           .shapes = one_input({{3, 4}, {2, 3, 2, 2}, {}, {0, 3}, {33, 40}, {2, 17, 5, 7}}),
           .inputs = {{normal()}},
           .forward = [](const Tensors& x) { return x[0].contiguous(); },
           .reference = same,
           .tolerance = 0},
    OpCase{.name = "channels_last",
           .shapes = one_input({{2, 3, 2, 2}, {2, 1, 3, 2}, {0, 2, 2, 2}, {1, 17, 5, 7}}),
           .inputs = {{normal()}},
           .forward = [](const Tensors& x) { return x[0].contiguous(MemoryFormat::channels_last); },
           .reference = same,
           .tolerance = 0},
    OpCase{.name = "to_float32",
           .shapes = pointwise_shapes(1),
           .inputs = {{normal()}},
           .forward =
               [](const Tensors& x) { return x[0].dtype() == kFloat64 ? x[0].clone() : x[0].to(kFloat32); },
           .reference = same,
           .tolerance = 0,
           .gradient_tolerance = 1},
    OpCase{.name = "copy_into_a_result",
           .shapes = {{{2, 3}, {2, 3}}, {{2, 3}, {3}}, {{2, 2, 2, 2}, {2, 1, 1}}, {{0, 3}, {1}}},
           .inputs = {{normal()}, {normal()}},
           .forward =
               [](const Tensors& x) {
                 Tensor y = x[0] * 2.0;
                 return y.copy_(x[1]) * 1.0;
               },
           .reference =
               [](const RefArrays& x) {
                 RefArray y(x[0].sizes);
                 for (int64_t i = 0; i < y.numel(); ++i) y[i] = x[1][broadcast_index(i, y.sizes, x[1].sizes)];
                 return y;
               },
           .tolerance = 0});

// Every dtype from every other, through all three roads: contiguous, strided, transposed.
TEST(Copy, all_pairs_of_dtypes) {
  for (int from = 0; from < kDTypeCount; ++from) {
    RefArray x(Shape{3, 4});
    for (int64_t i = 0; i < x.numel(); ++i) x[i] = static_cast<double>(i % 7) * 1.5;
    const Tensor source = tensor_of(x, static_cast<DType>(from));
    for (int to = 0; to < kDTypeCount; ++to) {
      const auto dtype = static_cast<DType>(to);
      RefArray wanted = values_of(source);
      for (double& v : wanted.values)
        v = dtype == kBool ? v != 0 : is_floating_point(dtype) ? v : std::trunc(v);
      EXPECT_EQ(values_of(source.to(dtype)).values, wanted.values);
      EXPECT_EQ(values_of(source.t().to(dtype).t()).values, wanted.values);
      Tensor strided = zeros({3, 8}, dtype).slice(1, 0, 8, 2);
      strided.copy_(source);
      EXPECT_EQ(values_of(strided).values, wanted.values);
    }
  }
}

TEST(Copy, floats_out_of_an_integers_range_saturate_and_nan_is_zero) {
  const Tensor x = tensor({1e30, -1e30, std::nan(""), HUGE_VAL, -HUGE_VAL, 2.9, -2.9});
  EXPECT_EQ(x.to(kInt32).to_vector<int64_t>(),
            (std::vector<int64_t>{INT32_MAX, INT32_MIN, 0, INT32_MAX, INT32_MIN, 2, -2}));
  EXPECT_EQ(x.to(kInt64).to_vector<int64_t>(),
            (std::vector<int64_t>{INT64_MAX, INT64_MIN, 0, INT64_MAX, INT64_MIN, 2, -2}));
  EXPECT_EQ(tensor({-1.0, 256.0, 300.7}).to(kUInt8).to_vector<int64_t>(), (std::vector<int64_t>{255, 0, 44}));
  EXPECT_EQ(x.to(kFloat64).to(kInt32).to_vector<int64_t>(), x.to(kInt32).to_vector<int64_t>());
  EXPECT_EQ(full({}, std::nan(""), {.dtype = kInt64}).item<int64_t>(), 0);
  EXPECT_TRUE(tensor({std::nan("")}).to(kBool).item<bool>());
}

TEST(Copy, int64_takes_no_road_through_floats) {
  const int64_t big = (int64_t{1} << 53) + 1;
  EXPECT_EQ(full({2}, big).clone()[1].item<int64_t>(), big);
}

TEST(Copy, nothing_is_copied_where_nothing_changes) {
  const Tensor x = rand({2, 3});
  EXPECT_TRUE(x.to(kFloat32).is_same(x));
  EXPECT_TRUE(x.to(Device()).is_same(x));
  EXPECT_TRUE(x.cpu().is_same(x));
  EXPECT_TRUE(x.contiguous().is_same(x));
  EXPECT_FALSE(x.clone().is_alias_of(x));
}

TEST(Copy, transposed_memory_is_copied_right_at_sizes_around_the_tile) {
  for (int64_t rows : {1, 15, 16, 17, 100})
    for (int64_t columns : {1, 2, 16, 33, 4096})
      for (DType dtype : {kUInt8, kFloat16, kFloat32, kFloat64}) {
        const Tensor x = arange(rows * columns).reshape({rows, columns}).to(dtype);
        const std::vector<double> got = x.t().contiguous().to_vector<double>(), all = x.to_vector<double>();
        for (int64_t i = 0; i < rows * columns; ++i)
          ASSERT_EQ(got[static_cast<size_t>(i)], all[static_cast<size_t>(i % rows * columns + i / rows)])
              << rows << " x " << columns;
      }
}

TEST(Copy, memory_formats_round_trip) {
  const Tensor x = arange(2 * 19 * 5 * 37).reshape({2, 19, 5, 37});
  const Tensor y = x.contiguous(MemoryFormat::channels_last);
  EXPECT_EQ(y.strides(), (Shape{19 * 5 * 37, 1, 37 * 19, 19}));
  EXPECT_EQ(y.to_vector<int64_t>(), x.to_vector<int64_t>());
  EXPECT_EQ(y.contiguous().to_vector<int64_t>(), x.to_vector<int64_t>());
  EXPECT_EQ(y.clone().strides(), y.strides());
  EXPECT_EQ(y.to(kFloat32).strides(), y.strides());
  EXPECT_THROW(arange(6).contiguous(MemoryFormat::channels_last), Error);
}

TEST(Copy, channels_last_of_one_channel_is_free_and_remembered) {
  const Tensor x = rand({4, 1, 3, 5});
  const Tensor y = x.contiguous(MemoryFormat::channels_last);
  EXPECT_TRUE(y.is_alias_of(x));
  EXPECT_EQ(y.suggest_memory_format(), MemoryFormat::channels_last);
}

TEST(Copy, copies_are_counted_and_kernels_are_not) {
  const Tensor x = rand({2, 3}), index = tensor({0});
  Stats before = stats();
  Tensor y = x.clone();
  y.copy_(x);
  EXPECT_EQ((stats() - before).copies_d2d, 2);
  EXPECT_EQ((stats() - before).bytes_d2d, 48);
  before = stats();
  index_select(x, 0, index);
  cat({x, x});
  EXPECT_EQ((stats() - before).copies_d2d, 0);
}

TEST(Copy, item_waits_and_wants_one_element) {
  const Stats before = stats();
  EXPECT_EQ(tensor({7}).item<int64_t>(), 7);
  EXPECT_EQ((stats() - before).synchronizations, 1);
  EXPECT_EQ(tensor({true}).item<bool>(), true);
  EXPECT_EQ(tensor({0.5}).to(kFloat16).item<float>(), 0.5f);
  try {
    zeros({2}).item();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-SHAPE");
    EXPECT_EQ(std::string(e.what()).substr(0, 68),
              "item: a Tensor with 2 elements cannot be converted to Scalar; its sh");
  }
}

TEST(Copy, an_overlapping_source_is_read_before_it_is_written) {
  Tensor x = arange(5);
  x.slice(0, 1, 5).copy_(x.slice(0, 0, 4));
  EXPECT_EQ(x.to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 1, 2, 3}));
  Tensor m = arange(4).reshape({2, 2});
  m.copy_(m.t());
  EXPECT_EQ(m.to_vector<int64_t>(), (std::vector<int64_t>{0, 2, 1, 3}));
}

TEST(Copy, AG_07_a_cast_to_integers_has_no_gradient) {
  const Tensor x = ones({3}).requires_grad_();
  EXPECT_FALSE(x.to(kInt64).requires_grad());
  EXPECT_TRUE(x.to(kFloat16).requires_grad());
}

TEST(Copy, gradient_returns_in_the_inputs_dtype) {
  Tensor x = ones({3}, kFloat16).requires_grad_();
  sum(x.to(kFloat32) * 2.0).backward();
  EXPECT_EQ(x.grad().dtype(), kFloat16);
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{2, 2, 2}));
}

TEST(Copy, filling_a_result_cuts_its_gradient) {
  Tensor x = ones({2}).requires_grad_();
  Tensor y = x * 3.0;
  y.fill_(1);
  EXPECT_TRUE(y.requires_grad());
  sum(y * y).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST(Copy, empty_tensors) {
  const Tensor x = zeros({0, 3});
  EXPECT_EQ(x.t().contiguous().sizes(), (Shape{3, 0}));
  EXPECT_EQ(x.to(kInt64).sizes(), (Shape{0, 3}));
  EXPECT_TRUE(x.to_vector<float>().empty());
  Tensor y = zeros({0, 3});
  y.copy_(x);
  y.fill_(1);
}

}  // namespace
}  // namespace gradus::optest
