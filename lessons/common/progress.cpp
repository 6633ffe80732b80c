#include "progress.h"

#include <fmt/format.h>
#include <gradus/runtime/caching_allocator.h>
#include <gradus/runtime/device_info.h>
#include <unistd.h>

#include <cstdio>

namespace lesson {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

}  // namespace

Progress::Progress(std::string title, int64_t batches)
    : title_(std::move(title)),
      batches_(batches),
      terminal_(isatty(STDOUT_FILENO) != 0),
      start_(Clock::now()) {}

Progress::~Progress() {
  if (!terminal_) return;
  std::fputs("\r\033[K", stdout);
  std::fflush(stdout);
}

void Progress::add(int64_t batches, int64_t samples) {
  done_ += batches;
  samples_ += samples;
  if (!terminal_ || seconds_between(drawn_, Clock::now()) < 0.1) return;
  drawn_ = Clock::now();
  draw();
}

double Progress::seconds() const { return seconds_between(start_, Clock::now()); }
double Progress::rate() const { return static_cast<double>(samples_) / std::max(1e-9, seconds()); }

void Progress::draw() const {
  constexpr int kWidth = 30;
  const double share = batches_ > 0 ? static_cast<double>(done_) / static_cast<double>(batches_) : 1;
  const int full = static_cast<int>(kWidth * std::min(1.0, share));
  const double left =
      done_ > 0 ? seconds() * static_cast<double>(batches_ - done_) / static_cast<double>(done_) : 0;
  fmt::print("\r\033[K{} [{:=<{}}{: <{}}] {:3.0f} %  {:.0f} samples/s  {:.0f} s left", title_, "", full, "",
             kWidth - full, 100 * share, rate(), left);
  std::fflush(stdout);
}

std::string usage(gradus::Device device) {
  auto megabytes = [](int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  return fmt::format("{} {} %, tensors {:.1f} MB (peak {:.1f} MB), cache {:.1f} MB", to_string(device),
                     gradus::utilization(device), megabytes(gradus::memory_allocated(device)),
                     megabytes(gradus::max_memory_allocated(device)),
                     megabytes(gradus::memory_reserved(device)));
}

}  // namespace lesson
