#include <gradus/base/error.h>
#include <gradus/runtime/refusals.h>

namespace gradus::runtime {

void refuse_stream(const Stream& stream) {
  GRADUS_FAIL("E-STREAM", "stream: ", stream.device, " has no stream ", stream.id,
              hint("make one with Stream::create(device)"));
}

void check_reachable(DeviceType own, Device to, Device from) {
  for (const Device d : {to, from})
    GRADUS_CHECK(d.is_cpu() || d.type() == own, "E-DEVICE-MISMATCH", "copy: from ", from, " to ", to, ": a ",
                 to_string(own), " device cannot reach another kind of device", hint("go by way of the cpu"));
}

void refuse_address(const char* which, size_t bytes, Device device) {
  GRADUS_FAIL("E-ILLEGAL-ADDRESS", "copy: invalid argument: the ", which, " (", bytes,
              " bytes) is not in memory of ", device);
}

void check_has_time(const char* which, bool in_graph, bool recorded, bool passed) {
  GRADUS_CHECK(!in_graph, "E-EVENT", "Event::elapsed_time: ", which,
               " was recorded in a capture, so it has no time", hint("record both outside of a capture"));
  GRADUS_CHECK(recorded, "E-EVENT", "Event::elapsed_time: ", which, " was never recorded",
               hint("call record() on both events"));
  GRADUS_CHECK(passed, "E-EVENT", "Event::elapsed_time: ", which,
               " is not reached yet: its stream is still busy",
               hint("call synchronize() on the end event first"));
}

void check_capture_begins(const Stream& stream, bool is_capturing) {
  GRADUS_CHECK(stream.id != 0, "E-CAPTURE", "capture: the default stream of ", stream.device,
               " cannot be captured", hint("capture on a stream of its own: Stream::create(device)"));
  GRADUS_CHECK(!is_capturing, "E-CAPTURE", "capture: stream ", stream.id, " of ", stream.device,
               " is capturing already", hint("end that capture first"));
}

void check_capture_ends(const Stream& stream, bool is_origin) {
  GRADUS_CHECK(is_origin, "E-CAPTURE", "capture: stream ", stream.id, " of ", stream.device,
               " began no capture", hint("call capture_begin() first"));
}

void refuse_in_capture(const char* call) {
  GRADUS_FAIL("E-CAPTURE", "capture: operation not permitted when stream is capturing: ", call,
              hint("do it before capture_begin() or after capture_end()"));
}

void refuse_event_of_capture() {
  GRADUS_FAIL("E-CAPTURE",
              "event: it was recorded in a capture, so it is a place in a graph and no point in time",
              hint("record it again, outside of a capture"));
}

void check_replay(Device captured_on, const Stream& stream) {
  GRADUS_CHECK(captured_on == stream.device, "E-DEVICE-MISMATCH", "replay: the graph was captured on ",
               captured_on, ", the stream is on ", stream.device);
}

}  // namespace gradus::runtime
