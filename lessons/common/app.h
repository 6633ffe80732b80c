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
  std::string data = {};    ///< directory of IDX files; "made": drawn digits; "": the installed Fashion-MNIST
  bool quick = false;       ///< less of everything, the same steps
  bool json = false;        ///< one JSON line of results at the end
  std::string unused = {};  ///< those of these that change nothing in the lesson, for --help
};

/// Exit statuses besides 0.
inline constexpr int kFailed = 1, kUsage = 2, kSkipped = 77, kInterrupted = 128;

/// Parses argv into `flags` (and what `more` adds), seeds the default generator, runs `body`, and returns
/// main()'s exit status. An Error is printed to stderr: kInterrupted and the signal's number (130 for Ctrl-C,
/// 143 for SIGTERM) for E-INTERRUPTED, kSkipped for a device or data set that is not there although nobody
/// named it, else kFailed. Wrong flags give kUsage.
int run(int argc, char** argv, const std::string& what, Flags& flags, const std::function<void()>& body,
        const std::function<void(CLI::App&)>& more = {});

/// A numbered heading: "== 2. One epoch ==".
void section(int number, const std::string& title);

/// Keeps a number for the line that --json prints at the end: {"lesson": …, "results": {name: [values]},
/// "environment": …}, each name with the values it was given, in order.
void result(const std::string& name, double value);

/// Throws E-INTERRUPTED with `where` in its text once Ctrl-C (or SIGTERM) was received. To be called once a
/// batch, so that a run ends between two steps and what was saved stays whole. The signals are caught from
/// the first call on; before, and in lessons that never call it, they end the program at once.
void check_interrupted(const std::string& where);

/// Runs `body`; an Error that it throws gets `file` in front of its text.
void naming(const std::string& file, const std::function<void()>& body);

/// Runs `body`, which must throw an Error, prints its text, and returns its code.
std::string print_error(const std::function<void()>& body);

/// For a path that will be written much later: returns "" or what is wrong with its directory (a CLI11
/// check).
std::string directory_exists(const std::string& path);

/// The device of a lesson whose subject the cpu has not got: "auto" is a GPU, else the simulated device. Says
/// which it took, and why, in the lesson's first line. Throws as select_device() for others.
gradus::Device accelerator(const Flags& flags);

/// The images that --data names: load_image_data(), or digits drawn by code for "made". Throws E-DATA, naming
/// --data, unless both sets have images and all are of 28 x 28, which the lessons' networks take.
gradus::ImageData load_images(const Flags& flags);

}  // namespace lesson
