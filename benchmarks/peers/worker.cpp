// Our side of ./gradus bench --peer torch: does what it is asked, a line of JSON at a time, so that both
// sides can take turns. torch_worker.py answers the same questions.
//
//   {"do": "prepare", "id": "a", "case": "matmul", "variant": "gradus", "parameters": {…}} -> {"check": […]}
//   {"do": "time", "id": "a", "calls": 10}                                                 -> {"seconds":
//   0.1}
//   {"do": "forget"}                                                                       -> {}
//   {"do": "about"}                                                       -> {"name": "Gradus 0.1.0", …}
//
// What goes wrong is {"error": "…"}. It ends with its standard input.
#include <gradus/base/version.h>
#include <gradus/gradus.h>
#include <gradus/io/environment_json.h>
#include <gradus/runtime/caching_allocator.h>
#include <peers/cases.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <string_view>

namespace {

using nlohmann::json;

double host_seconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

class Worker {
 public:
  explicit Worker(gradus::Device device) : device_(device) {}

  json answer(const json& question) {
    const std::string what = question.at("do");
    if (what == "about")
      return {{"name", std::string("Gradus ") + GRADUS_VERSION}, {"type", GRADUS_BUILD_TYPE}};
    if (what == "prepare") return prepare(question);
    if (what == "time") return time(question);
    if (what == "forget") return forget();
    return {{"error", "unknown: " + what}};
  }

 private:
  json prepare(const json& q) {
    const auto found = peers::cases().find(q.at("case").get<std::string>());
    if (found == peers::cases().end()) return {{"error", "there is no such case"}};
    peers::Case made = found->second({q.at("parameters"), device_});
    const json check = made.check;
    made_[q.at("id")] = std::move(made);
    return {{"check", check}};
  }

  json time(const json& q) {
    const auto& call = made_.at(q.at("id")).call;
    const int64_t calls = q.at("calls");
    gradus::synchronize(device_);
    const double start = host_seconds();
    for (int64_t i = 0; i < calls; ++i) call();
    gradus::synchronize(device_);
    return {{"seconds", host_seconds() - start}};
  }

  json forget() {
    made_.clear();
    gradus::empty_cache();
    return json::object();
  }

  gradus::Device device_;
  std::map<std::string, peers::Case> made_;
};

json answer_to(Worker& worker, const std::string& line) {
  try {
    return worker.answer(json::parse(line));
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--environment") {  // as the benchmarks
    std::puts(gradus::environment_json(gradus::gather_environment()).c_str());
    return 0;
  }
  if (argc != 3) {
    std::fputs("usage: peer_worker DEVICE THREADS; ./gradus bench --peer torch runs it\n", stderr);
    return 2;
  }
  try {
    gradus::set_num_threads(std::stoi(argv[2]));
    Worker worker{gradus::Device(argv[1])};
    for (std::string line; std::getline(std::cin, line);)
      std::cout << answer_to(worker, line).dump() << std::endl;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "peer_worker: %s\n", error.what());
    return 1;
  }
}
