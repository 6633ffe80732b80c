#include <gradus/base/error.h>
#include <gradus/runtime/visible_devices.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace gradus::runtime {
namespace {

constexpr int kNone = -1;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// The one device whose UUID begins so.
int by_uuid(std::string_view entry, const std::vector<std::string>& uuids) {
  int found = kNone;
  for (size_t i = 0; i < uuids.size(); ++i) {
    if (!uuids[i].starts_with(entry)) continue;
    if (found != kNone) return kNone;
    found = static_cast<int>(i);
  }
  return found;
}

// As strtoul: the digits at the beginning count, so "1gpu" is 1.
int by_index(std::string_view entry, int count) {
  if (entry.starts_with('+')) entry.remove_prefix(1);
  int index = kNone;
  std::from_chars(entry.data(), entry.data() + entry.size(), index);
  return index < count ? index : kNone;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> entries;
  while (true) {
    const size_t comma = text.find(',');
    entries.push_back(trimmed(text.substr(0, comma)));
    if (comma == text.npos) return entries;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

VisibleDevices parse_visible_devices(const std::optional<std::string>& text, int count,
                                     const std::vector<std::string>& uuids) {
  VisibleDevices result;
  auto& devices = result.devices;
  if (!text || count == 0) {
    for (int i = 0; i < count; ++i) devices.push_back(i);
    return result;
  }
  const std::string hides_all = str("CUDA_VISIBLE_DEVICES='", *text, "' hides ",
                                    count == 1 ? "the one device" : str("all ", count, " devices"));
  for (const std::string_view entry : split(*text)) {
    const int device = entry.starts_with("GPU-") ? by_uuid(entry, uuids) : by_index(entry, count);
    if (std::count(devices.begin(), devices.end(), device))
      return {{}, str(hides_all, ": it names device ", device, " twice")};
    if (device >= 0) {
      devices.push_back(device);
    } else {
      result.warning = !devices.empty()
                           ? str("CUDA_VISIBLE_DEVICES='", *text, "' shows ", devices.size(), " of ", count,
                                 " devices: it ends at '", entry, "', which is none")
                       : entry.empty() ? hides_all
                                       : str(hides_all, ": there is no device '", entry, "'");
      break;
    }
  }
  return result;
}

const std::optional<std::string>& cuda_visible_devices() {
  static const std::optional<std::string> text = [] {
    const char* value = std::getenv("CUDA_VISIBLE_DEVICES");
    return value ? std::optional<std::string>(value) : std::nullopt;
  }();
  return text;
}

}  // namespace gradus::runtime
