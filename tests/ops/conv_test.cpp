#include <gradus/autograd/backward.h>
#include <gradus/autograd/gradcheck.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/conv.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/random.h>
#include <gradus/ops/view.h>

#include <cmath>

#include "shaping.h"
#include "support/expect_error.h"

namespace gradus::optest {
namespace {

int64_t windows(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

RefArray conv_reference(const RefArrays& x, const Conv2dOptions& o) {
  const Shape &in = x[0].sizes, &w = x[1].sizes;
  const Shape sizes{in[0], w[0], windows(in[2], w[2], o.stride.h, o.padding.h, o.dilation.h),
                    windows(in[3], w[3], o.stride.w, o.padding.w, o.dilation.w)};
  return build(sizes, [&](const Shape& at) {
    double sum = x.size() > 2 ? x[2][at[1]] : 0;
    const int64_t first_channel = at[1] / (w[0] / o.groups) * w[1];
    for (int64_t c = 0; c < w[1]; ++c)
      for (int64_t k = 0; k < w[2]; ++k)
        for (int64_t l = 0; l < w[3]; ++l) {
          const int64_t r = at[2] * o.stride.h - o.padding.h + k * o.dilation.h;
          const int64_t s = at[3] * o.stride.w - o.padding.w + l * o.dilation.w;
          if (r < 0 || r >= in[2] || s < 0 || s >= in[3]) continue;
          sum += x[0].at({at[0], first_channel + c, r, s}) * x[1].at({at[1], c, k, l});
        }
    return sum;
  });
}

OpCase conv_case(const char* name, std::vector<std::vector<Shape>> shapes, const Conv2dOptions& options) {
  return {.name = name,
          .shapes = std::move(shapes),
          .inputs = {{}, {}, {}},
          .forward = [options](const Tensors& x) { return conv2d(x[0], x[1], x[2], options); },
          .reference = [options](const RefArrays& x) { return conv_reference(x, options); },
          .tolerance = 32,
          .gradient_tolerance = 64};
}

GRADUS_OP_CASES(
    conv2d,
    conv_case("conv2d",
              {{{2, 2, 4, 3}, {3, 2, 2, 2}, {3}},
               {{1, 1, 3, 3}, {1, 1, 1, 1}, {1}},
               {{1, 1, 3, 4}, {2, 1, 3, 3}, {2}},
               {{1, 3, 1, 1}, {2, 3, 1, 1}, {2}},
               {{0, 2, 4, 4}, {3, 2, 3, 3}, {3}}},
              {}),
    conv_case("conv2d_padding", {{{2, 2, 3, 4}, {2, 2, 3, 2}, {2}}}, {.padding = {1, 2}}),
    conv_case("conv2d_stride", {{{2, 2, 5, 4}, {2, 2, 2, 2}, {2}}}, {.stride = {2, 3}, .padding = 1}),
    conv_case("conv2d_dilation", {{{1, 2, 6, 5}, {2, 2, 2, 3}, {2}}}, {.padding = 1, .dilation = {3, 2}}),
    conv_case("conv2d_groups", {{{2, 4, 3, 3}, {4, 2, 2, 2}, {4}}}, {.padding = 1, .groups = 2}),
    conv_case("conv2d_depthwise", {{{2, 3, 3, 3}, {6, 1, 2, 2}, {6}}}, {.padding = 1, .groups = 3}),
    conv_case("conv2d_all", {{{1, 4, 6, 5}, {2, 2, 2, 3}, {2}}},
              {.stride = {2, 1}, .padding = {1, 2}, .dilation = {2, 1}, .groups = 2}),
    OpCase{.name = "conv2d_without_bias",
           .shapes = {{{2, 2, 3, 3}, {2, 2, 2, 2}}},
           .inputs = {{}, {}},
           .forward = [](const Tensors& x) { return conv2d(x[0], x[1]); },
           .reference = [](const RefArrays& x) { return conv_reference(x, {}); },
           .tolerance = 32,
           .gradient_tolerance = 64});

// The sizes of lesson 04's network and odd ones, both memory formats, against the plain loops in double.
TEST(Conv2d, large_ones_agree_with_double_in_both_formats) {
  struct Size {
    Shape x, w;
    Conv2dOptions options;
  };
  for (const Size& s : {Size{{4, 1, 28, 28}, {32, 1, 3, 3}, {.padding = 1}},
                        Size{{4, 32, 14, 14}, {64, 32, 3, 3}, {.padding = 1}},
                        Size{{3, 17, 11, 13}, {19, 17, 3, 5}, {.stride = 2, .padding = 2}},
                        // The windows end before the padding does.
                        Size{{3, 16, 10, 12}, {8, 16, 3, 4}, {.stride = {2, 3}, .padding = 1}},
                        Size{{2, 5, 11, 14}, {6, 5, 2, 1}, {.stride = {4, 5}, .padding = {1, 0}}}}) {
    const Tensor x64 = randn(s.x, kFloat64), w64 = randn(s.w, kFloat64) * 0.1;
    auto run = [&](const Tensor& x, const Tensor& w) -> std::vector<Tensor> {
      Tensor xi = x.detach().requires_grad_(), wi = w.detach().requires_grad_();
      const Tensor y = conv2d(xi, wi, {}, s.options);
      const auto grads = autograd::grad({y}, {xi, wi}, {ones_like(y)});
      return {y.detach(), grads[0], grads[1]};
    };
    const auto want = run(x64, w64);
    for (MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
      const auto got = run(x64.to(kFloat32).contiguous(format), w64.to(kFloat32));
      for (size_t k = 0; k < want.size(); ++k) {
        const RefArray a = values_of(got[k]), b = values_of(want[k]);
        ASSERT_EQ(a.sizes, b.sizes);
        for (int64_t i = 0; i < a.numel(); ++i)
          ASSERT_TRUE(std::fabs(a[i] - b[i]) <= 1e-5 * std::max(10.0, std::fabs(b[i])))
              << "result " << k << ", element " << i << ": " << a[i] << ", expected " << b[i];
      }
      EXPECT_EQ(got[0].suggest_memory_format(), format);
    }
  }
}

TEST(Conv2d, NUM_19_a_kernel_that_is_a_transposed_view) {
  for (DType dtype : {kFloat32, kFloat64})
    for (bool transposed_x : {false, true}) {
      Tensor x = arange(1, 19, 1, {.dtype = dtype}).view({1, 2, 3, 3});
      if (transposed_x) x = x.transpose(2, 3).contiguous().transpose(2, 3);
      x.requires_grad_();
      Tensor k = arange(1, 17, 1, {.dtype = dtype}).view({2, 2, 2, 2}).requires_grad_();
      const Tensor y = conv2d(x, k.transpose(0, 1));
      const Tensor loss = (y * y).sum();
      loss.backward();
      EXPECT_EQ(values_of(y).values, (std::vector<double>{548, 600, 704, 756, 788, 872, 1040, 1124}));
      EXPECT_EQ(loss.item<double>(), 5453760);
      EXPECT_EQ(values_of(k.grad()).values,
                (std::vector<double>{16688, 21904, 32336, 37552, 24624, 32272, 47568, 55216, 63632, 68848,
                                     79280, 84496, 93456, 101104, 116400, 124048}));
      const auto gx = values_of(x.grad()).values;
      EXPECT_EQ(std::vector<double>(gx.begin(), gx.begin() + 6),
                (std::vector<double>{8976, 21568, 12864, 26128, 60848, 35264}));
    }
}

// Views of every kind, as they lie and copied: cut out, turned, and expanded from one number.
TEST(Conv2d, a_kernel_need_not_be_contiguous) {
  for (const DType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16})
    for (const int64_t groups : {1, 2}) {
      const Tensor x = randint(-3, 4, {2, 4, 5, 6}, {.dtype = dtype});
      const Tensor big = randint(-3, 4, {8, 8, 5, 4}, {.dtype = dtype});
      const Shape sizes{4, 4 / groups, 3, 2};
      const std::vector<Tensor> weights = {
          big.narrow(0, 2, 4).narrow(1, 1, sizes[1]).narrow(2, 2, 3).narrow(3, 1, 2),
          big.slice(0, 0, 8, 2).slice(1, 0, 2 * sizes[1] - 1, 2).narrow(2, 0, 3).slice(3, 0, 4, 2),
          big.transpose(2, 3).narrow(0, 0, 4).narrow(1, 0, sizes[1]).narrow(2, 0, 3).narrow(3, 1, 2),
          full({1, 1, 1, 1}, 2, {.dtype = dtype}).expand(sizes)};
      for (const Tensor& w : weights) {
        SCOPED_TRACE(str(to_string(dtype), ", ", groups, " groups, strides ", w.strides()));
        auto run = [&](const Tensor& weight) {
          Tensor xi = x.detach().requires_grad_(), wi = weight.detach().requires_grad_();
          const Tensor y = conv2d(xi, wi, {}, {.groups = groups});
          const auto grads = autograd::grad({y}, {xi, wi}, {ones_like(y)});
          return std::vector<Tensor>{y.detach(), grads[0], grads[1]};
        };
        const auto got = run(w), want = run(w.clone().contiguous());
        for (size_t k = 0; k < want.size(); ++k)
          EXPECT_EQ(values_of(got[k]).values, values_of(want[k]).values) << k;
      }
    }
}

TEST(Conv2d, AG_11_gradient_penalty_through_relu) {
  const Tensor x = randn({1, 2, 4, 4}, kFloat64).requires_grad_();
  const Tensor w = randn({2, 2, 3, 3}, kFloat64).requires_grad_();
  EXPECT_TRUE(autograd::gradgradcheck(autograd::SingleGradcheckFunction([](const Tensors& t) {
                                        const Tensor y = relu(conv2d(t[0], t[1], {}, {.padding = 1}));
                                        return (y * y).sum();
                                      }),
                                      {x, w}));
}

TEST(Conv2d, the_products_by_themselves) {
  const Conv2dOptions options{.stride = 2, .padding = 1};
  Tensor x = randn({2, 3, 5, 6}, kFloat64).requires_grad_(),
         w = randn({4, 3, 3, 2}, kFloat64).requires_grad_();
  const Tensor y = conv2d(x, w, {}, options), g = randn(y.sizes(), kFloat64);
  const auto grads = autograd::grad({y}, {x, w}, {g});
  EXPECT_EQ(values_of(conv2d_input(x.sizes(), w, g, options)).values, values_of(grads[0]).values);
  EXPECT_EQ(values_of(conv2d_weight(x, w.sizes(), g, options)).values, values_of(grads[1]).values);
}

TEST(Conv2d, the_products_refuse_sizes_of_no_convolution) {
  const Tensor x = zeros({1, 1, 4, 4}), w = zeros({1, 1, 3, 3}), g = zeros({1, 1, 2, 2});
  EXPECT_EQ(::gradus::testing::error_of([&] {
              conv2d_input({1, 1, 400, 4}, w, g);
            }),
            "E-SHAPE: conv2d_input: expected grad_output of shape [1, 1, 398, 2] for an input of shape "
            "[1, 1, 400, 4] and a weight of shape [1, 1, 3, 3], got [1, 1, 2, 2]");
  EXPECT_GRADUS_ERROR(conv2d_input({1, 3, 4, 4}, w, g), "E-SHAPE", "conv2d_input: expected input of shape");
  EXPECT_GRADUS_ERROR(conv2d_weight(x, {1, 1, 9, 9}, g), "E-SHAPE", "conv2d_weight: kernel of size 9");
  EXPECT_GRADUS_ERROR(conv2d_weight(x, {1, 1, 3, 3}, g.to(kFloat64)), "E-DTYPE",
                      "conv2d_weight: input is float32, grad_output float64");
}

TEST(Conv2d, NUM_21_an_empty_batch_has_zero_gradients) {
  Tensor w = ones({3, 3, 3, 3}).requires_grad_(), b = ones({3}).requires_grad_();
  const Tensor y = conv2d(zeros({0, 3, 3, 3}), w, b);
  EXPECT_EQ(y.sizes(), (Shape{0, 3, 1, 1}));
  y.sum().backward();
  EXPECT_EQ(w.grad().to_vector<float>(), std::vector<float>(81, 0));
  EXPECT_EQ(b.grad().to_vector<float>(), std::vector<float>(3, 0));
}

TEST(Conv2d, names_what_is_wrong) {
  using ::gradus::testing::error_of;
  const Tensor x = zeros({1, 3, 4, 4});
  EXPECT_EQ(error_of([&] {
              conv2d(x, zeros({2, 4, 3, 3}));
            }),
            "E-SHAPE: conv2d: expected input of shape [1, 3, 4, 4] to have 4 channels for a weight of shape "
            "[2, 4, 3, 3] and 1 groups, but got 3 channels");
  EXPECT_EQ(
      error_of([&] {
        conv2d(x, zeros({2, 3, 5, 5}));
      }),
      "E-SHAPE: conv2d: kernel of size 5 (with dilation) can't be greater than the input of size 4 with "
      "padding 0\n  hint: add padding, or use a smaller kernel");
  EXPECT_GRADUS_ERROR(conv2d(zeros({3, 4, 4}), zeros({2, 3, 3, 3})), "E-SHAPE", "4-D");
  EXPECT_GRADUS_ERROR(conv2d(x, zeros({2, 3, 3, 3}), {}, {.stride = 0}), "E-ARG", "stride 0");
  EXPECT_GRADUS_ERROR(conv2d(x, zeros({2, 1, 3, 3}), {}, {.groups = 3}), "E-ARG", "3 groups");
  EXPECT_GRADUS_ERROR(conv2d(x, zeros({2, 3, 3, 3}), zeros({3})), "E-SHAPE", "bias of shape [2], got [3]");
  EXPECT_GRADUS_ERROR(conv2d(x, zeros({2, 3, 3, 3}, kFloat64)), "E-DTYPE", "float32 and float64");
  EXPECT_GRADUS_ERROR(conv2d(zeros({1, 0, 4, 4}), zeros({2, 0, 3, 3})), "E-SHAPE", "at least one channel");
}

}  // namespace
}  // namespace gradus::optest
