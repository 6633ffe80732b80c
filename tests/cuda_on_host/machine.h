// The machine behind runtime.cpp: devices, their streams, and the threads that do what is queued.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace gradus::cuda_on_host {

struct Stream;

/// A piece of work's end: events and other streams wait for it.
struct Done {
  int device;
  Stream* stream;
  bool passed = false;
  std::chrono::steady_clock::time_point time{};
};
using DonePtr = std::shared_ptr<Done>;

/// How much of each stream's captured work a stream has come after.
using Seen = std::map<const Stream*, int>;

struct Capture {
  Stream* origin;
  std::vector<std::function<void()>> work;
  std::map<Stream*, Seen> members;
  bool invalid = false;
};

struct Item {
  std::function<void()> work;
  std::vector<DonePtr> after;
  DonePtr done;
};

struct Stream {
  int device;
  bool blocking;    // keeps the legacy rule
  bool is_default;  // of its device
  std::deque<Item> queue{};
  DonePtr last = std::make_shared<Done>(Done{device, nullptr, true});  // the end of what was queued last
  std::vector<DonePtr> next_after{};                                   // what the next item waits for besides
  std::shared_ptr<Capture> capture{};
  bool has_thread = false, running = false;
};

struct Event {
  int device;
  DonePtr done{};  // null: never recorded
  bool captured = false;
  std::weak_ptr<Capture> capture{};
  Seen seen{};
};

struct Graph {
  std::vector<std::function<void()>> work;
};

class Machine {
 public:
  Machine();

  std::mutex mutex;                                           // guards all that follows
  std::vector<std::vector<std::unique_ptr<Stream>>> streams;  // by device; the default stream first
  std::vector<int> errors;                                    // sticky, by device; 0: none
  std::map<uintptr_t, std::pair<size_t, int>> memory;         // bytes and device; device -1: pinned
  std::vector<size_t> used;                                   // bytes by device
  std::map<std::string, std::pair<int, int>> injected;        // by function: how often, which error
  std::vector<std::pair<int, int>> peer_accesses;
  int count_error = 0;

  int device_count() const { return static_cast<int>(streams.size()); }
  static constexpr size_t kCapacity = size_t{8} << 30;

  /// A cudaStream_t's stream; null: the current device's default stream. nullptr: it is not one.
  Stream* find(void* handle);
  /// Queues an item, under the lock.
  DonePtr submit(Stream& stream, std::function<void()> work);
  void wait(std::unique_lock<std::mutex>& lock, const DonePtr& done);
  void wait_for_device(std::unique_lock<std::mutex>& lock, int device);
  /// True if all of [data, data + bytes) is memory of `device` (-1: pinned).
  bool holds(int device, const void* data, size_t bytes) const;

 private:
  [[noreturn]] void work(Stream& stream);
  static bool is_ready(const Stream& stream);
  void run_first(std::unique_lock<std::mutex>& lock, Stream& stream);
  static int run(const Item& item);
  std::condition_variable changed_;
};

Machine& machine();

/// The device that cudaSetDevice() made current on this thread.
extern thread_local int current_device;

}  // namespace gradus::cuda_on_host
