// A training run's state in one file, so that it can go on as if it had never stopped.
#pragma once
#include <gradus/tensor/state_dict.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gradus {

/// One part of a checkpoint, such as the optimizer's: named tensors and named numbers or texts.
struct CheckpointPart {
  using Value = std::variant<int64_t, double, std::string>;
  StateDict tensors;
  std::map<std::string, Value> values;

  /// The value of that name; throws E-CHECKPOINT if there is none or it is of another kind.
  int64_t get_int(std::string_view name) const;
  double get_double(std::string_view name) const;
  const std::string& get_string(std::string_view name) const;
};

/// Named parts; the usual ones are "model", "optimizer", "scheduler", "scaler", "rng" and "progress".
/// All of them are needed to resume: weights alone restart Adam's moments and the learning-rate schedule.
class Checkpoint {
 public:
  /// The part of that name, made if it is not there yet.
  CheckpointPart& operator[](std::string_view name);
  /// The part of that name; throws E-CHECKPOINT naming it, the file, and the parts that are there.
  const CheckpointPart& at(std::string_view name) const;
  bool contains(std::string_view name) const;
  const auto& parts() const { return parts_; }

 private:
  friend Checkpoint load_checkpoint(const std::string& path);
  std::vector<std::pair<std::string, CheckpointPart>> parts_;
  std::string origin_ = "checkpoint";  // for messages: the file it came from
};

/// Writes a safetensors file (tensors "part/name", values as metadata), whole or not at all: a full disk or a
/// killed process leaves the checkpoint before it intact. A checksum of all names, values and bytes goes with
/// it, which the format itself has not. Throws E-ARG for a part name that is empty or has a
/// '/' in it, E-FILE.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);

/// Reads it back, to the bit. Throws what load_safetensors() throws, E-CHECKPOINT for a safetensors file that
/// is no checkpoint or one of another version, and E-CHECKSUM for one that is not as it was written.
Checkpoint load_checkpoint(const std::string& path);

}  // namespace gradus
