// Work that is recorded instead of run.
#pragma once
#include <gradus/backends/sim/scheduler.h>
#include <gradus/runtime/tensor_arg.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gradus::sim {

/// A task, and what it does with which memory.
struct Item {
  const char* name;  ///< of the operation
  int engine;
  Work work;
  std::vector<std::pair<TensorArg, Access>> uses;
};

/// By stream: how many of its recorded items come before.
using CaptureClock = std::map<const Queue*, size_t>;

/// What was recorded between begin_capture() and end_capture(), in the order of the calls. That order obeys
/// every event, so a replay runs the items one after the other on one stream; what ran side by side on
/// several streams does not when it is replayed.
struct Graph {
  int device;
  std::vector<Item> items;
};

struct Capture {
  const Queue* origin;
  Graph graph;
  std::map<const Queue*, CaptureClock> known;  // the streams that take part, and what each comes after
  std::string broken;                          // why there will be no graph; "" if nothing forbids it

  bool has(const Queue& queue) const { return known.contains(&queue); }
  void add(const Queue& queue, Item item);
  /// `queue` comes after `clock`, and takes part from now on.
  void join(const Queue& queue, const CaptureClock& clock);
  /// A stream whose last items the origin does not come after, or nullptr.
  const Queue* unjoined() const;
};

}  // namespace gradus::sim
