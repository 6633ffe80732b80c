#include <gradus/base/dtype.h>
#include <gradus/base/error.h>
#include <gradus/base/shape.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <locale>
#include <string>

namespace gradus {
namespace {

template <class F>
Error caught(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  return Error("none", "nothing was thrown", "", SourceLocation::current());
}

TEST(Error, what_a_terminal_would_obey_is_written_out) {
  const std::string name("a\x1b[2J\0\x7f\tb\xc3\xa9", 11);
  const Error e = caught([&] { GRADUS_FAIL("E-FORMAT", "'", name, "'\nnext", hint("\r")); });
  EXPECT_STREQ(e.what(), "'a\\x1b[2J\\x00\\x7f\\x09b\xc3\xa9'\nnext\n  hint: \\x0d");
}

TEST(Error, carries_code_text_hint_and_place) {
  const int line = __LINE__ + 1;
  const Error e = caught([] { GRADUS_CHECK(1 == 2, "E-SHAPE", "op: got ", 3, hint("call f(", 4, ")")); });
  EXPECT_EQ(e.code(), "E-SHAPE");
  EXPECT_EQ(e.hint(), "call f(4)");
  EXPECT_STREQ(e.what(), "op: got 3\n  hint: call f(4)");
  EXPECT_EQ(e.where(), "error_test.cpp:" + std::to_string(line));
}

TEST(Error, without_a_hint_the_text_is_one_line) {
  const Error e = caught([] { GRADUS_FAIL("E-ARG", "op: no"); });
  EXPECT_STREQ(e.what(), "op: no");
  EXPECT_EQ(e.hint(), "");
  EXPECT_EQ(e.code(), "E-ARG");
}

TEST(Error, a_check_that_holds_does_not_build_its_message) {
  int built = 0;
  auto part = [&] { return ++built; };
  GRADUS_CHECK(true, "E-ARG", "op: ", part());
  EXPECT_EQ(built, 0);
  EXPECT_EQ(caught([&] { GRADUS_CHECK(false, "E-ARG", "op: ", part()); }).code(), "E-ARG");
  EXPECT_EQ(built, 1);
}

TEST(Error, an_assertion_names_the_condition) {
  const Error e = caught([] { GRADUS_ASSERT(1 + 1 == 3, "got ", 2); });
  EXPECT_EQ(e.code(), "E-INTERNAL");
  EXPECT_STREQ(
      e.what(),
      "internal: `1 + 1 == 3` does not hold. got 2\n  hint: this is a bug in Gradus; please report it");
}

TEST(Error, macros_are_one_statement) {
  if (false)
    GRADUS_CHECK(false, "E-ARG", "never");
  else
    SUCCEED();
}

TEST(Str, parts) {
  EXPECT_EQ(str(), "");
  EXPECT_EQ(str("a", std::string("b"), std::string_view("c"), 'd'), "abcd");
  EXPECT_EQ(str(true, " ", false), "true false");
  EXPECT_EQ(str(Shape{2, 3}, " ", Shape{}, " ", kBFloat16), "[2, 3] [] bfloat16");
}

TEST(Str, numbers) {
  EXPECT_EQ(str(int8_t{-1}, " ", uint8_t{200}, " ", -7, " ", 7u), "-1 200 -7 7");
  EXPECT_EQ(str(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(str(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(str(0.1, " ", 0.1f, " ", 1.0, " ", -0.0), "0.1 0.1 1 -0");
  EXPECT_EQ(str(1e300, " ", 1.0 / 3, " ", 1.0f / 3), "1e+300 0.3333333333333333 0.33333334");
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(str(inf, " ", -inf, " ", std::numeric_limits<double>::quiet_NaN()), "inf -inf nan");
  EXPECT_EQ(str(-std::numeric_limits<double>::denorm_min()), "-5e-324");
}

// Puts a locale that writes 1234567.5 as 1.234.567,5 in place for a scope.
class German {
 public:
  German() : before_(std::locale::global(std::locale(std::locale(), new Punctuation))) {}
  ~German() { std::locale::global(before_); }

 private:
  struct Punctuation : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::locale before_;
};

TEST(Str, FMT_13_the_global_locale_changes_nothing) {
  German german;
  EXPECT_EQ(str(1234567, " ", 1234567u, " ", 1.5, " ", 1234567.5f, " ", Shape{2621, 401000}),
            "1234567 1234567 1.5 1234567.5 [2621, 401000]");
}

}  // namespace
}  // namespace gradus
