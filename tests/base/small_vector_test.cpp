#include <gradus/base/small_vector.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gradus {
namespace {

// Long enough that std::string allocates: AddressSanitizer then sees what is lost or freed twice.
std::string text(int i) { return "the text of element number " + std::to_string(i); }

using Strings = SmallVector<std::string, 2>;

Strings make(int n) {
  Strings v;
  for (int i = 0; i < n; ++i) v.push_back(text(i));
  return v;
}

void expect_texts(const Strings& v, int n) {
  ASSERT_EQ(v.size(), static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) EXPECT_EQ(v[i], text(i));
}

// 0 and 2 elements live in the object, 3 and 5 do not.
class SmallVectorTest : public testing::TestWithParam<std::pair<int, int>> {};
INSTANTIATE_TEST_SUITE_P(Sizes, SmallVectorTest,
                         testing::Values(std::pair(0, 5), std::pair(2, 1), std::pair(2, 3), std::pair(3, 2),
                                         std::pair(5, 0), std::pair(5, 4)));

TEST_P(SmallVectorTest, copies_and_moves) {
  const auto [n, m] = GetParam();
  Strings a = make(n);
  expect_texts(a, n);
  Strings copy = a;
  expect_texts(copy, n);
  Strings moved = std::move(copy);
  expect_texts(moved, n);
  EXPECT_TRUE(copy.empty());
  copy.push_back("usable again");
  EXPECT_EQ(copy.back(), "usable again");

  Strings b = make(m);
  b = a;
  expect_texts(b, n);
  expect_texts(a, n);
  Strings c = make(m);
  c = std::move(a);
  expect_texts(c, n);
  Strings& same = c;
  c = same;
  expect_texts(c, n);
}

TEST(SmallVector, constructors) {
  EXPECT_EQ((SmallVector<int, 2>{1, 2, 3}).size(), 3u);
  const std::vector<int> values{4, 5};
  const SmallVector<int, 4> from_span{std::span<const int>(values)};
  EXPECT_EQ(from_span[1], 5);
  const SmallVector<std::unique_ptr<int>, 1> many(3);
  EXPECT_EQ(many.size(), 3u);
  EXPECT_EQ(many[2], nullptr);
}

TEST(SmallVector, takes_a_copy_of_its_own_element_while_it_grows) {
  Strings v = make(2);
  v.push_back(v[0]);
  EXPECT_EQ(v[2], text(0));
}

TEST(SmallVector, clear_and_iterate) {
  Strings v = make(5);
  int n = 0;
  for (const std::string& s : v) EXPECT_EQ(s, text(n++));
  EXPECT_EQ(n, 5);
  v.clear();
  EXPECT_TRUE(v.empty());
  v.emplace_back(3, 'x');
  EXPECT_EQ(v.back(), "xxx");
}

}  // namespace
}  // namespace gradus
