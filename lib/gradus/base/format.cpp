#include <fmt/format.h>
#include <gradus/base/format.h>

namespace gradus {

std::string format_bytes(int64_t bytes) {
  constexpr int64_t kKiB = 1 << 10;
  if (bytes < kKiB) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes) / kKiB;
  const char* unit = "KiB";
  for (const char* larger : {"MiB", "GiB", "TiB"}) {
    if (value < kKiB) break;
    value /= kKiB;
    unit = larger;
  }
  return fmt::format("{:.2f} {}", value, unit);
}

}  // namespace gradus
