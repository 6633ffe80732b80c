#include <gradus/runtime/backend.h>
#include <gradus/runtime/device_info.h>
#include <gradus/runtime/device_stats.h>
#include <gradus/runtime/stream.h>

#include <utility>
#include <vector>

namespace gradus {
namespace {

// Only devices whose current stream is not the default one; almost always empty.
thread_local std::vector<Stream> current;

}  // namespace

Stream Stream::create(Device device) {
  return {device, runtime::backend(device).create_stream(device.index(), false)};
}
Stream Stream::create_blocking(Device device) {
  return {device, runtime::backend(device).create_stream(device.index(), true)};
}
bool Stream::query() const { return runtime::backend(device).query(*this); }
void Stream::synchronize() const {
  detail::count(detail::counters_of(device).synchronizations);
  runtime::backend(device).synchronize(*this);
}
void Stream::wait_stream(const Stream& other) const {
  if (other == *this) return;
  Event reached(other.device);
  reached.record(other);
  reached.wait(*this);
}

Stream current_stream(Device device) {
  for (const Stream& s : current)
    if (s.device == device) return s;
  return {device, 0};
}

static void set_current(Stream stream) {
  for (Stream& s : current)
    if (s.device == stream.device) {
      s = stream;
      return;
    }
  current.push_back(stream);
}

StreamGuard::StreamGuard(Stream stream)
    : before_(current_stream(stream.device)), device_before_(current_device(stream.device.type())) {
  set_current(stream);
  detail::make_current(stream.device);
}
StreamGuard::~StreamGuard() {
  set_current(before_);
  detail::make_current(device_before_);
}

Event::Event(Device device)
    : device_(device), handle_(runtime::backend(device).create_event(device.index())) {}
Event::~Event() {
  if (handle_) runtime::find_backend(device_.type())->destroy_event(device_.index(), handle_);
}
Event::Event(Event&& other) noexcept
    : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}
Event& Event::operator=(Event&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}
void* Event::handle() const {
  GRADUS_CHECK(handle_, "E-UNDEFINED", "Event: it was moved from",
               hint("use the event that it was moved to"));
  return handle_;
}
void Event::record(const Stream& stream) {
  GRADUS_CHECK(stream.device == device_, "E-EVENT", "Event::record: the event is on ", device_,
               ", the stream on ", stream.device, hint("make an event for each device"));
  runtime::backend(device_).record(handle(), stream);
}
void Event::wait(const Stream& stream) const { runtime::backend(stream.device).wait(handle(), stream); }
bool Event::query() const { return runtime::backend(device_).query_event(handle()); }
void Event::synchronize() const {
  detail::count(detail::counters_of(device_).synchronizations);
  runtime::backend(device_).synchronize_event(handle());
}
double Event::elapsed_time(const Event& end) const {
  return runtime::backend(device_).elapsed_ms(handle(), end.handle());
}

}  // namespace gradus
