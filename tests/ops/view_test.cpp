#include <gradus/ops/factories.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/view.h>

#include <functional>
#include <limits>

#include "shaping.h"
#include "support/expect_error.h"

namespace gradus::optest {
namespace {

using ::gradus::testing::error_of;

RefArray transposed(const RefArray& x, int a, int b) {
  Shape sizes = x.sizes;
  std::swap(sizes[a], sizes[b]);
  return build(sizes, [&](Shape i) {
    std::swap(i[a], i[b]);
    return x.at(i);
  });
}

// x[…, start + step * i, …] along dim
RefArray sliced(const RefArray& x, int dim, int64_t start, int64_t length, int64_t step = 1) {
  return build(with(x.sizes, dim, length),
               [&](const Shape& i) { return x.at(with(i, dim, start + step * i[dim])); });
}

RefArray without_dim(RefArray x, int dim) {
  x.sizes.erase(dim);
  return x;
}

OpCase view_case(const char* name, std::vector<std::vector<Shape>> shapes,
                 std::function<Tensor(const Tensor&)> f, std::function<RefArray(const RefArray&)> reference) {
  return {.name = name,
          .shapes = std::move(shapes),
          .inputs = {{normal()}},
          .forward = [f](const Tensors& x) { return f(x[0]); },
          .reference = [reference](const RefArrays& x) { return reference(x[0]); },
          .tolerance = 0};
}

GRADUS_OP_CASES(
    view,
    view_case(
        "reshape", one_input({{4, 6}, {2, 3, 2, 2}, {24, 1}}),
        [](const Tensor& x) {
          return reshape(x, {3, -1, 2});
        },
        [](const RefArray& x) {
          return reshaped(x, {3, x.numel() / 6, 2});
        }),
    view_case(
        "reshape_empty", one_input({{0, 3}, {2, 0, 2, 2}}),
        [](const Tensor& x) {
          return reshape(x, {5, 0});
        },
        [](const RefArray& x) {
          return reshaped(x, {5, 0});
        }),
    view_case(
        "flatten", one_input({{3, 4}, {2, 3, 2, 2}, {1, 1}, {0, 2}}),
        [](const Tensor& x) { return flatten(x); },
        [](const RefArray& x) { return reshaped(x, {x.numel()}); }),
    view_case(
        "flatten_from_1", one_input({{2, 3, 2, 2}, {2, 1, 3, 1}, {0, 3, 2, 2}}),
        [](const Tensor& x) { return x.flatten(1); },
        [](const RefArray& x) {
          return reshaped(x, {x.sizes[0], x.sizes[1] * x.sizes[2] * x.sizes[3]});
        }),
    view_case(
        "transpose", one_input({{3, 4}, {2, 3, 2, 2}, {1, 3, 1}, {0, 3}}),
        [](const Tensor& x) { return transpose(x, 0, -1); },
        [](const RefArray& x) { return transposed(x, 0, x.sizes.size() - 1); }),
    view_case(
        "t", one_input({{3, 4}, {1, 3}, {2, 0}}), [](const Tensor& x) { return x.t(); },
        [](const RefArray& x) { return transposed(x, 0, 1); }),
    view_case(
        "permute", one_input({{2, 3, 4}, {1, 3, 1}, {2, 0, 3}}),
        [](const Tensor& x) {
          return permute(x, {2, 0, -2});
        },
        [](const RefArray& x) {
          return build({x.sizes[2], x.sizes[0], x.sizes[1]}, [&](const Shape& i) {
            return x.at({i[1], i[2], i[0]});
          });
        }),
    view_case(
        "expand", one_input({{3, 1}, {1, 1}, {3, 4}}),
        [](const Tensor& x) {
          return expand(x, {2, -1, 4});
        },
        [](const RefArray& x) {
          return build({2, x.sizes[0], 4}, [&](const Shape& i) {
            return x.at({i[1], x.sizes[1] == 1 ? 0 : i[2]});
          });
        }),
    view_case(
        "expand_to_nothing", one_input({{1, 3}}),
        [](const Tensor& x) {
          return expand(x, {0, 3});
        },
        [](const RefArray&) {
          return RefArray(Shape{0, 3});
        }),
    view_case(
        "squeeze", one_input({{1, 3, 1, 2}, {1, 1}, {1, 0}}), [](const Tensor& x) { return squeeze(x); },
        [](const RefArray& x) {
          Shape sizes;
          for (int64_t n : x.sizes)
            if (n != 1) sizes.push_back(n);
          return reshaped(x, sizes);
        }),
    view_case(
        "squeeze_dim", one_input({{2, 1, 3}, {1, 1, 1}, {0, 1, 1}}),
        [](const Tensor& x) { return squeeze(x, -2); }, [](const RefArray& x) { return without_dim(x, 1); }),
    view_case(
        "unsqueeze", one_input({{2, 3}, {}, {0}}), [](const Tensor& x) { return unsqueeze(x, -1); },
        [](const RefArray& x) {
          Shape sizes = x.sizes;
          sizes.push_back(1);
          return reshaped(x, sizes);
        }),
    view_case(
        "narrow", one_input({{2, 5}, {2, 4, 2, 2}, {0, 3}}),
        [](const Tensor& x) { return narrow(x, 1, 1, 2); },
        [](const RefArray& x) { return sliced(x, 1, 1, 2); }),
    view_case(
        "select", one_input({{3, 4}, {2, 3, 2, 2}, {1, 3}, {3, 0}}),
        [](const Tensor& x) { return select(x, 0, -1); },
        [](const RefArray& x) { return without_dim(sliced(x, 0, x.sizes[0] - 1, 1), 0); }),
    view_case(
        "slice", one_input({{2, 7}, {2, 7, 2, 2}, {0, 7}}),
        [](const Tensor& x) { return slice(x, 1, 1, -1, 2); },
        [](const RefArray& x) { return sliced(x, 1, 1, 3, 2); }),
    view_case(
        "slice_nothing", one_input({{2, 3}}), [](const Tensor& x) { return slice(x, 1, 2, 1); },
        [](const RefArray&) {
          return RefArray(Shape{2, 0});
        }),
    view_case(
        "chunk", one_input({{2, 7}, {2, 7, 2, 2}}), [](const Tensor& x) { return chunk(x, 3, 1)[1]; },
        [](const RefArray& x) { return sliced(x, 1, 3, 3); }),
    view_case(
        "split_sizes", one_input({{7, 2}}),
        [](const Tensor& x) {
          return split(x, {1, 4, 2})[1];
        },
        [](const RefArray& x) { return sliced(x, 0, 1, 4); }),
    view_case(
        "split_sizes_last", one_input({{7, 2}}),
        [](const Tensor& x) {
          return split(x, {1, 4, 2})[2];
        },
        [](const RefArray& x) { return sliced(x, 0, 5, 2); }),
    view_case(
        "unbind", one_input({{3, 2}, {2, 3, 2, 2}}), [](const Tensor& x) { return unbind(x)[1]; },
        [](const RefArray& x) { return without_dim(sliced(x, 0, 1, 1), 0); }));

TEST(View, all_pieces_of_a_split_reach_the_gradient_in_one_node) {
  Tensor x = arange(6.0).requires_grad_();
  const std::vector<Tensor> pieces = split(x, 2);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].grad_fn().get(), pieces[2].grad_fn().get());
  sum(pieces[0] * 2.0 + pieces[2]).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{2, 2, 0, 0, 1, 1}));
}

TEST(View, splits_of_every_size) {
  const Tensor x = arange(7);
  EXPECT_EQ(x.split(3).back().to_vector<int64_t>(), (std::vector<int64_t>{6}));
  EXPECT_EQ(x.chunk(4).size(), 4u);
  EXPECT_EQ(x.chunk(5).size(), 4u);  // pieces of 2, as PyTorch's
  EXPECT_EQ(zeros({0, 2}).chunk(3).size(), 3u);
  EXPECT_GRADUS_ERROR(
      zeros({0, 2}).chunk(INT64_MAX), "E-ARG",
      "chunk: dimension 0 of shape [0, 2] is empty and would be cut into 9223372036854775807");
  EXPECT_EQ(zeros({0, 2}).split(2).size(), 1u);
}

TEST(View, view_shares_memory_and_refuses_what_it_cannot_do) {
  const Tensor x = zeros({2, 3, 4});
  EXPECT_TRUE(x.view({6, 4}).is_alias_of(x));
  EXPECT_TRUE(x.transpose(0, 1).view({3, 2, 2, 2}).is_alias_of(x));
  EXPECT_EQ(error_of([&] { x.transpose(0, 1).view({24}); }),
            "E-STRIDE: view: view size [24] is not compatible with input tensor's size [3, 2, 4] and stride "
            "[4, 12, 1] "
            "(at least one dimension spans across two contiguous subspaces)\n"
            "  hint: Use .reshape(...) instead: it copies where it must");
  EXPECT_FALSE(x.transpose(0, 1).reshape({24}).is_alias_of(x));
  EXPECT_TRUE(x.reshape({24}).is_alias_of(x));
}

TEST(View, channels_last_memory_is_reshaped_not_viewed) {
  const Tensor x = arange(24).reshape({1, 2, 3, 4}).contiguous(MemoryFormat::channels_last);
  EXPECT_NE(error_of([&] { x.view({24}); }).find("Use .reshape(...)"), std::string::npos);
  EXPECT_EQ(x.flatten(1).to_vector<int64_t>(), arange(24).to_vector<int64_t>());
}

TEST(View, wrong_arguments_are_refused_with_both_values) {
  const Tensor x = zeros({2, 3});
  EXPECT_EQ(error_of([&] {
              x.reshape({4, 2});
            }),
            "E-SHAPE: reshape: shape '[4, 2]' is invalid for input of size 6 with shape [2, 3]");
  EXPECT_EQ(error_of([&] {
              x.reshape({4, -1});
            }),
            "E-SHAPE: reshape: shape '[4, -1]' is invalid for input of size 6 with shape [2, 3]");
  EXPECT_EQ(error_of([&] {
              x.reshape({-1, -1});
            }),
            "E-SHAPE: reshape: only one dimension can be inferred, got [-1, -1]");
  EXPECT_EQ(error_of([&] { x.transpose(0, 2); }),
            "E-DIM: transpose: dimension out of range (expected to be in range of [-2, 1], but got 2)");
  EXPECT_EQ(error_of([&] { x.select(1, 3); }),
            "E-INDEX: select: index 3 is out of bounds for dimension 1 with size 3");
  EXPECT_EQ(error_of([&] { x[-3]; }),
            "E-INDEX: select: index -3 is out of bounds for dimension 0 with size 2");
  EXPECT_EQ(error_of([&] { x.narrow(1, 2, 2); }),
            "E-INDEX: narrow: start (2) + length (2) exceeds dimension size (3) of dimension 1");
  EXPECT_EQ(error_of([&] { x.permute({0, 0}); }), "E-DIM: permute: dimension 0 occurs twice in [0, 0]");
  EXPECT_EQ(error_of([&] {
              x.expand({2, 4});
            }).substr(0, 101),
            "E-SHAPE: expand: the expanded size of the tensor (4) must match the existing size (3) at "
            "non-singleto");
  EXPECT_EQ(
      error_of([&] {
        split(x, {1, 1}, 1);
      }),
      "E-SHAPE: split: split_sizes sum up to 2, expected exactly 3 (input tensor's size at dimension 1)");
  EXPECT_EQ(error_of([&] { zeros({}).select(0, 0); }), "E-DIM: select: cannot be applied to a 0-dim tensor");
  EXPECT_EQ(error_of([&] { x.slice(0, 0, 2, -1); }).substr(0, 46),
            "E-ARG: slice: step must be positive, got -1\n  ");
}

TEST(View, sizes_that_overflow_are_refused_instead_of_wrapping_around) {
  constexpr int64_t big = int64_t{1} << 32, most = std::numeric_limits<int64_t>::max();
  const Tensor x = zeros({10}), none = zeros({0});
  auto code = [](const std::function<void()>& f) { return error_of(f).substr(0, 7); };
  EXPECT_EQ(code([&] { none.view({big, big}); }), "E-SHAPE");
  EXPECT_EQ(code([&] { none.reshape({big, big, -1}); }), "E-SHAPE");
  EXPECT_EQ(code([&] { zeros({1}).expand({big, big}); }), "E-SHAPE");
  EXPECT_EQ(code([&] { split(x, {most, most, 12}); }), "E-SHAPE");
  EXPECT_EQ(x.slice(0, 3, most, most).sizes(), Shape{1});
  EXPECT_EQ(x.slice(0, 0, 10, 9).strides(), Shape{9});
  EXPECT_EQ(x.chunk(most).size(), 10u);
}

}  // namespace
}  // namespace gradus::optest
