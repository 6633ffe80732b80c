// A progress bar with samples/s and the time that is left: redrawn in place on a terminal, silent in a pipe
// or file, where the lesson's plain lines are enough.
#pragma once
#include <gradus/runtime/device.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace lesson {

class Progress {
 public:
  /// `batches` are to come.
  Progress(std::string title, int64_t batches);
  /// Clears the bar.
  ~Progress();
  /// So many more batches, with so many samples, are done. Draws at the first, then ten times a second at
  /// most.
  void add(int64_t batches, int64_t samples);
  /// Samples per second since the start.
  double rate() const;
  double seconds() const;

 private:
  void draw() const;
  std::string title_;
  int64_t batches_, done_ = 0, samples_ = 0;
  bool terminal_;
  std::chrono::steady_clock::time_point start_, drawn_{};  // drawn_: long ago
};

/// What nvidia-smi shows, from within: "cpu 97 %, tensors 61.3 MB (peak 140.1 MB), cache 182.0 MB". The
/// utilisation since the last call, the device's memory now.
std::string usage(gradus::Device device);

}  // namespace lesson
