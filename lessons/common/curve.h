// The learning curve: what a lesson's epochs came to, as CSV (for ./gradus plot and spreadsheets) and as
// --json.
#pragma once
#include <cstdint>
#include <string>

namespace lesson {

/// Means over an epoch's samples.
struct Score {
  double loss, accuracy;
};
/// "Loss: 0.5930, Acc: 0.7845"
std::string to_string(Score score);

class Curve {
 public:
  /// Writes the head at once, so that a path that cannot be written is found before the first epoch. With
  /// `epochs_done` > 0 the lines up to that epoch are kept from the file that is there. An empty path writes
  /// nothing. Throws E-FILE.
  Curve(std::string path, int64_t epochs_done);
  /// A line more, and results for --json. The file is rewritten whole (beside, then renamed).
  void add(int64_t epoch, Score training, Score validation);

 private:
  void write() const;
  std::string path_, text_;
};

}  // namespace lesson
