#include <gradus/tensor/storage.h>

namespace gradus {
namespace {

std::atomic<uint64_t> next_id{1};

}  // namespace

Storage::Storage(size_t bytes, Device device)
    : Storage(runtime::allocate_memory(bytes, current_stream(device)), bytes, device) {}

Storage::Storage(runtime::Allocation allocation, size_t bytes, Device device)
    : allocation_(allocation),
      bytes_(bytes),
      id_(next_id.fetch_add(1, std::memory_order_relaxed)),
      device_(device) {}

Storage::Storage(void* data, size_t bytes, Device device, std::function<void(void*)> deleter)
    : allocation_{data, nullptr},
      bytes_(bytes),
      id_(next_id.fetch_add(1, std::memory_order_relaxed)),
      device_(device),
      deleter_(std::move(deleter)) {}

Storage::~Storage() {
  if (allocation_.block) {
    runtime::free_memory(allocation_);
  } else if (deleter_) {
    deleter_(allocation_.data);
  }
}

}  // namespace gradus
