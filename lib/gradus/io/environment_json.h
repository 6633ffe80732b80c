// The environment as JSON: the record that `01_env_check --json` prints and that every results file holds.
#pragma once
#include <gradus/runtime/environment.h>

#include <string>

namespace gradus {

/// One JSON object on one line: "gradus", "host", "devices", "cuda" with its libraries and the doctor's
/// findings. Numbers are bytes and counts; what is unknown is null.
std::string environment_json(const Environment& environment);

}  // namespace gradus
