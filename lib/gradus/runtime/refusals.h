// What backends that queue work refuse, in one set of words for all of them.
#pragma once
#include <gradus/runtime/stream.h>

#include <cstddef>

namespace gradus::runtime {

/// E-STREAM: there is no such stream.
[[noreturn]] void refuse_stream(const Stream& stream);

/// E-DEVICE-MISMATCH unless both sides of a copy are the cpu's or of the backend's own type.
void check_reachable(DeviceType own, Device to, Device from);
/// E-ILLEGAL-ADDRESS: the "target" or "source" of a copy is not in the device's memory.
[[noreturn]] void refuse_address(const char* which, size_t bytes, Device device);

/// E-EVENT unless an event has a time.
void check_has_time(const char* which, bool in_graph, bool recorded, bool passed);

/// E-CAPTURE unless a capture may begin on the stream.
void check_capture_begins(const Stream& stream, bool is_capturing);
/// E-CAPTURE unless the stream is the one that began a capture.
void check_capture_ends(const Stream& stream, bool is_origin);
/// E-CAPTURE: `call` cannot be recorded.
[[noreturn]] void refuse_in_capture(const char* call);
/// E-CAPTURE: an event of a capture is nothing that a host or another stream could wait for.
[[noreturn]] void refuse_event_of_capture();
/// E-DEVICE-MISMATCH unless a graph is replayed on the device that it was captured on.
void check_replay(Device captured_on, const Stream& stream);

}  // namespace gradus::runtime
