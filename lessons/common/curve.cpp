#include "curve.h"

#include <fmt/format.h>
#include <gradus/base/error.h>
#include <gradus/base/file.h>

#include <charconv>
#include <filesystem>
#include <sstream>

#include "app.h"

namespace lesson {
namespace {

// The lines that begin with an epoch from 1 to `last`.
std::string lines_up_to(int64_t last, const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) return "";
  std::istringstream file(gradus::read_file(path));
  std::string kept;
  for (std::string line; std::getline(file, line);) {
    int64_t epoch = 0;
    std::from_chars(line.data(), line.data() + line.size(), epoch);
    if (epoch >= 1 && epoch <= last) kept += line + "\n";
  }
  return kept;
}

}  // namespace

std::string to_string(Score score) {
  return fmt::format("Loss: {:.4f}, Acc: {:.4f}", score.loss, score.accuracy);
}

Curve::Curve(std::string path, int64_t epochs_done)
    : path_(std::move(path)), text_("epoch,train_loss,train_accuracy,val_loss,val_accuracy\n") {
  if (epochs_done > 0) text_ += lines_up_to(epochs_done, path_);
  write();
}

void Curve::add(int64_t epoch, Score training, Score validation) {
  text_ += gradus::str(epoch, ",", training.loss, ",", training.accuracy, ",", validation.loss, ",",
                       validation.accuracy, "\n");
  write();
  result("epoch", static_cast<double>(epoch));
  result("train_loss", training.loss);
  result("train_accuracy", training.accuracy);
  result("val_loss", validation.loss);
  result("val_accuracy", validation.accuracy);
}

void Curve::write() const {
  if (path_.empty()) return;
  gradus::write_atomically(path_, [&](gradus::OutputFile& file) { file.write(text_); });
}

}  // namespace lesson
