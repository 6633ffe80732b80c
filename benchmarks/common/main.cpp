// main() of every benchmark: refuses builds whose times mean nothing, and notes in the results how it was
// built. With --environment it prints what the results file shall say of machine and build, as JSON.
#include <benchmark/benchmark.h>
#include <gradus/base/parallel.h>
#include <gradus/base/random.h>
#include <gradus/base/version.h>
#include <gradus/io/environment_json.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

// Our own build type: Debian's Google Benchmark always calls itself a debug build.
bool worth_timing() {
  const std::string_view type = GRADUS_BUILD_TYPE, sanitizer = GRADUS_SANITIZER;
  if (type == "Release" && sanitizer.empty()) return true;
  std::fprintf(stderr, "benchmark: this is a %s build%s%s; benchmarks need Release without a sanitizer\n",
               GRADUS_BUILD_TYPE, sanitizer.empty() ? "" : " with sanitizer ", GRADUS_SANITIZER);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--environment") {
    std::puts(gradus::environment_json(gradus::gather_environment()).c_str());
    return 0;
  }
  if (!worth_timing()) return 2;
  benchmark::AddCustomContext("gradus_version", GRADUS_VERSION);
  benchmark::AddCustomContext("gradus_build_type", GRADUS_BUILD_TYPE);
  benchmark::AddCustomContext("gradus_threads", std::to_string(gradus::get_num_threads()));
  benchmark::AddCustomContext("gradus_seed", std::to_string(gradus::Generator::kDefaultSeed));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
