#include "resume.h"

namespace lesson {

void keep_settings(gradus::CheckpointPart& part, const Settings& settings) {
  for (const auto& [name, value] : settings) part.values[name] = value;
}

void check_settings(const std::string& file, const gradus::CheckpointPart& part, const Settings& settings) {
  for (const auto& [name, value] : settings) {
    const std::string& before = part.get_string(name);
    GRADUS_CHECK(value == before, "E-RESUME", file, ": its run had ", name, " ", before, ", this one has ",
                 value, gradus::hint("give what it had: a run that goes on must be the one that was saved"));
  }
}

}  // namespace lesson
