#include <gradus/runtime/backend.h>
#include <gradus/runtime/device_info.h>
#include <gradus/runtime/device_stats.h>

#include <charconv>
#include <ostream>

namespace gradus {
namespace {

DeviceType parse_type(std::string_view name, std::string_view text) {
  for (int t = 0; t < kDeviceTypeCount; ++t)
    if (name == to_string(static_cast<DeviceType>(t))) return static_cast<DeviceType>(t);
  GRADUS_CHECK(name != "mps", "E-DEVICE-NAME", "device: 'mps' needs Apple's Metal, which only macOS has",
               hint("use cpu, sim or cuda"));
  GRADUS_FAIL("E-DEVICE-NAME", "device: '", text, "' is not a device",
              hint("use cpu, sim, cuda, or one with an index such as cuda:1"));
}

int parse_index(std::string_view digits, std::string_view text) {
  int index = -1;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  GRADUS_CHECK(error == std::errc() && end == digits.data() + digits.size() && index >= 0 &&
                   index < Device::kMaxIndices,
               "E-DEVICE-NAME", "device: '", text, "' has no valid index after the colon",
               hint("an index is a number from 0, as in cuda:1"));
  return index;
}

}  // namespace

void detail::refuse_device_index(DeviceType type, int index) {
  GRADUS_FAIL("E-DEVICE-ORDINAL", "device: invalid device ordinal: ", to_string(type), ":", index,
              hint("indices count from 0 and are below ", Device::kMaxIndices));
}

Device::Device(std::string_view text) : type_(DeviceType::cpu), index_(0) {
  const size_t colon = text.find(':');
  type_ = parse_type(text.substr(0, colon), text);
  index_ = static_cast<int8_t>(colon == text.npos ? current_device(type_).index()
                                                  : parse_index(text.substr(colon + 1), text));
  GRADUS_CHECK(!is_cpu() || index_ == 0, "E-DEVICE-NAME", "device: '", text,
               "' does not exist: there is one cpu", hint("use cpu"));
}

std::string to_string(Device device) {
  return device.is_cpu() ? "cpu" : str(to_string(device.type()), ":", device.index());
}

int device_count(DeviceType type) {
  runtime::Backend* b = runtime::find_backend(type);
  return b ? b->device_count() : 0;
}

std::ostream& operator<<(std::ostream& out, Device device) { return out << to_string(device); }

Device select_device(std::string_view text) {
  if (text == "auto") return device_count(DeviceType::cuda) > 0 ? Device("cuda") : Device("cpu");
  const Device device(text);
  runtime::backend(device);  // throws where it is not there
  return device;
}

void synchronize(Device device) {
  detail::count(detail::counters_of(device).synchronizations);
  runtime::backend(device).synchronize_device(device.index());
}

// What to use in place of a device of that type.
static const char* instead_of(DeviceType type) {
  return type == DeviceType::cuda ? "run with --device sim, which behaves like one, or with --device cpu; "
                                    "01_env_check says what a GPU needs"
                                  : "run with --device cpu";
}

runtime::Backend& runtime::backend(Device device) {
  Backend* b = find_backend(device.type());
  GRADUS_CHECK(b, "E-DEVICE-UNAVAILABLE", "device: ", device, " is not available: this build has no ",
               to_string(device.type()), " backend", hint(instead_of(device.type())));
  const int count = b->device_count();
  GRADUS_CHECK(count > 0, "E-DEVICE-UNAVAILABLE", "device: ", device,
               " is not available: ", b->unavailable_reason(), hint(instead_of(device.type())));
  GRADUS_CHECK(device.index() < count, "E-DEVICE-ORDINAL", "device: invalid device ordinal: ", device,
               ", but there ", count == 1 ? "is " : "are ", count, " ", to_string(device.type()),
               count == 1 ? " device" : " devices", hint("indices count from 0"));
  return *b;
}

}  // namespace gradus
