// What CUDA_VISIBLE_DEVICES means.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace gradus::runtime {

/// Which devices the variable leaves, as their numbers without it: {2} is the device that the program sees
/// as 0. `warning` says why some or all are hidden against the user's likely intent; "" if none is.
struct VisibleDevices {
  std::vector<int> devices;
  std::string warning;
};

/// Reads the variable's text as CUDA does, on a machine with `count` devices; no text: not set, all are
/// visible. Entries are indices, or "GPU-" and the beginning of one of `uuids`. The list ends before the
/// first entry that names no device; an empty list hides all, and so, as PyTorch reads it, does one that
/// names a device twice.
VisibleDevices parse_visible_devices(const std::optional<std::string>& text, int count,
                                     const std::vector<std::string>& uuids = {});

/// The variable's text when this was first called. The driver too reads it once, so a later setenv() has no
/// effect.
const std::optional<std::string>& cuda_visible_devices();

}  // namespace gradus::runtime
