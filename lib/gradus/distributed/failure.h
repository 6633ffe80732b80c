// Why a group can do nothing more. Internal to distributed/.
#pragma once
#include <gradus/base/error.h>

#include <string>

namespace gradus::distributed {

struct Failure {
  std::string code, text, hint;
};

inline Error error_of(const Failure& failure) {
  return {failure.code, failure.text, failure.hint, SourceLocation::current()};
}

inline Failure failure_of(const Error& error) {
  std::string text = error.what();
  if (!error.hint().empty()) text.resize(text.rfind("\n  hint: "));
  return {error.code(), text, error.hint()};
}

}  // namespace gradus::distributed
