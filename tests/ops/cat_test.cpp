#include <gradus/ops/cat.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/random.h>

#include "shaping.h"

namespace gradus::optest {
namespace {

RefArray joined(const RefArrays& x, int dim) {
  Shape sizes = x[0].sizes;
  for (size_t k = 1; k < x.size(); ++k) sizes[dim] += x[k].sizes[dim];
  return build(sizes, [&](Shape i) {
    size_t k = 0;
    for (; i[dim] >= x[k].sizes[dim]; ++k) i[dim] -= x[k].sizes[dim];
    return x[k].at(i);
  });
}

// Where element i of a padded dimension comes from; -1: from nowhere.
int64_t source(int64_t i, int64_t n, PadMode mode) {
  if (mode == PadMode::constant) return i < 0 || i >= n ? -1 : i;
  if (mode == PadMode::replicate) return i < 0 ? 0 : i >= n ? n - 1 : i;
  return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i;
}

// Of the last two dimensions.
RefArray padded(const RefArray& x, const Shape& pads, double value, PadMode mode = PadMode::constant) {
  const int w = x.sizes.size() - 1, h = w - 1;
  Shape sizes = x.sizes;
  sizes[w] += pads[0] + pads[1];
  sizes[h] += pads[2] + pads[3];
  return build(sizes, [&](Shape i) {
    i[w] = source(i[w] - pads[0], x.sizes[w], mode);
    i[h] = source(i[h] - pads[2], x.sizes[h], mode);
    return i[w] < 0 || i[h] < 0 ? value : x.at(i);
  });
}

OpCase pad_case(const char* name, const Shape& pads, PadMode mode) {
  return {.name = name,
          .shapes = one_input({{3, 4}, {2, 3, 4, 3}, {1, 3, 3}, {0, 3, 3}}),
          .inputs = {{normal()}},
          .forward =
              [=](const Tensors& x) {
                return mode == PadMode::constant ? pad(x[0], pads, 0.5) : pad(x[0], pads, mode);
              },
          .reference = [=](const RefArrays& x) { return padded(x[0], pads, 0.5, mode); },
          .tolerance = 0};
}

GRADUS_OP_CASES(
    cat,
    OpCase{.name = "cat_0",
           .shapes = {{{2, 3}, {1, 3}, {4, 3}}, {{0, 2}, {3, 2}, {0, 2}}, {{1}, {1}, {1}}},
           .inputs = {{normal()}, {normal()}, {normal()}},
           .forward =
               [](const Tensors& x) {
                 return cat({x[0], x[1], x[2]});
               },
           .reference = [](const RefArrays& x) { return joined(x, 0); },
           .tolerance = 0},
    OpCase{.name = "cat_channels",
           .shapes = {{{2, 3, 2, 2}, {2, 1, 2, 2}}, {{2, 3, 2}, {2, 0, 2}}},
           .inputs = {{normal()}, {normal()}},
           .forward =
               [](const Tensors& x) {
                 return cat({x[0], x[1]}, 1);
               },
           .reference = [](const RefArrays& x) { return joined(x, 1); },
           .tolerance = 0},
    OpCase{.name = "stack",
           .shapes = {{{2, 3}, {2, 3}}, {{}, {}}, {{0, 2}, {0, 2}}, {{2, 3, 1, 2}, {2, 3, 1, 2}}},
           .inputs = {{normal()}, {normal()}},
           .forward =
               [](const Tensors& x) {
                 return stack({x[0], x[1]}, -1);
               },
           .reference =
               [](RefArrays x) {
                 for (RefArray& a : x) a.sizes.push_back(1);
                 return joined(x, x[0].sizes.size() - 1);
               },
           .tolerance = 0},
    pad_case("pad_constant", {1, 2, 0, 3}, PadMode::constant),
    pad_case("pad_negative", {-1, 2, -1, -1}, PadMode::constant),
    pad_case("pad_reflect", {1, 2, 0, 1}, PadMode::reflect),
    pad_case("pad_replicate", {1, 4, 0, 1}, PadMode::replicate),
    OpCase{.name = "flip",
           .shapes = one_input({{3, 4}, {2, 3, 2, 2}, {1, 1}, {0, 3}}),
           .inputs = {{normal()}},
           .forward =
               [](const Tensors& x) {
                 return flip(x[0], {0, -1});
               },
           .reference =
               [](const RefArrays& x) {
                 return build(x[0].sizes, [&](Shape i) {
                   const int last = i.size() - 1;
                   i[0] = x[0].sizes[0] - 1 - i[0];
                   i[last] = x[0].sizes[last] - 1 - i[last];
                   return x[0].at(i);
                 });
               },
           .tolerance = 0},
    OpCase{
        .name = "repeat",
        .shapes = one_input({{2, 3}, {1, 1}, {0, 2}}),
        .inputs = {{normal()}},
        .forward =
            [](const Tensors& x) {
              return repeat(x[0], {2, 1, 3});
            },
        .reference =
            [](const RefArrays& x) {
              const Shape s = x[0].sizes;
              return build({2, s[0], 3 * s[1]}, [&](const Shape& i) { return x[0].at({i[1], i[2] % s[1]}); });
            },
        .tolerance = 0});

TEST(Cat, more_inputs_than_one_launch_takes) {
  TensorList rows;
  for (int64_t i = 0; i < 100; ++i) rows.push_back(full({2}, i));
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < 100; ++i) expected.insert(expected.end(), 2, i);
  EXPECT_EQ(cat(rows).to_vector<int64_t>(), expected);
}

TEST(Cat, keeps_channels_last_and_promotes) {
  const Tensor x = rand({2, 3, 4, 4}).contiguous(MemoryFormat::channels_last);
  EXPECT_TRUE(cat({x, x}, 1).is_contiguous(MemoryFormat::channels_last));
  EXPECT_TRUE(cat({x, x.contiguous()}, 1).is_contiguous());
  EXPECT_EQ(cat({tensor({1, 2}), tensor({0.5})}).to_vector<float>(), (std::vector<float>{1, 2, 0.5}));
  EXPECT_EQ(cat({zeros({0}), ones({2, 2})}).sizes(), (Shape{2, 2}));
}

TEST(Cat, refuses_shapes_that_do_not_join) {
  try {
    cat({zeros({2, 3}), zeros({2, 4})}, 0);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-SHAPE");
    EXPECT_STREQ(e.what(),
                 "cat: Sizes of tensors must match except in dimension 0. Tensor 0 has shape [2, 3], tensor "
                 "1 has [2, 4]");
  }
  EXPECT_THROW(stack({zeros({2}), zeros({3})}), Error);
  EXPECT_THROW(cat(TensorList{}), Error);
  EXPECT_THROW(pad(zeros({2, 3}), {3, 0}, PadMode::reflect), Error);
  EXPECT_THROW(pad(zeros({2}), {-2, -1}), Error);
}

TEST(Cat, empty_inputs_give_no_gradient_and_do_not_disturb) {
  Tensor a = ones({2}).requires_grad_(), b = ones({0}).requires_grad_();
  cat({a, b}).backward(tensor({3.0, 4.0}));
  EXPECT_EQ(a.grad().to_vector<float>(), (std::vector<float>{3, 4}));
}

}  // namespace
}  // namespace gradus::optest
