// What ran when on a device: drawn with characters, and written for plots/timeline.py.
#pragma once
#include <gradus/runtime/device.h>

#include <string>
#include <vector>

namespace lesson {

/// A piece of work. Times are in milliseconds since the schedule began.
struct Span {
  std::string row;  ///< "copy", "compute"
  int batch = 0;    ///< from 0
  double start = 0, end = 0;
};

/// The spans of several schedules of the same work on one device.
class Timeline {
 public:
  explicit Timeline(gradus::Device device) : device_(device) {}
  /// `spans` are in the order they were queued in.
  void add(const std::string& schedule, std::vector<Span> spans);
  /// Each row of each schedule as a line of characters, to one scale: a batch is drawn by its digit.
  void print() const;
  /// Writes the CSV "device,schedule,row,batch,start_ms,end_ms"; nothing if `path` is empty. Throws E-FILE.
  void write(const std::string& path) const;

 private:
  struct Schedule {
    std::string name;
    std::vector<Span> spans;
  };
  gradus::Device device_;
  std::vector<Schedule> schedules_;
};

/// When the last of the spans ended.
double duration(const std::vector<Span>& spans);
/// How many spans of row `a` ran, for a part of their time, while one of row `b` did.
int overlapping(const std::vector<Span>& spans, const std::string& a, const std::string& b);

}  // namespace lesson
