#include <gradus/data/device_prefetcher.h>
#include <gradus/runtime/backend.h>
#include <gradus/runtime/stream.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace gradus {
namespace {

// Streams live as long as the process, so all prefetchers of a device share one.
Stream copy_stream(Device device) {
  static std::mutex mutex;
  static std::vector<Stream> streams;
  std::lock_guard lock(mutex);
  const auto found = std::find_if(streams.begin(), streams.end(),
                                  [&](const Stream& stream) { return stream.device == device; });
  if (found != streams.end()) return *found;
  streams.push_back(Stream::create(device));
  return streams.back();
}

Tensor start_copy(const Tensor& x, Device device) {
  if (!x.defined()) return x;
  return (x.is_cpu() ? x.pin_memory(device) : x).to(device, true);
}

}  // namespace

// On the cpu only `batches` is used.
struct DevicePrefetcher::Iterator::State {
  State(DataLoader& loader, Device device) : batches(loader.begin()), device(device) {
    if (device.is_cpu()) return;
    stream = copy_stream(device);
    copied.emplace(device);
    start_next();
    advance();
  }

  // Copies the loader's batch, or remembers the end or an error until its turn comes.
  void start_next() {
    next.reset();
    if (batches == std::default_sentinel) return;
    StreamGuard guard(stream);
    next = Example{start_copy(batches->data, device), start_copy(batches->target, device)};
    copied->record(stream);
  }

  void advance() {
    current.reset();  // before the next is made, so that its memory can be reused
    if (error) std::rethrow_exception(std::exchange(error, nullptr));
    current = std::move(next);
    next.reset();
    if (!current) return;
    const Stream consumer = current_stream(device);
    copied->wait(consumer);
    for (const Tensor* t : {&current->data, &current->target})
      if (t->defined()) t->record_stream(consumer);
    try {
      ++batches;
      start_next();
    } catch (...) {
      error = std::current_exception();
    }
  }

  DataLoader::Iterator batches;
  Device device;
  Stream stream;                // that copies
  std::optional<Event> copied;  // behind the copies of `next`
  std::optional<Example> current, next;
  std::exception_ptr error;  // what making `next` threw
};

DevicePrefetcher::DevicePrefetcher(DataLoader& loader, Device device) : loader_(loader), device_(device) {
  runtime::backend(device);  // throws where it is not there
}

DevicePrefetcher::Iterator::Iterator(DataLoader& loader, Device device)
    : state_(std::make_shared<State>(loader, device)) {}

Example& DevicePrefetcher::Iterator::operator*() const {
  return state_->device.is_cpu() ? *state_->batches : *state_->current;
}

DevicePrefetcher::Iterator& DevicePrefetcher::Iterator::operator++() {
  if (state_->device.is_cpu()) {
    ++state_->batches;
  } else {
    state_->advance();
  }
  return *this;
}

bool DevicePrefetcher::Iterator::at_end() const {
  return state_->device.is_cpu() ? state_->batches == std::default_sentinel : !state_->current;
}

}  // namespace gradus
