#include <gradus/runtime/math_mode.h>
#include <gtest/gtest.h>

#include <string>

#include "support/expect_error.h"

namespace gradus {
namespace {

struct MathMode : ::testing::Test {
  ~MathMode() override { set_float32_matmul_precision("highest"); }
};

TEST_F(MathMode, matmul_precision_is_highest_until_it_is_set) {
  EXPECT_STREQ(get_float32_matmul_precision(), "highest");
  EXPECT_EQ(runtime::float32_matmul_precision(), MatmulPrecision::highest);
}

TEST_F(MathMode, matmul_precision_takes_pytorchs_three_words_in_any_case) {
  set_float32_matmul_precision("high");
  EXPECT_STREQ(get_float32_matmul_precision(), "high");
  EXPECT_EQ(runtime::float32_matmul_precision(), MatmulPrecision::high);
  set_float32_matmul_precision("Medium");
  EXPECT_STREQ(get_float32_matmul_precision(), "medium");
  EXPECT_EQ(runtime::float32_matmul_precision(), MatmulPrecision::medium);
  set_float32_matmul_precision("HIGHEST");
  EXPECT_STREQ(get_float32_matmul_precision(), "highest");
}

TEST_F(MathMode, another_word_is_refused_and_changes_nothing) {
  set_float32_matmul_precision("high");
  for (const char* word : {"tf32", "", "highe", "highest "})
    EXPECT_GRADUS_ERROR(
        set_float32_matmul_precision(word), "E-ARG",
        std::string("set_float32_matmul_precision: '") + word +
            "' is not one of 'highest', 'high', or 'medium'\n  hint: TF32 is 'high'; it stays "
            "high");
  EXPECT_STREQ(get_float32_matmul_precision(), "high");
}

TEST_F(MathMode, cudnn_benchmark_is_a_variable_as_in_pytorch) {
  EXPECT_FALSE(backends::cudnn::benchmark);
  backends::cudnn::benchmark = true;
  EXPECT_TRUE(backends::cudnn::benchmark);
  backends::cudnn::benchmark = false;
}

}  // namespace
}  // namespace gradus
