#include <kernels/softmax_block.cuh>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

template <class T>
struct Softmax : ::testing::Test {};
TYPED_TEST_SUITE(Softmax, FloatingTypes);

// y and, for the gradient dy, dx of one [outer, length, inner] tensor, in double.
struct Reference {
  std::vector<double> y, dx;
};
template <class T>
Reference reference(const std::vector<T>& x, const std::vector<T>& dy, Rows rows, bool log) {
  Reference r{std::vector<double>(x.size()), std::vector<double>(x.size())};
  for (int64_t n = 0; n < rows.count; ++n) {
    const Row row = rows.row(n);
    auto at = [&](int64_t i) { return static_cast<size_t>(row.at(i)); };
    double m = -INFINITY, s = 0, dot = 0;
    for (int64_t i = 0; i < rows.length; ++i) m = std::fmax(m, static_cast<double>(x[at(i)]));
    for (int64_t i = 0; i < rows.length; ++i) s += std::exp(static_cast<double>(x[at(i)]) - m);
    for (int64_t i = 0; i < rows.length; ++i) {
      const double shifted = static_cast<double>(x[at(i)]) - m;
      r.y[at(i)] = log ? shifted - std::log(s) : std::exp(shifted) / s;
      dot += static_cast<double>(dy[at(i)]) * (log ? 1 : r.y[at(i)]);
    }
    for (int64_t i = 0; i < rows.length; ++i) {
      const auto g = static_cast<double>(dy[at(i)]);
      r.dx[at(i)] = log ? g - std::exp(r.y[at(i)]) * dot : r.y[at(i)] * (g - dot);
    }
  }
  return r;
}

template <class T, bool Log>
void check(Rows rows) {
  const auto n = static_cast<size_t>(rows.count * rows.length);
  const auto x = random_vector<T>(rows.count * rows.length),
             dy = random_vector<T>(rows.count * rows.length, 1);
  const Reference want = reference(x, dy, rows, Log);
  on_all_blocks<SoftmaxForwardBody<T, Log>>([&](Runner run) {
    for (const int lanes : {0, 1, 8, 32}) {
      std::vector<T> y(n), dx(n);
      run(SoftmaxForwardBody<T, Log>{x.data(), y.data(), rows, {lanes}});
      expect_close(y, want.y, 2 * tolerance_of<T>());
      run(SoftmaxBackwardBody<T, Log>{y.data(), dy.data(), dx.data(), rows, {lanes}});
      expect_close(dx, want.dx, 8 * tolerance_of<T>());
    }
  });
}

TYPED_TEST(Softmax, MatchesDouble) {
  check<TypeParam, false>({3, 37});
  check<TypeParam, false>({1, 1});
}
TYPED_TEST(Softmax, LogMatchesDouble) { check<TypeParam, true>({2, 101}); }
TYPED_TEST(Softmax, OverAnInnerDimension) { check<TypeParam, false>({4, 5, 2}); }

using SoftmaxForward = SoftmaxForwardBody<float, false>;

TEST(SoftmaxEdges, HugeNaNAndInfinity) {
  const float inf = INFINITY, nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{1e30f, 1e30f, -inf, -inf, nan, 1, -inf, 0, 200, inf, 0, 0};
  on_all_blocks<SoftmaxForward>([&](Runner run) {
    for (const int lanes : {0, 2}) {
      std::vector<float> y(x.size());
      run(SoftmaxForward{x.data(), y.data(), {6, 2}, {lanes}});
      expect_close(y, {0.5, 0.5, nan, nan, nan, nan, 0, 1, nan, nan, 0.5, 0.5}, 0);
    }
  });
}

TEST(SoftmaxEdges, NoRows) { run_threads(SoftmaxForward{nullptr, nullptr, {0, 5}, {8}}, 32); }

TEST(SoftmaxEdges, LanesForShortRowsAndAThreadForInterleavedOnes) {
  EXPECT_EQ(softmax_teams({1000, 10}).lanes, 16);
  EXPECT_EQ(softmax_teams({1000, 500}).lanes, 32);
  EXPECT_EQ(softmax_teams({1000, 5000}).lanes, 0);
  EXPECT_EQ(softmax_teams({10000, 1000, 100}).lanes, 1);
  EXPECT_EQ(softmax_teams({100, 1000, 100}).lanes, 0);
}

}  // namespace
}  // namespace gradus::kernels
