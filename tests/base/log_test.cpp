#include <gradus/base/log.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace gradus {
namespace {

// Keeps warnings for a scope.
struct Warnings {
  std::vector<std::string> texts;
  WarningHandler before = set_warning_handler([this](const std::string& t) { texts.push_back(t); });
  ~Warnings() { set_warning_handler(std::move(before)); }
};

TEST(Log, a_handler_receives_the_text) {
  Warnings seen;
  warn("slow: ", 3, " of ", 4.5);
  EXPECT_EQ(seen.texts, std::vector<std::string>{"slow: 3 of 4.5"});
}

TEST(Log, without_a_handler_it_goes_to_stderr) {
  testing::internal::CaptureStderr();
  warn("careful");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "gradus warning: careful\n");
}

TEST(Log, the_handler_before_comes_back) {
  Warnings outer;
  {
    Warnings inner;
    warn("a");
    EXPECT_EQ(inner.texts.size(), 1u);
  }
  warn("b");
  EXPECT_EQ(outer.texts, std::vector<std::string>{"b"});
}

TEST(Log, a_handler_may_warn_and_replace_itself) {
  Warnings outer;
  set_warning_handler([](const std::string&) {
    set_warning_handler({});
    testing::internal::CaptureStderr();
    warn("second");
  });
  warn("first");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "gradus warning: second\n");
}

TEST(Log, once_means_once_a_line) {
  Warnings seen;
  for (int i = 0; i < 3; ++i) GRADUS_WARN_ONCE("line one ", i);
  GRADUS_WARN_ONCE("line two");
  EXPECT_EQ(seen.texts, (std::vector<std::string>{"line one 0", "line two"}));
}

}  // namespace
}  // namespace gradus
