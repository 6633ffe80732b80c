#include <gradus/amp/autocast.h>

namespace gradus::amp {
namespace {

ops::AutocastSettings changed(DeviceType type, const AutocastOptions& options) {
  ops::AutocastSettings settings = ops::detail::autocast_settings;
  const DType dtype = options.dtype.value_or(settings.of(type).dtype);
  GRADUS_CHECK(dtype == kFloat16 || dtype == kBFloat16, "E-DTYPE", "autocast: on ", to_string(type),
               " it casts to float16 or bfloat16, got ", to_string(dtype),
               hint("leave autocast out, or pass {.enabled = false}, to compute in float32"));
  settings.of(type) = {options.enabled, dtype};
  settings.cache = options.cache_enabled.value_or(settings.cache);
  return settings;
}

}  // namespace

autocast::autocast(DeviceType type, const AutocastOptions& options) : scope_(changed(type, options)) {}

bool is_autocast_enabled(DeviceType type) {
  return ops::detail::autocast_on && ops::detail::autocast_settings.of(type).enabled;
}
DType get_autocast_dtype(DeviceType type) { return ops::detail::autocast_settings.of(type).dtype; }
bool is_autocast_cache_enabled() { return ops::detail::autocast_settings.cache; }
void clear_autocast_cache() { ops::clear_autocast_cache(); }

}  // namespace gradus::amp
