#include <gradus/backends/sim/byte_runs.h>
#include <gradus/backends/sim/race_detector.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace gradus::sim {
namespace {

void raise(Clock& clock, const Clock& to) {
  if (clock.size() < to.size()) clock.resize(to.size());
  for (size_t s = 0; s < to.size(); ++s) clock[s] = std::max(clock[s], to[s]);
}

// Is the stream's `time`-th task known to be done?
bool knows(const Clock& clock, int stream, uint64_t time) {
  return static_cast<size_t>(stream) < clock.size() && clock[stream] >= time;
}

template <class T>
T& at(std::vector<T>& list, int i) {
  if (list.size() <= static_cast<size_t>(i)) list.resize(i + 1);
  return list[i];
}

std::string hex(uintptr_t address) {
  char digits[16];
  return "0x" + std::string(digits, std::to_chars(digits, digits + sizeof digits, address, 16).ptr);
}

const char* verb(Access access) { return access == Access::read ? " reads" : " writes"; }

}  // namespace

void RaceDetector::name_stream(int stream, std::string name) { at(names_, stream) = std::move(name); }

std::string RaceDetector::name_of(int stream) const {
  const bool named = static_cast<size_t>(stream) < names_.size() && !names_[stream].empty();
  return named ? names_[stream] : str("stream ", stream);
}

// The stream's clock, with what the host knows: whatever is queued now comes after that.
Clock& RaceDetector::clock_of(int stream) {
  Clock& clock = at(clocks_, stream);
  raise(clock, host_);
  return clock;
}

Clock RaceDetector::clock(int stream) const {
  Clock clock = static_cast<size_t>(stream) < clocks_.size() ? clocks_[stream] : Clock{};
  raise(clock, host_);
  return clock;
}

void RaceDetector::join(int stream, const Clock& clock) { raise(at(clocks_, stream), clock); }
void RaceDetector::join_host(const Clock& clock) { raise(host_, clock); }

void RaceDetector::task(int stream, const char* name, std::span<const Use> uses) {
  Clock& clock = clock_of(stream);
  auto place = [&](size_t i) {
    const TensorArg& tensor = *uses[i].tensor;
    return Place{name, static_cast<int>(i) + 1, uses[i].access, tensor.dtype, tensor.sizes};
  };
  for (size_t i = 0; i < uses.size(); ++i)
    ByteRuns(*uses[i].tensor).for_each(kMaxRuns, [&, p = place(i)](uintptr_t begin, uintptr_t end) {
      check(stream, p, begin, end);
    });
  const uint64_t time = ++at(clock, stream);
  for (size_t i = 0; i < uses.size(); ++i) {
    const Mark mark{stream, time, std::make_shared<const Place>(place(i))};
    ByteRuns(*uses[i].tensor).for_each(kMaxRuns, [&](uintptr_t begin, uintptr_t end) {
      note(mark, clock, begin, end);
    });
  }
  if (history_.size() > sweep_at_) sweep();
}

void RaceDetector::check(int stream, const Place& place, uintptr_t begin, uintptr_t end) const {
  const Clock& clock = clocks_[stream];
  auto first = history_.upper_bound(begin);
  if (first != history_.begin() && std::prev(first)->second.end > begin) --first;
  for (auto it = first; it != history_.end() && it->first < end; ++it) {
    const Interval& interval = it->second;
    auto meet = [&](const Mark& mark) {
      if (mark.place && !knows(clock, mark.stream, mark.time))
        report(stream, place, mark, std::max(begin, it->first), std::min(end, interval.end));
    };
    meet(interval.write);
    if (place.access == Access::read) continue;
    for (const Mark& read : interval.reads) meet(read);
  }
}

void RaceDetector::report(int stream, const Place& place, const Mark& earlier, uintptr_t begin,
                          uintptr_t end) const {
  auto use = [&](int s, const Place& p) {
    return str(p.task, " on ", name_of(s), verb(p.access), " operand ", p.operand, " (", p.dtype, " ",
               p.sizes, ")");
  };
  GRADUS_FAIL(
      "E-RACE", place.task, ": race with ", earlier.place->task, ": ", use(earlier.stream, *earlier.place),
      ", then ", use(stream, place), ", and nothing makes the second wait for the first; both use bytes ",
      hex(begin), " to ", hex(end - 1),
      hint("make it wait: second.wait_stream(first), or an Event that is recorded after the first use ",
           "and waited for before the second; if the memory was freed and given out ",
           "again, call record_stream() on it before it is freed"));
}

void RaceDetector::note(const Mark& mark, const Clock& clock, uintptr_t begin, uintptr_t end) {
  if (mark.place->access == Access::read) {
    note_read(mark, clock, begin, end);
  } else {
    note_write(mark, begin, end);
  }
}

// A write that was checked comes after all that it covers, and takes its place.
void RaceDetector::note_write(const Mark& mark, uintptr_t begin, uintptr_t end) {
  const auto after = split(end);
  history_.erase(split(begin), after);
  history_.emplace_hint(after, begin, Interval{end, mark, {}});
}

// A read takes the place of the reads that come before it.
void RaceDetector::note_read(const Mark& mark, const Clock& clock, uintptr_t begin, uintptr_t end) {
  const auto after = split(end);
  for (auto it = split(begin); begin < end; ++it) {
    if (it == after || it->first > begin) {  // memory that nobody used yet
      const uintptr_t gap_end = it == after ? end : it->first;
      it = history_.emplace_hint(it, begin, Interval{gap_end, {}, {}});
    }
    Interval& interval = it->second;
    std::erase_if(interval.reads, [&](const Mark& read) { return knows(clock, read.stream, read.time); });
    interval.reads.push_back(mark);
    begin = interval.end;
  }
}

// Makes `address` a border if it lies within an interval; returns the first interval from there on.
RaceDetector::History::iterator RaceDetector::split(uintptr_t address) {
  const auto next = history_.lower_bound(address);
  if (next == history_.begin()) return next;
  Interval& before = std::prev(next)->second;
  if (before.end <= address) return next;
  const auto tail = history_.emplace_hint(next, address, before);
  before.end = address;
  return tail;
}

void RaceDetector::forget(const void* data, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const auto after = split(begin + bytes);
  history_.erase(split(begin), after);
}

// What the host knows of comes before all that will ever be queued. Neighbours alike become one.
void RaceDetector::sweep() {
  auto done = [&](const Mark& mark) { return knows(host_, mark.stream, mark.time); };
  for (auto it = history_.begin(); it != history_.end();) {
    auto& [end, write, reads] = it->second;
    if (write.place && done(write)) write = {};
    std::erase_if(reads, done);
    const bool empty = !write.place && reads.empty();
    auto before = it == history_.begin() ? history_.end() : std::prev(it);
    const bool alike = before != history_.end() && before->second.end == it->first &&
                       before->second.write == write && before->second.reads == reads;
    if (alike && !empty) before->second.end = end;
    it = empty || alike ? history_.erase(it) : std::next(it);
  }
  sweep_at_ = std::max(sweep_from_, 2 * history_.size());
}

}  // namespace gradus::sim
