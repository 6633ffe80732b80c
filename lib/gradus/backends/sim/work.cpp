// Kernels and copies on their way to an engine.
#include <gradus/backends/sim/fault_handler.h>
#include <gradus/backends/sim/sim_backend.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace gradus::sim {
namespace {

TensorArg bytes_arg(const void* data, size_t bytes) {
  return {const_cast<void*>(data), 1, Shape{static_cast<int64_t>(bytes)}, Shape{1}, DType::uint8};
}

// A copy of a kernel's arguments, aligned for any of them.
class Arguments {
 public:
  Arguments(const void* from, size_t bytes)
      : words_((bytes + sizeof(Word) - 1) / sizeof(Word)), bytes_(bytes) {
    std::memcpy(words_.data(), from, bytes);
  }
  void* data() { return words_.data(); }
  const void* data() const { return words_.data(); }
  size_t bytes() const { return bytes_; }

 private:
  using Word = std::max_align_t;
  std::vector<Word> words_;
  size_t bytes_;
};

// Over a link of so many bytes a second (0: no limit) they arrive piece by piece: who reads too early sees
// old bytes, who writes too early changes what is copied.
void move(void* to, const void* from, size_t bytes, double link, const std::atomic<bool>& give_up) {
  if (!(link > 0)) {
    std::memcpy(to, from, bytes);
    return;
  }
  constexpr size_t kPieces = 16;
  const auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < kPieces; ++i) {
    const size_t first = bytes * i / kPieces, end = bytes * (i + 1) / kPieces;
    const auto arrival =
        begin + std::chrono::nanoseconds(static_cast<int64_t>(1e9 * static_cast<double>(end) / link));
    for (auto now = begin; now < arrival; now = std::chrono::steady_clock::now()) {
      if (give_up) return;
      std::this_thread::sleep_until(std::min(arrival, now + std::chrono::milliseconds(10)));
    }
    std::memcpy(static_cast<std::byte*>(to) + first, static_cast<const std::byte*>(from) + first,
                end - first);
  }
}

}  // namespace

Queue& SimBackend::queue_of(const Stream& stream) {
  auto& queues = devices_[stream.device.index()].queues;
  if (stream.id < 0 || stream.id >= static_cast<int64_t>(queues.size())) runtime::refuse_stream(stream);
  return *queues[static_cast<size_t>(stream.id)];
}

// The legacy rule: the default stream and the blocking ones of its device wait for each other's earlier work.
std::vector<Point> SimBackend::legacy_order(Queue& queue) {
  std::vector<Point> points;
  if (!queue.blocking) return points;
  for (const auto& other : devices_[queue.device].queues) {
    if (other.get() == &queue || !other->blocking || (queue.id != 0 && other->id != 0)) continue;
    refuse_during_capture(other->capture.get(), "work on the default stream, which waits for this one,");
    points.push_back(other->end());
    if (options_.races) races_.join(queue.number, races_.clock(other->number));
  }
  return points;
}

// Says what the item is ordered after, and has it checked for races.
Task SimBackend::prepare(Queue& queue, const Item& item) {
  Task task{item.engine, item.work, legacy_order(queue)};
  if (options_.races) {
    std::vector<Use> uses;
    for (const auto& [tensor, access] : item.uses) uses.push_back({&tensor, access});
    races_.task(queue.number, item.name, uses);
  }
  return task;
}

Point SimBackend::enqueue(Queue& queue, const Item& item) { return enqueue_all(queue, {&item, 1}); }

// All of them, or none where one of them is refused.
Point SimBackend::enqueue_all(Queue& queue, std::span<const Item> items, bool caller_waits) {
  for (const Item& item : items)
    for (const auto& [tensor, access] : item.uses) remember_tensor(tensor, item.name);
  if (queue.capture) {
    for (const Item& item : items) queue.capture->add(queue, item);
    return {};
  }
  std::vector<Task> tasks;
  for (const Item& item : items) tasks.push_back(prepare(queue, item));
  Point end = queue.end();
  for (Task& task : tasks) end = scheduler_.submit(queue, std::move(task), caller_waits);
  return end;
}

void SimBackend::count_launch(int device) {
  if (launches_until_loss_ > 0 && --launches_until_loss_ == 0)
    fail_device(device, {"E-DEVICE-LOST",
                         str(Device(DeviceType::sim, device), ": the device is lost (it no longer answers)"),
                         "end the program; on real hardware, look at the system's log and reset the device"});
}

// CUDA's queues are bounded too: a host that is far ahead waits at its next launch.
void SimBackend::wait_for_room(const Stream& stream) {
  constexpr uint64_t kMostQueued = 256;
  Point point;
  {
    auto lock = scheduler_.lock();
    Queue& queue = queue_of(stream);
    if (queue.capture || queue.tasks.size() < kMostQueued) return;
    point = {&queue, queue.submitted - kMostQueued / 2};
  }
  scheduler_.wait(point);
}

void SimBackend::run(const Stream& stream, const runtime::KernelTask& task) {
  const int device = stream.device.index();
  check_usable(device);
  wait_for_room(stream);
  Point point;
  Clock clock;
  bool blocking;
  {
    auto lock = scheduler_.lock();
    blocking = options_.launch_blocking;
    count_launch(device);
    check_usable(device);
    Queue& queue = queue_of(stream);
    Item item{task.name, Scheduler::kCompute, kernel_work(device, task), {}};
    Arguments arguments(task.arguments, task.bytes);
    runtime::TaskOperand operands[runtime::kMaxOperands];
    const int n = task.operands(arguments.data(), operands);
    for (int i = 0; i < n; ++i) item.uses.push_back({*operands[i].tensor, operands[i].access});
    point = enqueue(queue, item);
    clock = races_.clock(queue.number);
  }
  if (blocking)
    host_waits_for(point, clock, device, true);  // else its own error shows later, however soon it happened
}

Work SimBackend::kernel_work(int device, const runtime::KernelTask& task) {
  auto arguments = std::make_shared<Arguments>(task.arguments, task.bytes);
  return [this, device, task, arguments] {
    Arguments mine = *arguments;  // a graph runs the same arguments again
    run_kernel(device, {task.name, task.run, task.operands, mine.data(), mine.bytes()});
  };
}

// On the compute engine: finds the bytes behind every operand, then does what the cpu would.
void SimBackend::run_kernel(int device, const runtime::KernelTask& task) {
  if (devices_[device].failed.load()) return;
  void* arguments = const_cast<void*>(task.arguments);
  runtime::TaskOperand operands[runtime::kMaxOperands];
  const int n = task.operands(arguments, operands);
  for (int i = 0; i < n; ++i) {
    TensorArg& tensor = *operands[i].tensor;
    const size_t bytes = tensor.extent();
    if (bytes == 0) continue;
    if (!memory_.holds(device, tensor.address, bytes))
      return fail_device(device, illegal_address(device, task.name, i + 1, tensor));
    tensor.address = memory_.bytes(tensor.address);
  }
  const auto begin = std::chrono::steady_clock::now();
  try {
    task.run(arguments);
  } catch (...) {
    fail_device(device, failure_of(device, task.name, std::current_exception()));
  }
  devices_[device].busy_ns += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
}

void SimBackend::check_address(int device, const void* data, size_t bytes, const char* which) const {
  if (!memory_.holds(device, data, bytes)) runtime::refuse_address(which, bytes, {DeviceType::sim, device});
}

Item SimBackend::copy_item(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
                           int stream_device) const {
  runtime::check_reachable(DeviceType::sim, to_device, from_device);
  Item item{"copy", Scheduler::kCompute, {}, {}};
  const void* source = from;
  void* target = to;
  if (from_device.is_sim()) {
    check_address(from_device.index(), from, bytes, "source");
    source = memory_.bytes(from);
    item.uses.push_back({bytes_arg(from, bytes), Access::read});
  }
  if (to_device.is_sim()) {
    check_address(to_device.index(), to, bytes, "target");
    target = memory_.bytes(to);
    item.uses.push_back({bytes_arg(to, bytes), Access::write});
  }
  if (from_device != to_device)
    item.engine = from_device.is_sim() ? Scheduler::copy_out(from_device.index())
                                       : Scheduler::copy_in(to_device.index());
  const double link = from_device == to_device ? 0 : options_.link;
  const auto* failed = &devices_[stream_device].failed;
  const auto* stopping = &scheduler_.stopping();
  item.work = [=] {
    if (failed->load()) return;
    move(target, source, bytes, link, *stopping);
  };
  return item;
}

void SimBackend::copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
                      const Stream& stream) {
  const int device = stream.device.index();
  check_usable(device);
  if (bytes == 0) return;
  const bool host_waits = (from_device.is_cpu() && to_device.is_cpu()) ||
                          (from_device.is_cpu() && !pinned_.holds(from, bytes)) ||
                          (to_device.is_cpu() && !pinned_.holds(to, bytes));
  Point point;
  Clock clock;
  {
    auto lock = scheduler_.lock();
    Queue& queue = queue_of(stream);
    const Item item = copy_item(to, to_device, from, from_device, bytes, device);
    if (host_waits) refuse_during_capture(queue.capture.get(), "a copy from or to pageable memory");
    const bool waits = host_waits || (options_.launch_blocking && !queue.capture);
    point = enqueue_all(queue, {&item, 1}, waits);
    if (!waits) return;
    clock = races_.clock(queue.number);
  }
  host_waits_for(point, clock, device);
}

}  // namespace gradus::sim
