// What every lesson's main() does: read the common flags, seed, pick the device, and turn an error into a
// message and an exit status.
#pragma once
#include <gradus/gradus.h>

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace lesson {

/// The flags that all lessons take. A lesson sets its own defaults before run() reads the command line.
struct Flags {
  std::string device = "auto";  ///< auto, cpu, sim:0, cuda:0 …
  int epochs = 10;
  int64_t batch_size = 256;
  uint64_t seed = 0;
  std::string data;    ///< directory of IDX files; empty: the installed Fashion-MNIST
  bool quick = false;  ///< less of everything, the same steps
  bool json = false;   ///< one JSON line of results at the end
};

/// Exit statuses besides 0.
inline constexpr int kFailed = 1, kUsage = 2, kSkipped = 77, kInterrupted = 130;

/// Parses argv into `flags` (and what `more` adds), seeds the default generator, runs `body`, and returns
/// main()'s exit status. An Error is printed to stderr: kInterrupted for E-INTERRUPTED, kSkipped for a device
/// or data set that is not there although nobody named it, else kFailed. Wrong flags give kUsage.
int run(int argc, char** argv, const std::string& what, Flags& flags, const std::function<void()>& body,
        const std::function<void(CLI::App&)>& more = {});

/// A numbered heading: "== 2. One epoch ==".
void section(int number, const std::string& title);

/// Throws E-INTERRUPTED with `where` in its text once Ctrl-C (or SIGTERM) was received. To be called once a
/// batch, so that a run ends between two steps and what was saved stays whole.
void check_interrupted(const std::string& where);

}  // namespace lesson
