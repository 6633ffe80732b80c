// The learning curve as CSV, a line an epoch, for ./gradus plot and spreadsheets.
#pragma once
#include <cstdint>
#include <string>

namespace lesson {

class Curve {
 public:
  /// An empty path writes nothing. The file is rewritten whole (beside, then renamed) with each line.
  explicit Curve(std::string path);
  void add(int64_t epoch, double train_loss, double train_accuracy, double val_loss, double val_accuracy);

 private:
  std::string path_, text_;
};

}  // namespace lesson
