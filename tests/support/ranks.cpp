#include "support/ranks.h"

#include <fcntl.h>
#include <gradus/distributed/distributed.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "support/temp_dir.h"

namespace gradus::testing {
namespace {

using Clock = std::chrono::steady_clock;
// In a rank, the number of the call of run_ranks() that it is of.
constexpr const char* kCall = "GRADUS_TEST_CALL";
// Of a rank whose body passed: the program's own 0 would also be that of a rank which never came to it.
constexpr int kPassed = 99;

// A rank's whole life: what it says, and its exit status, is all that the test's process sees of it.
[[noreturn]] void be_rank(const std::function<void(int)>& body) {
  int status = 0;
  try {
    const std::string method = std::getenv("GRADUS_TEST_INIT");
    if (method != "none") distributed::init_process_group("gloo", {.init_method = method});
    body(std::atoi(std::getenv("RANK")));
    status = ::testing::Test::HasFailure() ? 1 : 0;
    distributed::destroy_process_group();
  } catch (const Error& error) {
    std::printf("ERROR %s: %s\n", error.code().c_str(), error.what());
    status = 2;
  } catch (const std::exception& error) {
    std::printf("ERROR %s\n", error.what());
    status = 2;
  }
  std::fflush(nullptr);
  if (status == 0) std::exit(kPassed);  // looks for leaks, under a sanitizer
  ::_exit(status);
}

struct Rank {
  pid_t pid = -1;
  int pipe = -1;
  RankResult result;
};

// A rank that fails ends while threads of its group run.
std::string tsan_options() {
  const char* given = std::getenv("TSAN_OPTIONS");
  return std::string(given ? given : "") + " report_thread_leaks=0";
}

std::vector<std::string> environment_of(int rank, int n, int call, const std::string& init, int port,
                                        const RanksOptions& o) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable; ++variable) all.emplace_back(*variable);
  const std::string id = std::to_string(rank), size = std::to_string(n);
  // The last of a name is not what counts, so these come first.
  std::vector<std::string> ours = {std::string(kCall) + "=" + std::to_string(call),
                                   "GRADUS_TEST_INIT=" + init,
                                   "RANK=" + id,
                                   "LOCAL_RANK=" + id,
                                   "WORLD_SIZE=" + size,
                                   "LOCAL_WORLD_SIZE=" + size,
                                   "MASTER_ADDR=127.0.0.1",
                                   "MASTER_PORT=" + std::to_string(port),
                                   "OMP_NUM_THREADS=1",
                                   "GRADUS_DISTRIBUTED_CHECK=1",
                                   "GRADUS_DISTRIBUTED_TIMEOUT=" + std::to_string(o.timeout_s),
                                   "TSAN_OPTIONS=" + tsan_options(),
                                   "GTEST_TOTAL_SHARDS=1",
                                   "GTEST_SHARD_INDEX=0",
                                   "GTEST_OUTPUT="};
  ours.insert(ours.begin(), o.environment.begin(), o.environment.end());
  all.insert(all.begin(), ours.begin(), ours.end());
  return all;
}

Rank start(const std::vector<std::string>& environment, const std::string& test) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  std::vector<char*> variables;
  for (const std::string& variable : environment) variables.push_back(const_cast<char*>(variable.c_str()));
  variables.push_back(nullptr);
  std::string filter = "--gtest_filter=" + test, program = "ranks";
  char* const arguments[] = {program.data(), filter.data(), nullptr};
  Rank rank;
  rank.pid = ::fork();
  if (rank.pid == 0) {  // only calls that are allowed between fork and exec
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::execve("/proc/self/exe", arguments, variables.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  rank.pipe = ends[0];
  return rank;
}

// Reads what there is; false at the end.
bool read_some(Rank& rank) {
  char buffer[4096];
  const ssize_t n = ::read(rank.pipe, buffer, sizeof buffer);
  if (n > 0) rank.result.output.append(buffer, static_cast<size_t>(n));
  return n > 0;
}

void finish(Rank& rank, Clock::time_point begin) {
  int status = 0;
  ::waitpid(rank.pid, &status, 0);
  ::close(rank.pipe);
  rank.pipe = -1;
  const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  rank.result.status = code == kPassed ? 0 : code == 0 ? kPassed : code;
  rank.result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
}

void collect(std::vector<Rank>& ranks, Clock::time_point begin, const RanksOptions& options) {
  const auto end = begin + std::chrono::seconds(options.timeout_s + 60);
  for (;;) {
    std::vector<pollfd> open;
    std::vector<Rank*> of;
    for (Rank& rank : ranks)
      if (rank.pipe >= 0) open.push_back({rank.pipe, POLLIN, 0}), of.push_back(&rank);
    if (open.empty()) return;
    const bool only_stuck = options.stuck >= 0 && of.size() == 1 && of[0] == &ranks[options.stuck];
    if (only_stuck || Clock::now() > end)
      for (const Rank* rank : of) ::kill(rank->pid, SIGKILL);
    ::poll(open.data(), open.size(), 200);
    for (size_t i = 0; i < open.size(); ++i)
      if (open[i].revents && !read_some(*of[i])) finish(*of[i], begin);
  }
}

std::string current_test() {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  return std::string(info->test_suite_name()) + "." + info->name();
}

int call_of_this_test() {
  static int64_t test = 0;
  static int calls = 0;
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  const int64_t now = info->result()->start_timestamp() ^ reinterpret_cast<int64_t>(info);
  if (std::exchange(test, now) != now) calls = 0;
  return ++calls;
}

}  // namespace

std::vector<RankResult> run_ranks(int n, const std::function<void(int)>& body, const RanksOptions& options) {
  const int call = call_of_this_test();
  if (const char* mine = std::getenv(kCall)) {
    if (std::atoi(mine) == call) be_rank(body);
    return std::vector<RankResult>(n, {0, 0, ""});
  }
  const TempDir folder;
  const std::string init =
      options.init_method.empty() ? "file://" + folder.path("store") : options.init_method;
  const int port = free_port();
  const auto begin = Clock::now();
  std::vector<Rank> ranks;
  for (int rank = 0; rank < n; ++rank)
    ranks.push_back(start(environment_of(rank, n, call, init, port, options), current_test()));
  collect(ranks, begin, options);
  std::vector<RankResult> results;
  for (Rank& rank : ranks) results.push_back(std::move(rank.result));
  return results;
}

void in_ranks(int n, const std::function<void(int)>& body, const RanksOptions& options) {
  const auto results = run_ranks(n, body, options);
  for (size_t rank = 0; rank < results.size(); ++rank)
    EXPECT_EQ(results[rank].status, 0) << "rank " << rank << " of " << n << " says:\n"
                                       << results[rank].output;
}

std::string error_in(const std::string& output) {
  const size_t at = output.find("ERROR ");
  return at == output.npos ? "" : output.substr(at + 6, output.find('\n', at) - at - 6);
}

int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(fd);
  return ntohs(address.sin_port);
}

}  // namespace gradus::testing
