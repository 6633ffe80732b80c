#include <cuda_on_host/machine.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "kernels/blocks/device_fault.cuh"

namespace gradus::cuda_on_host {
namespace {

int number_from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

}  // namespace

thread_local int current_device = 0;

Machine::Machine() : count_error(number_from_environment("GRADUS_CUDA_ON_HOST_ERROR", 0)) {
  const int n = count_error ? 0 : number_from_environment("GRADUS_CUDA_ON_HOST_DEVICES", 0);
  if (n == 0 && !count_error) count_error = cudaErrorNoDevice;
  for (int d = 0; d < n; ++d) {
    streams.emplace_back();
    streams.back().push_back(std::make_unique<Stream>(Stream{d, true, true}));
  }
  errors.assign(static_cast<size_t>(n), 0);
  used.assign(static_cast<size_t>(n), 0);
}

Stream* Machine::find(void* handle) {
  if (!handle) return streams[static_cast<size_t>(current_device)][0].get();
  for (const auto& device : streams)
    for (const auto& stream : device)
      if (stream.get() == handle) return stream.get();
  return nullptr;
}

DonePtr Machine::submit(Stream& stream, std::function<void()> work) {
  Item item{std::move(work), std::exchange(stream.next_after, {}),
            std::make_shared<Done>(Done{stream.device, &stream})};
  // The legacy rule: the default stream and the blocking ones wait for each other's earlier work.
  if (stream.blocking)
    for (const auto& other : streams[static_cast<size_t>(stream.device)])
      if (other.get() != &stream && other->blocking && (stream.is_default || other->is_default))
        item.after.push_back(other->last);
  stream.last = item.done;
  stream.queue.push_back(std::move(item));
  if (!std::exchange(stream.has_thread, true))
    std::thread([this, &stream] { this->work(stream); }).detach();  // to the end of the process, as a GPU is
  changed_.notify_all();
  return stream.last;
}

// Can the first item of the stream be done now?
bool Machine::is_ready(const Stream& stream) {
  if (stream.running || stream.queue.empty()) return false;
  for (const DonePtr& done : stream.queue.front().after)
    if (!done->passed) return false;
  return true;
}

// Does it; the lock is not held meanwhile.
void Machine::run_first(std::unique_lock<std::mutex>& lock, Stream& stream) {
  const Item item = std::move(stream.queue.front());
  stream.queue.pop_front();
  int& error = errors[static_cast<size_t>(stream.device)];
  for (const DonePtr& done : item.after)  // a device that waits for a failed one fails too
    if (!error) error = errors[static_cast<size_t>(done->device)];
  if (!error) {
    stream.running = true;
    lock.unlock();
    const int result = run(item);
    lock.lock();
    stream.running = false;
    if (!error) error = result;
  }
  item.done->passed = true;
  item.done->time = std::chrono::steady_clock::now();
  changed_.notify_all();
}

// A stream's thread.
void Machine::work(Stream& stream) {
  std::unique_lock lock(mutex);
  for (;;) {
    changed_.wait(lock, [&] { return is_ready(stream); });
    run_first(lock, stream);
  }
}

int Machine::run(const Item& item) {
  try {
    item.work();
    return cudaSuccess;
  } catch (const kernels::DeviceTrap&) {  // the record says what it was
  } catch (const std::exception& e) {
    std::fprintf(stderr, "cuda_on_host: a kernel threw: %s\n", e.what());
  }
  return cudaErrorLaunchFailure;
}

// A host that waits does what there is to do itself: handing each of a test's thousands of small kernels to
// another thread would take longer than the kernels.
void Machine::wait(std::unique_lock<std::mutex>& lock, const DonePtr& done) {
  while (!done->passed) {
    if (is_ready(*done->stream))
      run_first(lock, *done->stream);
    else
      changed_.wait(lock, [&] { return done->passed || is_ready(*done->stream); });
  }
}

void Machine::wait_for_device(std::unique_lock<std::mutex>& lock, int device) {
  std::vector<DonePtr> ends;
  for (const auto& stream : streams[static_cast<size_t>(device)]) ends.push_back(stream->last);
  for (const DonePtr& end : ends) wait(lock, end);
}

bool Machine::holds(int device, const void* data, size_t bytes) const {
  const auto address = reinterpret_cast<uintptr_t>(data);
  auto after = memory.upper_bound(address);
  if (after == memory.begin()) return false;
  const auto& [begin, piece] = *--after;
  return piece.second == device && address - begin <= piece.first && bytes <= piece.first - (address - begin);
}

Machine& machine() {
  static auto* made = new Machine;  // never destroyed: the streams' threads use it to the end
  return *made;
}

}  // namespace gradus::cuda_on_host
