#include "timeline.h"

#include <gradus/base/error.h>
#include <gradus/base/file.h>

#include <algorithm>
#include <cstdio>

namespace lesson {
namespace {

constexpr int kColumns = 64;

// The rows in the order in which they first appear.
std::vector<std::string> rows_of(const std::vector<Span>& spans) {
  std::vector<std::string> rows;
  for (const Span& s : spans)
    if (std::find(rows.begin(), rows.end(), s.row) == rows.end()) rows.push_back(s.row);
  return rows;
}

std::string drawn(const std::vector<Span>& spans, const std::string& row, double scale) {
  std::string line(kColumns, '.');
  for (const Span& s : spans) {
    if (s.row != row) continue;
    const int last = std::min(kColumns, static_cast<int>(s.end * scale));
    for (int column = std::max(0, static_cast<int>(s.start * scale)); column < last; ++column)
      line[static_cast<size_t>(column)] = static_cast<char>('0' + s.batch % 10);
  }
  return line;
}

}  // namespace

void Timeline::add(const std::string& schedule, std::vector<Span> spans) {
  schedules_.push_back({schedule, std::move(spans)});
}

void Timeline::print() const {
  double longest = 0;
  for (const Schedule& s : schedules_) longest = std::max(longest, duration(s.spans));
  for (const Schedule& s : schedules_)
    for (const std::string& row : rows_of(s.spans))
      std::printf("%-12s %-8s %s\n", s.name.c_str(), row.c_str(),
                  drawn(s.spans, row, kColumns / std::max(longest, 1e-9)).c_str());
}

void Timeline::write(const std::string& path) const {
  if (path.empty()) return;
  std::string text = "device,schedule,row,batch,start_ms,end_ms\n";
  for (const Schedule& s : schedules_)
    for (const Span& span : s.spans)
      text += gradus::str(device_, ",", s.name, ",", span.row, ",", span.batch, ",", span.start, ",",
                          span.end, "\n");
  gradus::write_atomically(path, [&](gradus::OutputFile& file) { file.write(text); });
}

double duration(const std::vector<Span>& spans) {
  double end = 0;
  for (const Span& s : spans) end = std::max(end, s.end);
  return end;
}

int overlapping(const std::vector<Span>& spans, const std::string& a, const std::string& b) {
  const auto beside_b = [&](const Span& s) {
    return s.row == a && std::any_of(spans.begin(), spans.end(), [&](const Span& o) {
             return o.row == b && o.start < s.end && s.start < o.end;
           });
  };
  return static_cast<int>(std::count_if(spans.begin(), spans.end(), beside_b));
}

}  // namespace lesson
