// A device for tests of what is written above Backend: a capacity, events that pass when the test says so,
// failures on request. Its memory is address space that nobody touches.
#pragma once
#include <gradus/base/error.h>
#include <gradus/runtime/backend.h>

#include <map>
#include <set>
#include <vector>

namespace gradus::runtime {

class FakeBackend : public Backend {
 public:
  explicit FakeBackend(size_t capacity) : capacity_(capacity) {}

  // What the tests set and read.
  size_t other_programs = 0;  // bytes that somebody else holds
  bool events_pass = true;    // do events pass as soon as they are recorded?
  bool record_fails = false;  // does record() throw, as on a device that was lost?
  int allocate_calls = 0, free_calls = 0, synchronized_events = 0, queries = 0;
  std::vector<int> event_devices;  // of create_event(), in order
  std::set<void*> live_events;
  size_t held() const { return held_; }
  std::vector<Stream> recorded_on;  // by record(), in order
  void pass_events(int64_t stream) { passed_.insert(stream); }

  int device_count() const override { return 1; }
  std::string unavailable_reason() const override { return ""; }
  DeviceProperties properties(int) const override { return {.name = "fake", .total_memory = capacity_}; }
  MemoryInfo memory_info(int) const override { return {capacity_ - held_ - other_programs, capacity_}; }

  int utilization(int) override { return -1; }

  void* allocate(int, size_t bytes) override {
    ++allocate_calls;
    if (bytes > memory_info(0).free) return nullptr;
    held_ += bytes;
    void* data = reinterpret_cast<void*>(next_address_);
    next_address_ += bytes + (1 << 20);  // a gap: segments never touch
    sizes_[data] = bytes;
    return data;
  }
  void free(int, void* data) noexcept override {
    ++free_calls;
    held_ -= sizes_.at(data);
    sizes_.erase(data);
  }
  void* allocate_pinned(size_t bytes) override { return allocate(0, bytes); }
  void free_pinned(void* data) noexcept override { free(0, data); }
  bool is_pinned(const void*, size_t) const override { return false; }

  void copy(void*, Device, const void*, Device, size_t, const Stream&) override {}
  int64_t create_stream(int, bool) override { return ++streams_; }
  bool query(const Stream&) override { return true; }
  void synchronize(const Stream&) override {}
  void synchronize_device(int) override {}

  void* create_event(int index) override {
    event_devices.push_back(index);
    void* event = new Stream{{DeviceType::sim, index}};
    live_events.insert(event);
    return event;
  }
  void destroy_event(int, void* event) noexcept override {
    live_events.erase(event);
    delete static_cast<Stream*>(event);
  }
  void record(void* event, const Stream& stream) override {
    GRADUS_CHECK(!record_fails, "E-FAKE", "record: the device is lost");
    auto& e = *static_cast<Stream*>(event);
    GRADUS_CHECK(e.device == stream.device, "E-FAKE", "record: the event is of another device");
    e = stream;
    recorded_on.push_back(stream);
  }
  void wait(void*, const Stream&) override {}
  bool query_event(void* event) override {
    ++queries;
    return events_pass || passed_.count(static_cast<Stream*>(event)->id) > 0;
  }
  void synchronize_event(void*) override { ++synchronized_events; }
  double elapsed_ms(void*, void*) override { return 0; }
  void run(const Stream&, const KernelTask& task) override { task.run(task.arguments); }
  void begin_capture(const Stream&) override {}
  void* end_capture(const Stream&) override { return nullptr; }
  bool is_capturing(const Stream&) override { return false; }
  void replay(void*, const Stream&) override {}
  void destroy_graph(void*) noexcept override {}

 private:
  size_t capacity_, held_ = 0;
  uintptr_t next_address_ = uintptr_t{1} << 40;
  std::map<void*, size_t> sizes_;
  std::set<int64_t> passed_;
  int64_t streams_ = 0;
};

}  // namespace gradus::runtime
