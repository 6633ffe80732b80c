// Running a kernel body on every kind of block, and comparing with a reference in double.
#pragma once
#include <gradus/base/random.h>
#include <gtest/gtest.h>
#include <kernels/blocks/thread_block.h>

#include <cmath>
#include <vector>

#if defined(__SANITIZE_THREAD__)
#define GRADUS_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GRADUS_UNDER_TSAN 1
#endif
#endif

namespace gradus::kernels {

/// Runs a body on SerialBlock (block_size 0) or on ThreadBlock.
struct Runner {
  int block_size;
  template <class Body>
  void operator()(const Body& body) const {
    if (block_size == 0)
      run_serial(body);
    else
      run_threads(body, block_size);
  }
};

#ifdef GRADUS_UNDER_TSAN
inline constexpr int kBlockSizes[] = {0, 2,
                                      64};  // enough for races, and threads are slow under ThreadSanitizer
#else
inline constexpr int kBlockSizes[] = {0, 1, 2, 7, 32, 64, 96};
#endif

/// Calls test(run) for SerialBlock and for ThreadBlocks of each of these sizes that Body supports.
template <class Body, class Test>
void on_all_blocks(const Test& test) {
  for (const int size : kBlockSizes) {
    if (size != 0 && !Body::supports(size)) continue;
    SCOPED_TRACE(size == 0 ? std::string("SerialBlock") : str("ThreadBlock of ", size));
    test(Runner{size});
    if (::testing::Test::HasFailure()) return;
  }
}

/// n normal numbers; another `salt` gives others.
template <class T = float>
std::vector<T> random_vector(int64_t n, uint64_t salt = 0) {
  std::vector<T> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<T>(PhiloxStream{99, salt}.normal<float>(i));
  return v;
}

/// Relative to max(1, |want|); NaN and infinities must be the same in both.
template <class T>
void expect_close(const std::vector<T>& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const auto g = static_cast<double>(got[i]);
    if (g == want[i] || (std::isnan(g) && std::isnan(want[i]))) continue;
    const double error = std::fabs(g - want[i]) / std::fmax(1.0, std::fabs(want[i]));
    ASSERT_TRUE(error <= tolerance) << "element " << i << ": got " << g << ", want " << want[i];
  }
}

/// How far a value of type T may be from the double reference of a short computation.
template <class T>
constexpr double tolerance_of() {
  if (std::is_same_v<T, double>) return 1e-13;
  if (std::is_same_v<T, float>) return 2e-6;
  return std::is_same_v<T, Half> ? 1e-3 : 8e-3;
}

using FloatingTypes = ::testing::Types<float, double, Half, BFloat16>;

}  // namespace gradus::kernels
