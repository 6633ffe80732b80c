// Which device: a small value, as torch::Device. What a device can do: backend.h.
#pragma once
#include <gradus/base/error.h>

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

namespace gradus {

enum class DeviceType : uint8_t { cpu, sim, cuda };
inline constexpr int kDeviceTypeCount = 3;

constexpr const char* to_string(DeviceType type) {
  constexpr const char* names[] = {"cpu", "sim", "cuda"};
  return names[static_cast<int>(type)];
}

namespace detail {
[[noreturn]] void refuse_device_index(DeviceType type, int index);
}

/// A device type and an index: "cpu", "sim:1", "cuda:0".
class Device {
 public:
  /// Throws E-DEVICE-ORDINAL unless 0 <= index < kMaxIndices. Whether there is such a device shows when it is
  /// used.
  constexpr Device(DeviceType type = DeviceType::cpu, int index = 0)
      : type_(type), index_(static_cast<int8_t>(index)) {
    if (index < 0 || index >= kMaxIndices) detail::refuse_device_index(type, index);
  }
  /// Parses "cpu", "cuda:1", "sim:0" …; "cuda" and "sim" mean the current device of that type on this thread
  /// (set_device()). Throws E-DEVICE-NAME for anything else; "mps" is refused with its reason.
  explicit(false) Device(std::string_view text);
  explicit(false) Device(const char* text) : Device(std::string_view(text)) {}

  constexpr DeviceType type() const { return type_; }
  constexpr int index() const { return index_; }
  constexpr bool is_cpu() const { return type_ == DeviceType::cpu; }
  constexpr bool is_cuda() const { return type_ == DeviceType::cuda; }
  constexpr bool is_sim() const { return type_ == DeviceType::sim; }
  friend constexpr bool operator==(Device, Device) = default;

  static constexpr int kMaxIndices = 128;

 private:
  DeviceType type_;
  int8_t index_;
};

/// "cpu", "sim:0", "cuda:1": the cpu has one index and is written without it.
std::string to_string(Device device);
std::ostream& operator<<(std::ostream& out, Device device);

/// "auto": the current cuda device where one is usable, else cpu. Anything else is parsed and must be
/// available: throws E-DEVICE-UNAVAILABLE with the reason.
Device select_device(std::string_view text = "auto");

/// Number of devices of a type that this process can use; 0 where the backend was not built or finds none.
int device_count(DeviceType type);

/// Blocks until all work queued on `device` is done, and throws the error it may have left.
void synchronize(Device device = {});

}  // namespace gradus
