// Finds unordered uses of memory by two streams. Pure bookkeeping, in the order in which the host queues
// work: whether a task ran early or late plays no part, so that a missing event is reported every time, and
// not only when the timing happens to show it.
//
// Each stream has a vector clock: of every stream, how many of its tasks are known to be done before this
// stream's next one. A task ticks its own stream's entry; an event is a copy of the clock; waiting takes the
// maximum. The memory's history is a map of address intervals, each with its last write and the reads since
// (at most one a stream). That is enough: whatever is ordered after the last write is ordered after those
// before it.
#pragma once
#include <gradus/runtime/observer.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gradus::sim {

/// By stream number: how many of the stream's tasks are known to be done. Streams beyond its end: none.
using Clock = std::vector<uint64_t>;
/// An operand of a task, at its device address; a copy's are 1-D tensors of uint8.
using Use = runtime::LaunchOperand;

/// Streams are small numbers, counted over all devices. The host is one more actor: all its threads count as
/// one. Not safe to call from two threads at once.
class RaceDetector {
 public:
  /// Of an operand that is not dense so many runs of neighbouring bytes are watched, from its start. What
  /// lies beyond is not: a race there may be missed, but none is made up.
  static constexpr int64_t kMaxRuns = 4096;

  /// The history is tidied when it has twice the intervals it had then, and at least `sweep_from`.
  explicit RaceDetector(size_t sweep_from = 1024) : sweep_from_(sweep_from), sweep_at_(sweep_from) {}

  /// How reports call a stream: "sim:0 stream 2".
  void name_stream(int stream, std::string name);

  /// A task is queued on `stream`, after all that the stream and the host know of. Throws E-RACE, as if the
  /// task had not been queued, if one of its uses meets an unordered one: a read what another stream wrote,
  /// or a write what another stream used. `name` is kept and must stay valid.
  void task(int stream, const char* name, std::span<const Use> uses);

  /// What an event recorded on `stream` now stands for.
  Clock clock(int stream) const;
  /// `stream` waits for an event (or for another stream's clock).
  void join(int stream, const Clock& clock);
  /// The host has waited for an event or a stream, or has seen that it was done.
  void join_host(const Clock& clock);

  /// Memory was given back to the device: its history is over.
  void forget(const void* data, size_t bytes);
  /// Forgets all memory. Clocks go on, since events recorded before may still be waited for.
  void clear() { history_.clear(); }

  /// How many intervals the history has, for tests of its size.
  size_t interval_count() const { return history_.size(); }

 private:
  // A task's operand, for the report; intervals of one operand share it.
  struct Place {
    const char* task;
    int operand;  // from 1
    Access access;
    DType dtype;
    Shape sizes;
  };
  // Who used an interval last: the `time`-th task of `stream`. Without a place: nobody.
  struct Mark {
    int stream = 0;
    uint64_t time = 0;
    std::shared_ptr<const Place> place;
    friend bool operator==(const Mark&, const Mark&) = default;
  };
  struct Interval {
    uintptr_t end;
    Mark write;
    std::vector<Mark> reads;  // not ordered among each other, and none before the write
  };
  using History = std::map<uintptr_t, Interval>;  // by first address; intervals do not overlap

  Clock& clock_of(int stream);
  std::string name_of(int stream) const;
  void check(int stream, const Place& place, uintptr_t begin, uintptr_t end) const;
  [[noreturn]] void report(int stream, const Place& place, const Mark& earlier, uintptr_t begin,
                           uintptr_t end) const;
  void note(const Mark& mark, const Clock& clock, uintptr_t begin, uintptr_t end);
  void note_write(const Mark& mark, uintptr_t begin, uintptr_t end);
  void note_read(const Mark& mark, const Clock& clock, uintptr_t begin, uintptr_t end);
  History::iterator split(uintptr_t address);
  void sweep();

  std::vector<Clock> clocks_;  // by stream
  Clock host_;
  std::vector<std::string> names_;
  History history_;
  size_t sweep_from_, sweep_at_;
};

}  // namespace gradus::sim
