#include <gradus/backends/sim/graph.h>
#include <gradus/backends/sim/sim_backend.h>

#include <algorithm>

namespace gradus::sim {

void Capture::add(const Queue& queue, Item item) {
  graph.items.push_back(std::move(item));
  ++known[&queue][&queue];
}

void Capture::join(const Queue& queue, const CaptureClock& clock) {
  CaptureClock& mine = known[&queue];
  for (const auto& [other, count] : clock) mine[other] = std::max(mine[other], count);
}

const Queue* Capture::unjoined() const {
  const CaptureClock& end = known.at(origin);
  for (const auto& [queue, clock] : known) {
    const auto own = clock.find(queue), seen = end.find(queue);
    if (own != clock.end() && (seen == end.end() || seen->second < own->second)) return queue;
  }
  return nullptr;
}

void SimBackend::begin_capture(const Stream& stream) {
  check_usable(stream.device.index());
  auto lock = scheduler_.lock();
  Queue& queue = queue_of(stream);
  runtime::check_capture_begins(stream, queue.capture != nullptr);
  queue.capture.reset(new Capture{&queue, {stream.device.index(), {}}, {{&queue, {}}}, ""});
}

void* SimBackend::end_capture(const Stream& stream) {
  auto lock = scheduler_.lock();
  Queue& origin = queue_of(stream);
  runtime::check_capture_ends(stream, origin.capture && origin.capture->origin == &origin);
  const std::shared_ptr<Capture> capture = origin.capture;
  for (const auto& [queue, clock] : capture->known) const_cast<Queue*>(queue)->capture = nullptr;
  GRADUS_CHECK(capture->broken.empty(), "E-CAPTURE", "capture: there is no graph, because ", capture->broken);
  const Queue* unjoined = capture->unjoined();
  GRADUS_CHECK(!unjoined, "E-CAPTURE", "capture: stream ", unjoined->id, " of ",
               Device(DeviceType::sim, unjoined->device), " took part but was not joined again",
               hint("before the end, record an event on it and let the capturing stream wait for it"));
  return new Graph(std::move(capture->graph));
}

bool SimBackend::is_capturing(const Stream& stream) {
  auto lock = scheduler_.lock();
  return queue_of(stream).capture != nullptr;
}

void SimBackend::replay(void* graph, const Stream& stream) {
  const int device = stream.device.index();
  check_usable(device);
  const auto& g = *static_cast<Graph*>(graph);
  runtime::check_replay({DeviceType::sim, g.device}, stream);
  Point point;
  Clock clock;
  bool blocking;
  {
    auto lock = scheduler_.lock();
    blocking = options_.launch_blocking;
    count_launch(device);
    check_usable(device);
    Queue& queue = queue_of(stream);
    point = enqueue_all(queue, g.items);
    clock = races_.clock(queue.number);
  }
  if (blocking) host_waits_for(point, clock, device);
}

void SimBackend::destroy_graph(void* graph) noexcept { delete static_cast<Graph*>(graph); }

}  // namespace gradus::sim
