#include <gradus/ops/autocast.h>
#include <gradus/ops/copy.h>

#include <algorithm>
#include <unordered_map>

namespace gradus::ops {
namespace {

// A weight and its copy in the lower precision, with what tells that the copy is still the weight's.
struct CachedCast {
  Tensor weight, cast;
  uint64_t storage_id = 0;
  uint32_t version = 0;

  // A copy made under no_grad has no history, so it does not serve where gradients are wanted.
  bool serves(const Tensor& x, DType to) const {
    return cast.defined() && cast.dtype() == to && version == x.version() &&
           storage_id == x.impl()->storage->id() && (cast.requires_grad() || !GradMode::is_enabled());
  }
};

thread_local std::unordered_map<const void*, CachedCast> cache;
thread_local int depth = 0;

// Only what many operations of one pass share: the model's parameters.
bool worth_keeping(const Tensor& x, DType to) {
  return detail::autocast_settings.cache && to != kFloat32 && x.dtype() == kFloat32 && x.requires_grad() &&
         x.is_leaf() && !x.impl()->base && !InferenceMode::is_enabled();
}

Tensor kept_cast(const Tensor& x, DType to) {
  CachedCast& entry = cache[x.impl()];
  if (!entry.serves(x, to)) entry = {x, x.to(to), x.impl()->storage->id(), x.version()};
  return entry.cast;
}

}  // namespace

AutocastScope::AutocastScope(const AutocastSettings& settings)
    : before_(detail::autocast_settings), before_on_(detail::autocast_on) {
  ++depth;
  detail::autocast_settings = settings;
  detail::autocast_on = std::any_of(std::begin(settings.devices), std::end(settings.devices),
                                    [](const auto& entry) { return entry.enabled; });
}

AutocastScope::~AutocastScope() {
  detail::autocast_settings = before_;
  detail::autocast_on = before_on_;
  if (--depth == 0 && !cache.empty()) cache.clear();
}

Cast autocast_of_device(CastPolicy policy, const Tensor& x) {
  if (!x.defined()) return Cast();  // the operation says what is missing
  const DeviceType type = x.device().type();
  const auto& settings = detail::autocast_settings.of(type);
  const CastTo to = policy.on(type);
  if (!settings.enabled || to == CastTo::none) return Cast();
  return Cast(type, to == CastTo::lower ? settings.dtype : kFloat32);
}

Tensor Cast::operator()(const Tensor& x) const {
  if (!x.defined() || !x.is_floating_point() || x.dtype() == to_ || x.dtype() == kFloat64 ||
      x.device().type() != type_)
    return x;
  return worth_keeping(x, to_) ? kept_cast(x, to_) : x.to(to_);
}

size_t autocast_cache_size() { return cache.size(); }
void clear_autocast_cache() { cache.clear(); }

}  // namespace gradus::ops
