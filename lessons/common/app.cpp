#include "app.h"

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <iostream>

namespace lesson {
namespace {

std::atomic<int> received{0};

// A second Ctrl-C ends the program at once.
void on_signal(int signal) {
  received = signal;
  std::signal(signal, SIG_DFL);
}

void add_common(CLI::App& app, Flags& flags) {
  app.add_option("--device", flags.device, "auto, cpu, sim:N or cuda:N")->capture_default_str();
  app.add_option("--epochs", flags.epochs, "passes over the data")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--batch-size", flags.batch_size, "samples a step")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--seed", flags.seed, "of weights, shuffling and dropout")->capture_default_str();
  app.add_option("--data", flags.data, "directory of IDX files (MNIST, Fashion-MNIST …)");
  app.add_flag("--quick", flags.quick, "less of everything: a minute at most");
  app.add_flag("--json", flags.json, "print the results once more as one JSON line");
}

int status_of(const gradus::Error& error, const Flags& flags) {
  if (error.code() == "E-INTERRUPTED") return kInterrupted;
  const bool nobody_named_it = flags.data.empty() && error.code() == "E-DATA-NOT-FOUND";
  return nobody_named_it ? kSkipped : kFailed;
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
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  try {
    gradus::manual_seed(flags.seed);
    body();
    std::fflush(stdout);
    if (std::ferror(stdout)) {
      std::fprintf(stderr, "error: the output could not be written (is the disk full?)\n");
      return kFailed;
    }
    return 0;
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

void check_interrupted(const std::string& where) {
  GRADUS_CHECK(received == 0, "E-INTERRUPTED", "interrupted (", received == SIGTERM ? "SIGTERM" : "Ctrl-C",
               ") ", where);
}

}  // namespace lesson
