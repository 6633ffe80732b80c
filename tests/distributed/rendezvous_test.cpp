// How ranks find each other, and what they say where that fails.
#include <gradus/distributed/file_store.h>
#include <gradus/distributed/tcp_store.h>
#include <gradus/gradus.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "support/expect_error.h"
#include "support/ranks.h"
#include "support/temp_dir.h"

namespace gradus::distributed {
namespace {

using namespace std::chrono_literals;
using ::gradus::testing::error_in;
using ::gradus::testing::error_of;
using ::gradus::testing::free_port;
using ::gradus::testing::in_ranks;
using ::gradus::testing::RanksOptions;
using ::gradus::testing::run_ranks;
using ::gradus::testing::TempDir;
using ::testing::HasSubstr;

// Variables of the environment for the time of a test; all that a launcher may have set are taken away.
class Variables {
 public:
  explicit Variables(const std::map<std::string, std::string>& values = {}) {
    for (const char* name :
         {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
          "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
          "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID",
          "SLURM_NTASKS_PER_NODE", "TORCHELASTIC_USE_AGENT_STORE"}) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      ::unsetenv(name);
      names_.emplace_back(name);
    }
    for (const auto& [name, value] : values) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Variables() {
    for (const std::string& name : names_) ::unsetenv(name.c_str());
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::string> before_;
};

TEST(LaunchEnvironment, reads_what_torchrun_and_gradus_run_set) {
  const Variables set({{"RANK", "5"},
                       {"WORLD_SIZE", "8"},
                       {"LOCAL_RANK", "1"},
                       {"LOCAL_WORLD_SIZE", "4"},
                       {"MASTER_ADDR", "node0"},
                       {"MASTER_PORT", "12345"}});
  const LaunchEnvironment e = launch_environment();
  EXPECT_EQ(e.source, "RANK");
  EXPECT_EQ(std::vector({e.rank, e.world_size, e.local_rank, e.local_world_size, e.master_port}),
            std::vector({5, 8, 1, 4, 12345}));
  EXPECT_EQ(e.master_addr, "node0");
}

TEST(LaunchEnvironment, torchruns_own_store_has_the_port) {
  const Variables set({{"RANK", "0"},
                       {"WORLD_SIZE", "1"},
                       {"MASTER_ADDR", "node0"},
                       {"MASTER_PORT", "12345"},
                       {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_EQ(launch_environment().master_port, 12346);
}

TEST(LaunchEnvironment, reads_what_mpirun_and_srun_set) {
  {
    const Variables set({{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
    const LaunchEnvironment e = launch_environment();
    EXPECT_EQ(e.source, "OMPI_COMM_WORLD_RANK");
    EXPECT_EQ(std::vector({e.rank, e.world_size, e.local_rank, e.local_world_size}),
              std::vector({1, 2, 1, 2}));
    EXPECT_EQ(e.master_addr, "127.0.0.1");
  }
  const Variables set(
      {{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "1"}, {"SLURM_NTASKS_PER_NODE", "2"}});
  const LaunchEnvironment e = launch_environment();
  EXPECT_EQ(std::vector({e.rank, e.world_size, e.local_rank, e.local_world_size}), std::vector({3, 4, 1, 2}));
  EXPECT_EQ(e.master_addr, "");  // on two machines: somebody has to say which
}

TEST(LaunchEnvironment, nonsense_is_refused) {
  {
    const Variables set({{"RANK", "two"}, {"WORLD_SIZE", "3"}});
    EXPECT_GRADUS_ERROR(launch_environment(), "E-LAUNCH", "RANK is 'two', which is no whole number");
  }
  {
    const Variables set({{"RANK", "2"}, {"WORLD_SIZE", "2"}});
    EXPECT_GRADUS_ERROR(launch_environment(), "E-LAUNCH", "RANK is 2, but WORLD_SIZE is 2");
  }
  const Variables set({{"RANK", "0"}, {"MASTER_ADDR", "here"}});
  EXPECT_GRADUS_ERROR(launch_environment(), "E-LAUNCH", "RANK is set but WORLD_SIZE is not");
}

TEST(Init, without_a_launcher_or_an_address_says_what_to_do) {
  {
    const Variables none;
    EXPECT_GRADUS_ERROR(init_process_group(), "E-INIT", "start the program with gradus-run");
  }
  const Variables set({{"RANK", "0"}, {"WORLD_SIZE", "2"}});
  EXPECT_GRADUS_ERROR(init_process_group(), "E-INIT", "MASTER_ADDR expected, but not set");
}

TEST(Init, unknown_places_are_refused) {
  const auto init = [](const char* method) {
    init_process_group("gloo", {.init_method = method, .rank = 1, .world_size = 2, .timeout = 300ms});
  };
  EXPECT_GRADUS_ERROR(init("tcp://localhost"), "E-RENDEZVOUS", "expected tcp://host:port");
  EXPECT_GRADUS_ERROR(init("mail://x"), "E-RENDEZVOUS", "'mail://x' is unknown");
  EXPECT_GRADUS_ERROR(init("tcp://no-such-host.invalid:29500"), "E-STORE",
                      "cannot find the host 'no-such-host.invalid'");
  EXPECT_GRADUS_ERROR(init(("tcp://127.0.0.1:" + std::to_string(free_port())).c_str()), "E-STORE",
                      "Connection refused");
  EXPECT_GRADUS_ERROR(init("file:///proc/nothing"), "E-STORE", "file:///proc/nothing");
  EXPECT_GRADUS_ERROR(init_process_group("mpi"), "E-ARG", "no backend 'mpi'");
}

TEST(Init, a_busy_port_is_named) {
  const Socket taken = Socket::listen(free_port());
  const int port = free_port();
  const Socket busy = Socket::listen(port);
  EXPECT_GRADUS_ERROR(
      init_process_group(
          "gloo", {.init_method = "tcp://127.0.0.1:" + std::to_string(port), .rank = 0, .world_size = 1}),
      "E-STORE", str("cannot listen on port ", port, ": Address already in use"));
}

TEST(Init, ranks_meet_at_the_address_of_the_environment) {
  in_ranks(3,
           [](int rank) {
             if (rank == 1) std::this_thread::sleep_for(1s);  // late
             init_process_group();
             EXPECT_EQ(get_rank(), rank);
             EXPECT_EQ(get_world_size(), 3);
             Tensor x = ones({1});
             all_reduce(x);
             EXPECT_EQ(x.item<int>(), 3);
             destroy_process_group();
             EXPECT_FALSE(is_initialized());
           },
           {.init_method = "none"});
}

TEST(Init, a_second_group_can_follow_the_first) {
  in_ranks(3,
           [](int rank) {
             for (int i = 0; i < 3; ++i) {
               init_process_group();
               Tensor x = full({1}, rank + i, {.dtype = kFloat32});
               all_reduce(x);
               EXPECT_EQ(x.item<int>(), 3 + 3 * i);
               destroy_process_group();
             }
           },
           {.init_method = "none"});
}

TEST(Init, the_missing_ranks_are_named) {
  for (const char* method : {"env://", "file"}) {
    const TempDir folder;
    const std::string place = method == std::string("file") ? "file://" + folder.path("s") : method;
    const auto results = run_ranks(
        2, [&](int) { init_process_group("gloo", {.init_method = std::getenv("PLACE"), .timeout = 2s}); },
        {.init_method = "none", .environment = {"WORLD_SIZE=4", "PLACE=" + place}});
    for (const auto& rank : results) {
      EXPECT_EQ(rank.status, 2);
      EXPECT_THAT(
          error_in(rank.output),
          HasSubstr("E-RENDEZVOUS: init_process_group: 2 of 4 ranks joined within 2 s; missing: 2, 3"))
          << rank.output;
      EXPECT_LT(rank.seconds, 15);
    }
  }
}

// Of two processes that say they are rank 1, one is refused. The others go on; they stay until it was, since
// one that comes after the end of the job finds nobody.
TEST(Init, DDP_15_a_rank_that_is_there_already_is_refused) {
  const TempDir folder;
  const auto results =
      run_ranks(3,
                [](int rank) {
                  const std::filesystem::path refused = std::getenv("REFUSED");
                  if (rank == 2) ::setenv("RANK", "1", 1);
                  ::setenv("WORLD_SIZE", "2", 1);
                  try {
                    init_process_group();
                  } catch (const Error&) {
                    std::ofstream(refused).put('1');
                    throw;
                  }
                  while (!std::filesystem::exists(refused)) std::this_thread::sleep_for(5ms);
                  barrier();
                },
                {.init_method = "none", .environment = {"REFUSED=" + folder.path("refused")}});
  EXPECT_EQ(results[0].status, 0) << results[0].output;
  EXPECT_EQ(results[1].status + results[2].status, 2);
  EXPECT_THAT(results[1].output + results[2].output,
              HasSubstr("E-RENDEZVOUS: init_process_group: there is a rank 1"));
}

TEST(Init, DDP_15_ranks_that_count_differently_are_refused) {
  const auto results = run_ranks(2,
                                 [](int rank) {
                                   if (rank == 1) ::setenv("WORLD_SIZE", "3", 1);
                                   init_process_group();
                                 },
                                 {.init_method = "none", .timeout_s = 2});
  for (const auto& rank : results) EXPECT_EQ(rank.status, 2);
  EXPECT_THAT(results[0].output + results[1].output, HasSubstr("was told that there are"));
}

TEST(Init, a_rank_that_dies_while_others_are_awaited_is_named) {
  const auto results = run_ranks(2,
                                 [](int rank) {
                                   if (rank == 1) {
                                     std::thread([] {
                                       std::this_thread::sleep_for(500ms);
                                       ::_exit(9);
                                     }).detach();
                                   }
                                   init_process_group();
                                 },
                                 {.init_method = "none", .environment = {"WORLD_SIZE=3"}});
  EXPECT_EQ(results[1].status, 9);
  EXPECT_THAT(error_in(results[0].output), HasSubstr("rank 1 has ended without destroy_process_group()"));
  EXPECT_LT(results[0].seconds, 15);
}

// Both stores, with two ranks in one process.
class Stores : public ::testing::TestWithParam<bool> {
 protected:
  Stores() {
    if (GetParam()) {
      const int port = free_port();
      a_ = std::make_unique<TcpStore>("127.0.0.1", port, true, 5s, 5s);
      b_ = std::make_unique<TcpStore>("127.0.0.1", port, false, 5s, 5s);
    } else {
      a_ = std::make_unique<FileStore>(folder_.path("s"));
      b_ = std::make_unique<FileStore>(folder_.path("s"));
    }
  }
  TempDir folder_;
  std::unique_ptr<Store> a_, b_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, Stores, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "tcp" : "file"; });

TEST_P(Stores, all_see_the_same_values) {
  const std::string bytes("a\0b\n", 4);
  EXPECT_FALSE(a_->try_get("k/1"));
  b_->set("k/1", bytes);
  EXPECT_EQ(a_->try_get("k/1"), bytes);
  a_->set("k/1", "");
  EXPECT_EQ(b_->get("k/1", 1s), "");
  EXPECT_EQ(a_->add("n", 2), 2);
  EXPECT_EQ(b_->add("n", 3), 5);
  EXPECT_FALSE(a_->wait({"k/1", "never"}, 50ms));
  EXPECT_GRADUS_ERROR(a_->get("never", 50ms), "E-TIMEOUT", "nobody has set 'never' within 0.05 s");
}

TEST_P(Stores, one_that_waits_is_woken_by_another) {
  std::thread later([this] {
    std::this_thread::sleep_for(100ms);
    b_->set("late", "x");
  });
  EXPECT_EQ(a_->get("late", 5s), "x");
  later.join();
}

TEST_P(Stores, who_ends_without_leaving_is_lost_and_who_leaves_is_not) {
  a_->join(0);
  b_->join(1);
  EXPECT_TRUE(a_->lost(0ms).empty());
  b_->leave();
  EXPECT_TRUE(a_->lost(0ms).empty());
  b_->join(2);
  b_.reset();
  std::vector<LostRank> lost;
  for (int i = 0; i < 100 && lost.empty(); ++i, std::this_thread::sleep_for(20ms)) lost = a_->lost(0ms);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].rank, 2);
  EXPECT_EQ(lost[0].why, "has ended without destroy_process_group()");
}

TEST_P(Stores, who_says_nothing_is_lost) {
  a_->join(0);
  b_->join(1);
  std::this_thread::sleep_for(400ms);
  ASSERT_EQ(a_->lost(200ms).size(), 1U);
  EXPECT_EQ(a_->lost(200ms)[0].why, "has not answered for 0.2 s");
  b_->lost(200ms);
  EXPECT_TRUE(a_->lost(200ms).empty());
}

// Whatever finds the port by chance does no harm.
TEST(TcpStore, strangers_are_shown_out) {
  const int port = free_port();
  TcpStore store("127.0.0.1", port, true, 5s, 5s);
  store.join(0);
  const Socket stranger = Socket::connect("127.0.0.1", port, std::chrono::steady_clock::now() + 5s);
  stranger.send("GET / HTTP/1.1");
  EXPECT_GRADUS_ERROR(stranger.receive(), "E-STORE", "closed");
  store.set("k", "v");
  EXPECT_EQ(store.try_get("k"), "v");
  EXPECT_TRUE(store.lost(0ms).empty());
}

TEST(TcpStore, its_end_is_noticed) {
  const int port = free_port();
  auto server = std::make_unique<TcpStore>("127.0.0.1", port, true, 5s, 5s);
  TcpStore client("127.0.0.1", port, false, 5s, 5s);
  server.reset();
  EXPECT_GRADUS_ERROR(client.set("k", "v"), "E-STORE", "rank 0, which serves tcp://127.0.0.1");
}

}  // namespace
}  // namespace gradus::distributed
