#include "app.h"

#include <CLI/CLI.hpp>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace lesson {
namespace {

std::atomic<int> received{0};
nlohmann::ordered_json results = nlohmann::ordered_json::object();

// A second Ctrl-C ends the program at once.
void on_signal(int signal) {
  received = signal;
  std::signal(signal, SIG_DFL);
}

// CLI11 would make 2^64 - 1 of -1, and of numbers that are too large.
std::string is_seed(const std::string& text) {
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  const bool good = error == std::errc() && end == text.data() + text.size();
  return good ? "" : "'" + text + "' is not a whole number from 0 to 18446744073709551615";
}

void add_common(CLI::App& app, Flags& flags) {
  app.add_option("--device", flags.device, "auto, cpu, sim:N or cuda:N")->capture_default_str();
  app.add_option("--epochs", flags.epochs, "passes over the data")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--batch-size", flags.batch_size, "samples a step")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--seed", flags.seed, "of weights, shuffling and dropout")
      ->check(is_seed)
      ->capture_default_str();
  app.add_option("--data", flags.data,
                 "directory of IDX files (MNIST, Fashion-MNIST …), or \"made\": drawn digits");
  app.add_flag("--quick", flags.quick, "less of everything: a minute at most");
  app.add_flag("--json", flags.json, "print the results once more as one JSON line");
  if (!flags.unused.empty())
    app.footer("Every lesson takes these flags, so that ./gradus learn can hand them on; in this one " +
               flags.unused + "\nchange nothing.");
}

void print_results(const std::string& lesson, const Flags& flags) {
  using Json = nlohmann::ordered_json;
  const Json line = {{"lesson", lesson},
                     {"seed", flags.seed},
                     {"results", results},
                     {"environment", Json::parse(environment_json(gradus::gather_environment()))}};
  std::printf("%s\n", line.dump().c_str());
}

// Output that is lost must not look like success.
int flush_output() {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return 0;
  std::fprintf(stderr, "error: the output could not be written (is the disk full?)\n");
  return kFailed;
}

int status_of(const gradus::Error& error, const Flags& flags) {
  if (error.code() == "E-INTERRUPTED") return kInterrupted + received;
  const bool nobody_named_it = flags.data.empty() && error.code() == "E-DATA-NOT-FOUND";
  return nobody_named_it ? kSkipped : kFailed;
}

void check_images(const std::string& directory, const char* set, const gradus::Tensor& images) {
  const auto hint = gradus::hint(
      "--data names a directory with the four IDX files of MNIST, Fashion-MNIST or another set of their "
      "form");
  GRADUS_CHECK(images.size(0) > 0, "E-DATA", directory, ": its ", set, " set has 0 images", hint);
  GRADUS_CHECK(images.size(2) == 28 && images.size(3) == 28, "E-DATA", directory, ": its ", set,
               " images are ", images.size(2), " x ", images.size(3), ", but the network takes 28 x 28",
               hint);
}

}  // namespace

int run(int argc, char** argv, const std::string& what, Flags& flags, const std::function<void()>& body,
        const std::function<void(CLI::App&)>& more) {
  CLI::App app(what);
  add_common(app, flags);
  if (more) more(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  try {
    gradus::manual_seed(flags.seed);
    body();
    if (flags.json) print_results(std::filesystem::path(argv[0]).filename().string(), flags);
    return flush_output();
  } catch (const gradus::Error& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "\nerror [%s]: %s\n", error.code().c_str(), error.what());
    return status_of(error, flags);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "\nerror: %s\n", error.what());
    return kFailed;
  }
}

void section(int number, const std::string& title) { std::printf("\n== %d. %s ==\n", number, title.c_str()); }

void result(const std::string& name, double value) { results[name].push_back(value); }

void check_interrupted(const std::string& where) {
  static const bool caught = [] {
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
    return true;
  }();
  GRADUS_CHECK(
      !caught || received == 0, "E-INTERRUPTED", "interrupted (", received == SIGTERM ? "SIGTERM" : "Ctrl-C",
      ") ", where,
      gradus::hint("--checkpoint FILE saves after each epoch, and --resume FILE goes on from there"));
}

void naming(const std::string& file, const std::function<void()>& body) {
  try {
    body();
  } catch (const gradus::Error& error) {
    throw gradus::Error(error.code(), file + ": " + error.what(), "", gradus::SourceLocation::current());
  }
}

std::string print_error(const std::function<void()>& body) {
  try {
    body();
  } catch (const gradus::Error& error) {
    std::printf("%s\n", error.what());
    return error.code();
  }
  GRADUS_FAIL("E-LESSON", "an error was expected here, but there was none");
}

std::string directory_exists(const std::string& path) {
  if (std::filesystem::is_directory(path)) return path + " is a directory";
  const auto parent = std::filesystem::path(path).parent_path();
  if (parent.empty() || std::filesystem::is_directory(parent)) return "";
  return "no such directory: " + parent.string();
}

gradus::Device accelerator(const Flags& flags) {
  const bool simulated = flags.device == "auto" && gradus::device_count(gradus::DeviceType::cuda) == 0;
  const gradus::Device device = gradus::select_device(simulated ? "sim" : flags.device);
  std::printf("device: %s%s\n", to_string(device).c_str(),
              simulated         ? " (SIMULATED: no GPU can be used here; its times say nothing about one)"
              : device.is_sim() ? " (SIMULATED: its times say nothing about a GPU)"
              : device.is_cpu() ? " (what can only go wrong on a device goes right here: see --device sim)"
                                : "");
  return device;
}

gradus::ImageData load_images(const Flags& flags) {
  if (flags.data == "made") return gradus::make_digit_data();
  const gradus::ImageData data = gradus::load_image_data(flags.data);
  check_images(data.directory, "training", data.train.images);
  check_images(data.directory, "test", data.test.images);
  return data;
}

}  // namespace lesson
