// What must be the same in a run that goes on from a checkpoint, lest it be another run without a word.
#pragma once
#include <gradus/io/checkpoint.h>

#include <string>
#include <utility>
#include <vector>

namespace lesson {

/// Names, such as flags, and values of what the numbers of a run depend on.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// Into a part of a checkpoint.
void keep_settings(gradus::CheckpointPart& part, const Settings& settings);

/// Throws E-RESUME, naming `file` and both values, for the first that is not what the part holds.
void check_settings(const std::string& file, const gradus::CheckpointPart& part, const Settings& settings);

}  // namespace lesson
