// The plain loops against the operation, which takes oneDNN in float32: two roads to one number.
#include <gradus/backends/cpu/conv_loops.h>
#include <gradus/ops/conv.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/random.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gradus::cpu {
namespace {

struct Problem {
  Shape x, w;
  Conv2dOptions options;
  Window window() const {
    return {{options.stride.h, options.stride.w},
            {options.padding.h, options.padding.w},
            {options.dilation.h, options.dilation.w},
            options.groups};
  }
};

std::vector<Problem> problems() {
  return {{{2, 3, 7, 9}, {5, 3, 3, 3}, {}},
          {{1, 16, 9, 9}, {32, 16, 3, 3}, {.padding = 1}},
          {{3, 4, 11, 8}, {6, 2, 2, 3}, {.stride = {3, 2}, .padding = {1, 2}, .groups = 2}},
          {{2, 8, 10, 10}, {8, 1, 3, 3}, {.padding = 2, .dilation = 2, .groups = 8}},
          {{2, 1, 28, 28}, {17, 1, 5, 5}, {.stride = 2}},
          {{1, 5, 1, 1}, {3, 5, 1, 1}, {}}};
}

void expect_equal(const Tensor& got, const Tensor& want, const char* what) {
  ASSERT_EQ(got.sizes(), want.sizes());
  const auto a = got.to_vector<double>(), b = want.to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_TRUE(std::fabs(a[i] - b[i]) <= 2e-5 * std::max(1.0, std::fabs(b[i])))
        << what << ", element " << i << ": " << a[i] << ", expected " << b[i];
}

TEST(ConvLoops, agree_with_the_library_in_both_memory_formats) {
  for (const Problem& p : problems())
    for (MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
      const Tensor x = randn(p.x).contiguous(format), w = randn(p.w), bias = randn({p.w[0]});
      const Tensor y = conv2d(x, w, bias, p.options), g = randn(y.sizes());
      const Tensor loops_y = empty(y.sizes()), gx = empty(p.x), gw = empty(p.w), gbias = empty({p.w[0]});
      conv_loops<float>({x.arg(), w.arg(), bias.arg(), loops_y.arg(), p.window()});
      expect_equal(y, loops_y, "y");
      conv_grad_input_loops<float>({g.arg(), w.arg(), gx.arg(), p.window()});
      expect_equal(conv2d_input(p.x, w, g, p.options), gx, "gx");
      conv_grad_weight_loops<float>({g.arg(), x.arg(), gw.arg(), gbias.arg(), p.window()});
      expect_equal(conv2d_weight(x, p.w, g, p.options), gw, "gw");
      expect_equal(gbias, g.sum({0, 2, 3}), "gbias");
    }
}

}  // namespace
}  // namespace gradus::cpu
