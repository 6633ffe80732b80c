// Streams, events, and the host's waiting.
#include <gradus/backends/sim/sim_backend.h>

namespace gradus::sim {

int64_t SimBackend::create_stream(int index, bool blocking) {
  check_usable(index);
  auto lock = scheduler_.lock();
  auto& queues = devices_[index].queues;
  const auto id = static_cast<int64_t>(queues.size());
  races_.name_stream(queue_count_,
                     str(Device(DeviceType::sim, index), id ? str(" stream ", id) : " default stream"));
  queues.push_back(std::make_unique<Queue>(index, id, blocking, queue_count_++));
  return id;
}

void SimBackend::wait_until_idle(int device) {
  std::vector<Point> points;
  Clock clock;
  {
    auto lock = scheduler_.lock();
    for (const auto& queue : devices_[device].queues) points.push_back(queue->end());
  }
  for (const Point& point : points) scheduler_.wait(point);
  auto lock = scheduler_.lock();
  for (const Point& point : points) races_.join_host(races_.clock(point.queue->number));
}

// The host knows from now on that all up to the point is done.
void SimBackend::host_waits_for(const Point& point, const Clock& clock, int device, bool own) {
  const bool done = scheduler_.wait(point);
  if (!clock.empty()) {
    auto lock = scheduler_.lock();
    races_.join_host(clock);
  }
  check_usable(device, own);
  GRADUS_CHECK(done, "E-DEVICE-SHUTDOWN", Device(DeviceType::sim, device),
               ": the process is ending, and what was queued on the device will not be done",
               hint("synchronize before exit() is called or main() returns"));
}

void SimBackend::refuse_during_capture(Capture* capture, const char* call) {
  if (!capture) return;
  capture->broken = str(call, " was made during it");
  runtime::refuse_in_capture(call);
}

bool SimBackend::query(const Stream& stream) {
  check_usable(stream.device.index());
  auto lock = scheduler_.lock();
  Queue& queue = queue_of(stream);
  refuse_during_capture(queue.capture.get(), "a query of the stream");
  const bool done = queue.end().passed();
  if (done) races_.join_host(races_.clock(queue.number));
  return done;
}

void SimBackend::synchronize(const Stream& stream) {
  Point point;
  Clock clock;
  {
    auto lock = scheduler_.lock();
    Queue& queue = queue_of(stream);
    refuse_during_capture(queue.capture.get(), "a synchronisation of the host");
    point = queue.end();
    clock = races_.clock(queue.number);
  }
  host_waits_for(point, clock, stream.device.index());
}

void SimBackend::synchronize_device(int index) {
  std::vector<std::pair<Point, Clock>> points;
  {
    auto lock = scheduler_.lock();
    for (const auto& queue : devices_[index].queues) {
      refuse_during_capture(queue->capture.get(), "a synchronisation of the device");
      points.push_back({queue->end(), races_.clock(queue->number)});
    }
  }
  for (const auto& [point, clock] : points) host_waits_for(point, clock, index);
}

void* SimBackend::create_event(int) { return new SimEvent; }
void SimBackend::destroy_event(int, void* event) noexcept { delete static_cast<SimEvent*>(event); }

void SimBackend::record(void* event, const Stream& stream) {
  check_usable(stream.device.index());
  auto& e = *static_cast<SimEvent*>(event);
  auto mark = std::make_shared<SimEvent::Mark>();
  auto lock = scheduler_.lock();
  Queue& queue = queue_of(stream);
  e = {{}, mark, {}, queue.capture != nullptr, queue.capture, {}};
  if (queue.capture) {
    e.captured = queue.capture->known[&queue];
    return;
  }
  e.point = enqueue(
      queue, {"record", Scheduler::kNoEngine, [mark] { mark->time = std::chrono::steady_clock::now(); }, {}});
  e.clock = races_.clock(queue.number);
}

void SimBackend::wait(void* event, const Stream& stream) {
  check_usable(stream.device.index());
  const auto& e = *static_cast<SimEvent*>(event);
  auto lock = scheduler_.lock();
  Queue& queue = queue_of(stream);
  if (!e.mark) return;  // never recorded
  if (e.in_graph) return join_capture(queue, e);
  refuse_during_capture(queue.capture.get(), "a wait for an event recorded outside");
  races_.join(queue.number, e.clock);
  const int from = e.point.queue->device, to = queue.device;
  if (from != to && e.point.passed()) check_usable(from);
  if (e.point.passed()) return;
  const Work pass_failure_on = [this, from, to] {
    if (from != to && devices_[from].failed.load()) fail_device(to, failure_from(from, to));
  };
  scheduler_.submit(queue, {Scheduler::kNoEngine, pass_failure_on, {e.point}});
}

// A stream that waits for an event of a capture takes part in it from there on.
void SimBackend::join_capture(Queue& queue, const SimEvent& event) {
  const std::shared_ptr<Capture> capture = event.capture.lock();
  if (!capture) refuse_captured(event, "a wait");
  if (queue.id == 0) refuse_during_capture(capture.get(), "a wait on the default stream");
  if (queue.capture && queue.capture != capture) {
    capture->broken = "another capture waited for it";
    refuse_during_capture(queue.capture.get(), "a wait for an event of another capture");
  }
  capture->join(queue, event.captured);
  queue.capture = capture;
}

// An event of a capture is nothing that the host could wait for, neither during the capture nor afterwards.
void SimBackend::refuse_captured(const SimEvent& event, const char* call) {
  if (!event.in_graph) return;
  refuse_during_capture(event.capture.lock().get(), call);
  runtime::refuse_event_of_capture();
}

bool SimBackend::query_event(void* event) {
  const auto& e = *static_cast<SimEvent*>(event);
  auto lock = scheduler_.lock();
  refuse_captured(e, "a query of an event");
  if (e.point.queue) check_usable(e.point.queue->device);
  const bool done = e.point.passed();
  if (done) races_.join_host(e.clock);
  return done;
}

void SimBackend::synchronize_event(void* event) {
  SimEvent e;
  {
    auto lock = scheduler_.lock();
    e = *static_cast<SimEvent*>(event);
    refuse_captured(e, "a synchronisation of the host");
  }
  if (e.point.queue) host_waits_for(e.point, e.clock, e.point.queue->device);
}

double SimBackend::elapsed_ms(void* start, void* end) {
  const auto &a = *static_cast<SimEvent*>(start), &b = *static_cast<SimEvent*>(end);
  auto lock = scheduler_.lock();
  for (const SimEvent* e : {&a, &b})
    runtime::check_has_time(e == &a ? "the start" : "the end", e->in_graph, e->mark != nullptr,
                            e->point.passed());
  return std::chrono::duration<double, std::milli>(b.mark->time - a.mark->time).count();
}

}  // namespace gradus::sim
