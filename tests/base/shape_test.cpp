#include <gradus/base/dtype.h>
#include <gradus/base/shape.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <utility>

namespace gradus {
namespace {

template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code() + "|" + e.what();
  }
  return "no error";
}

TEST(Shape, is_a_small_array) {
  Shape s{2, 3};
  EXPECT_EQ(s.size(), 2);
  EXPECT_EQ(s.numel(), 6);
  EXPECT_EQ(s.back(), 3);
  s.push_back(4);
  EXPECT_EQ(s, (Shape{2, 3, 4}));
  s.insert(0, 9);
  EXPECT_EQ(s, (Shape{9, 2, 3, 4}));
  s.insert(4, 1);
  EXPECT_EQ(s, (Shape{9, 2, 3, 4, 1}));
  s.insert(2, 7);
  EXPECT_EQ(s, (Shape{9, 2, 7, 3, 4, 1}));
  s.erase(2);
  s.erase(0);
  s.erase(3);
  EXPECT_EQ(s, (Shape{2, 3, 4}));
  EXPECT_FALSE(s == (Shape{2, 3}));
  EXPECT_FALSE(s == (Shape{2, 3, 5}));
  EXPECT_EQ(Shape::filled(3, 5), (Shape{5, 5, 5}));
  EXPECT_TRUE(Shape().empty());
  EXPECT_EQ(Shape().numel(), 1);
  EXPECT_EQ((Shape{3, 0, 2}).numel(), 0);
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(to_string(Shape{2, -1, 3}), "[2, -1, 3]");
}

TEST(Shape, refuses_a_ninth_dimension) {
  EXPECT_EQ(error_of([] { Shape::filled(9, 1); }),
            "E-SHAPE|tensor: more than 8 dimensions\n  hint: flatten some dimensions first");
}

TEST(Shape, strides) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Shape{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), Shape{});
  EXPECT_EQ(contiguous_strides({2, 0, 4}), (Shape{4, 4, 1}));  // as PyTorch: a 0 counts as 1
  EXPECT_EQ(channels_last_strides({2, 3, 4, 5}), (Shape{60, 1, 15, 3}));
  EXPECT_EQ(channels_last_strides({2, 0, 4, 5}), (Shape{20, 1, 5, 1}));
  EXPECT_EQ(channels_last_strides({2, 3}), (Shape{3, 1}));
}

TEST(Broadcast, table) {
  const struct {
    Shape a, b, out;
  } rows[] = {{{}, {}, {}},
              {{2, 3}, {}, {2, 3}},
              {{2, 3}, {3}, {2, 3}},
              {{2, 3}, {1}, {2, 3}},
              {{2, 1}, {1, 3}, {2, 3}},
              {{4, 1, 3}, {2, 1}, {4, 2, 3}},
              {{0}, {1}, {0}},
              {{2, 0}, {2, 1}, {2, 0}},
              {{1, 1, 1}, {1}, {1, 1, 1}},
              {{8, 1, 6, 1}, {7, 1, 5}, {8, 7, 6, 5}}};
  for (const auto& row : rows) {
    EXPECT_EQ(broadcast_shapes(row.a, row.b, "add"), row.out) << to_string(row.a) << " " << to_string(row.b);
    EXPECT_EQ(broadcast_shapes(row.b, row.a, "add"), row.out) << to_string(row.b) << " " << to_string(row.a);
  }
}

TEST(Broadcast, refusals) {
  EXPECT_EQ(
      error_of([] {
        broadcast_shapes({2, 3}, {4, 3}, "add");
      }),
      "E-SHAPE|add: shapes [2, 3] and [4, 3] do not broadcast: sizes 2 and 4 at dimension 0 differ and "
      "neither is 1\n  hint: sizes are matched from the last dimension; use unsqueeze() or transpose() to "
      "line them up");
  for (const auto& pair : {std::pair(Shape{3}, Shape{4}), std::pair(Shape{2, 3}, Shape{2}),
                           std::pair(Shape{0}, Shape{2}), std::pair(Shape{2, 1, 3}, Shape{3, 2})})
    EXPECT_EQ(error_of([&] { broadcast_shapes(pair.first, pair.second, "add"); }).substr(0, 7), "E-SHAPE")
        << to_string(pair.first);
}

TEST(WrapDim, counts_from_either_end) {
  for (int d = 0; d < 3; ++d) {
    EXPECT_EQ(wrap_dim(d, 3, "sum"), d);
    EXPECT_EQ(wrap_dim(d - 3, 3, "sum"), d);
  }
  EXPECT_EQ(wrap_dim(0, 0, "sum"), 0);
  EXPECT_EQ(wrap_dim(-1, 0, "sum"), 0);
}

TEST(WrapDim, refuses_the_rest) {
  EXPECT_EQ(error_of([] { wrap_dim(3, 3, "sum"); }),
            "E-DIM|sum: dimension out of range (expected to be in range of [-3, 2], but got 3)");
  EXPECT_EQ(error_of([] { wrap_dim(1, 0, "sum"); }),
            "E-DIM|sum: dimension out of range (expected to be in range of [-1, 0], but got 1)");
  for (int64_t dim : {int64_t{-4}, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()})
    EXPECT_EQ(error_of([&] { wrap_dim(dim, 3, "sum"); }).substr(0, 5), "E-DIM");
}

TEST(CheckedBytes, counts) {
  EXPECT_EQ(checked_bytes({2, 3}, 4, "empty"), 24);
  EXPECT_EQ(checked_bytes({}, 8, "empty"), 8);
  EXPECT_EQ(checked_bytes({0, int64_t{1} << 40}, 8, "empty"), 0);
  EXPECT_EQ(checked_bytes({int64_t{1} << 59}, 8, "empty"), int64_t{1} << 62);
}

TEST(CheckedBytes, refuses_negative_sizes_and_overflow) {
  EXPECT_EQ(error_of([] {
              checked_bytes({2, -1}, 4, "empty");
            }),
            "E-SHAPE|empty: negative size -1 in shape [2, -1]");
  EXPECT_EQ(error_of([] { checked_bytes({int64_t{1} << 60}, 8, "empty"); }),
            "E-SHAPE|empty: shape [1152921504606846976] overflows a 64-bit byte count");
  const int64_t half = int64_t{1} << 32;
  EXPECT_EQ(error_of([&] { checked_bytes({half, half}, 1, "empty"); }).substr(0, 7), "E-SHAPE");
  EXPECT_EQ(error_of([&] {
              checked_bytes({half, half, 0}, 1, "empty");
            }).substr(0, 7),
            "E-SHAPE");  // as PyTorch
}

TEST(Shape, goes_to_a_stream_as_text) {
  std::ostringstream out;
  out << Shape{2, 3} << " " << kFloat16;
  EXPECT_EQ(out.str(), "[2, 3] float16");
}

}  // namespace
}  // namespace gradus
