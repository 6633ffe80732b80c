#include <gradus/runtime/backend.h>
#include <gradus/runtime/device_info.h>

namespace gradus {
namespace {

thread_local int current_index[kDeviceTypeCount] = {};

std::string why_unavailable(DeviceType type) {
  runtime::Backend* backend = runtime::find_backend(type);
  return backend ? backend->unavailable_reason() : str("this build has no ", to_string(type), " backend");
}

}  // namespace

bool is_available(DeviceType type) { return device_count(type) > 0; }
bool is_available() { return is_available(DeviceType::cuda) || is_available(DeviceType::sim); }

Device current_accelerator() {
  for (const DeviceType type : {DeviceType::cuda, DeviceType::sim})
    if (is_available(type)) return current_device(type);
  GRADUS_FAIL("E-DEVICE-UNAVAILABLE",
              "current_accelerator: there is none: ", why_unavailable(DeviceType::cuda), ", and ",
              why_unavailable(DeviceType::sim), hint("run with --device cpu"));
}

Device current_device(DeviceType type) { return {type, current_index[static_cast<int>(type)]}; }

void detail::make_current(Device device) noexcept {
  current_index[static_cast<int>(device.type())] = device.index();
}

void set_device(Device device) {
  runtime::backend(device);  // throws where it is not there
  detail::make_current(device);
}

DeviceGuard::DeviceGuard(Device device) : before_(current_device(device.type())) { set_device(device); }
DeviceGuard::~DeviceGuard() { detail::make_current(before_); }

DeviceProperties get_device_properties(Device device) {
  return runtime::backend(device).properties(device.index());
}
std::string get_device_name(Device device) { return get_device_properties(device).name; }
std::pair<int, int> get_device_capability(Device device) {
  const DeviceProperties p = get_device_properties(device);
  return {p.capability_major, p.capability_minor};
}
int utilization(Device device) { return runtime::backend(device).utilization(device.index()); }
Telemetry telemetry(Device device) { return runtime::backend(device).telemetry(device.index()); }
MemoryInfo mem_get_info(Device device) { return runtime::backend(device).memory_info(device.index()); }

}  // namespace gradus
