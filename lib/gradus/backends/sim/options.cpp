#include <gradus/backends/sim/memory.h>
#include <gradus/backends/sim/options.h>
#include <gradus/base/error.h>
#include <gradus/base/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace gradus::sim {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kBytes[] = {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"KB", 1e3},
                           {"MB", 1e6},     {"GB", 1e9},     {"", 1}};

// A number with an optional unit, such as "1.5GiB"; false unless it is positive and nothing follows.
bool parse(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || !(value >= 0)) return false;
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  for (const Unit& u : kBytes)
    if (unit == u.name) {
      value *= u.factor;
      return true;
    }
  return false;
}

// Sets `field` if the variable is there and not empty.
template <class T>
void read(const char* variable, T& field, double least, double most, const char* meaning) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return;
  double value = 0;
  GRADUS_CHECK(parse(text, value) && value >= least && value <= most &&
                   (std::is_floating_point_v<T> || value == std::floor(value)),
               "E-ENVIRONMENT", variable, ": '", text, "' is not ", meaning,
               hint("set it to one, or unset it"));
  field = static_cast<T>(value);
}

constexpr double kMany = 1e15, kLongestJitter = 1e6;

}  // namespace

Options options_from_environment() {
  Options o;
  read("GRADUS_SIM_DEVICES", o.devices, 1, DeviceMemory::kMaxDevices, "a number of devices from 1 to 8");
  read("GRADUS_SIM_MEMORY", o.memory, 0x1p20, DeviceMemory::kMostPerDevice,
       "a size from 1MiB to 16GiB (units: KiB, MiB, GiB, KB, MB, GB)");
  read("GRADUS_SIM_LINK", o.link, 0, kMany, "a number of bytes a second, such as 12GB");
  read("GRADUS_SIM_JITTER", o.jitter_us, 0, kLongestJitter, "a number of microseconds up to 1000000");
  read("GRADUS_SIM_RACES", o.races, 0, 1, "0 or 1");
  read("CUDA_LAUNCH_BLOCKING", o.launch_blocking, 0, 1, "0 or 1");
  read("GRADUS_LAUNCH_BLOCKING", o.launch_blocking, 0, 1, "0 or 1");
  read("GRADUS_SIM_FAIL_ALLOCATION", o.fail_allocation, 0, kMany, "a count");
  read("GRADUS_SIM_LOSE_DEVICE", o.lose_device, 0, kMany, "a count");
  check(o);
  return o;
}

void check(const Options& o) {
  GRADUS_CHECK(o.devices >= 1 && o.devices <= DeviceMemory::kMaxDevices, "E-ARG",
               "sim::Options: devices must be from 1 to ", DeviceMemory::kMaxDevices, ", got ", o.devices);
  GRADUS_CHECK(o.memory > 0 && o.memory <= DeviceMemory::kMostPerDevice, "E-ARG",
               "sim::Options: memory must be from 1 byte to ",
               format_bytes(int64_t{DeviceMemory::kMostPerDevice}), ", got ",
               format_bytes(static_cast<int64_t>(o.memory)));
  GRADUS_CHECK(o.link == 0 || (o.link >= 1 && o.link <= kMany), "E-ARG",
               "sim::Options: link must be 0 or at least 1 byte a second, got ", o.link);
  GRADUS_CHECK(o.jitter_us >= 0 && o.jitter_us <= kLongestJitter, "E-ARG",
               "sim::Options: jitter_us must be from 0 to ", kLongestJitter, ", got ", o.jitter_us);
  GRADUS_CHECK(o.fail_allocation >= 0 && o.lose_device >= 0, "E-ARG", "sim::Options: fail_allocation (",
               o.fail_allocation, ") and lose_device (", o.lose_device, ") must not be negative");
}

}  // namespace gradus::sim
