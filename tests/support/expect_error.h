// Checks that a statement throws gradus::Error with a code, and text in its message.
#pragma once
#include <gmock/gmock.h>
#include <gradus/base/error.h>

#include <string>

namespace gradus::testing {

/// The whole message of the Error that `f` throws, behind its code: "E-FILE: path: …"; "" if it throws none.
template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.code() + ": " + error.what();
  }
  return "";
}

}  // namespace gradus::testing

#define EXPECT_GRADUS_ERROR(statement, code, text)                     \
  EXPECT_THAT(::gradus::testing::error_of([&] { (void)(statement); }), \
              ::testing::AllOf(::testing::StartsWith(std::string(code) + ": "), ::testing::HasSubstr(text)))
