#include <gradus/ops/factories.h>
#include <gradus/runtime/caching_allocator.h>
#include <gradus/runtime/device_stats.h>
#include <gradus/runtime/graph.h>
#include <support/expect_error.h>
#include <support/held.h>

#include <stdexcept>
#include <thread>

namespace gradus {
namespace {

using testing::Held;
using Doubles = std::vector<double>;

const Device kSim(DeviceType::sim);

class GraphTest : public ::testing::Test {
 protected:
  void SetUp() override { empty_cache(kSim); }
  void TearDown() override { EXPECT_EQ(current_stream(kSim), Stream{kSim}); }
  Tensor x = ones({3}, kFloat32, kSim);
};

TEST_F(GraphTest, a_replay_reads_what_the_inputs_hold_then) {
  Graph graph(kSim);
  Tensor y;
  {
    GraphCapture capture(graph);
    EXPECT_TRUE(graph.is_capturing());
    EXPECT_FALSE(current_stream(kSim) == Stream{kSim});
    y = x * 2 + 1;
  }
  EXPECT_FALSE(graph.is_capturing());
  graph.replay();
  EXPECT_EQ(y.to_vector<double>(), (Doubles{3, 3, 3}));
  x.fill_(5);
  graph.replay();
  EXPECT_EQ(y.to_vector<double>(), (Doubles{11, 11, 11})) << "the output is written again";
}

TEST_F(GraphTest, nothing_runs_during_the_capture) {
  Graph graph(kSim);
  {
    GraphCapture capture(graph);
    x.add_(1);
  }
  EXPECT_EQ(x.to_vector<double>(), (Doubles{1, 1, 1}));
  for (int i = 0; i < 10; ++i) graph.replay();
  EXPECT_EQ(x.to_vector<double>(), (Doubles{11, 11, 11}));
}

TEST_F(GraphTest, a_replay_is_one_launch) {
  Graph graph(kSim);
  {
    GraphCapture capture(graph);
    for (int i = 0; i < 5; ++i) x.add_(1);
  }
  const Stats sum = stats(), before = stats(kSim);
  graph.replay();
  EXPECT_EQ((stats(kSim) - before).launches, 1);
  EXPECT_EQ((stats() - sum).launches, 1);
  EXPECT_EQ(x.to_vector<double>(), (Doubles{6, 6, 6}));
}

TEST_F(GraphTest, it_goes_to_the_current_stream) {
  const Stream stream = Stream::create(kSim);
  Graph graph(kSim);
  {
    GraphCapture capture(graph);
    x.add_(1);
  }
  synchronize(kSim);
  const StreamGuard guard(stream);
  Held held(stream);
  graph.replay();
  EXPECT_FALSE(stream.query());
  EXPECT_TRUE((Stream{kSim}.query()));
  held.let_go();
  EXPECT_EQ(x.to_vector<double>(), (Doubles{2, 2, 2}));
  x.record_stream(stream);
}

// All that the capture made is free again, but a replay still uses it.
TEST_F(GraphTest, its_memory_stays_while_it_lives) {
  const int64_t before = memory_reserved(kSim);
  Tensor out = zeros({3}, kFloat32, kSim);
  {
    Graph graph(kSim);
    {
      GraphCapture capture(graph);
      out.copy_((x + 1) * (x + 2));
    }
    empty_cache(kSim);
    EXPECT_EQ(memory_reserved(kSim) - before, 2 << 20) << "the graph's segment";
    const Tensor other = full({3}, 7, {.device = kSim});
    graph.replay();
    EXPECT_EQ(out.to_vector<double>(), (Doubles{6, 6, 6}));
    EXPECT_EQ(other.to_vector<double>(), (Doubles{7, 7, 7}));
  }
  empty_cache(kSim);
  EXPECT_EQ(memory_reserved(kSim), before);
}

TEST_F(GraphTest, the_next_graph_uses_the_memory_again) {
  for (int round = 0; round < 3; ++round) {
    const Stats before = stats(kSim);
    Graph graph(kSim);
    {
      GraphCapture capture(graph);
      x.mul_(x + 1);
    }
    graph.replay();
    EXPECT_EQ((stats(kSim) - before).driver_allocations, round == 0 ? 1 : 0);
  }
}

TEST_F(GraphTest, an_output_outlives_the_graph) {
  Tensor y;
  {
    Graph graph(kSim);
    {
      GraphCapture capture(graph);
      y = x * 2;
    }
    graph.replay();
  }
  Graph next(kSim);
  Tensor z;
  {
    GraphCapture capture(next);
    z = x * 3;
  }
  next.replay();
  EXPECT_EQ(y.to_vector<double>(), (Doubles{2, 2, 2}));
  EXPECT_EQ(z.to_vector<double>(), (Doubles{3, 3, 3}));
}

TEST_F(GraphTest, two_graphs_at_once_do_not_share_memory) {
  Graph first(kSim), second(kSim);
  Tensor y, z;
  {
    GraphCapture capture(first);
    y = x * 2;
  }
  {
    GraphCapture capture(second);
    z = x * 3;
  }
  first.replay(), second.replay();
  EXPECT_EQ(y.to_vector<double>(), (Doubles{2, 2, 2}));
  EXPECT_EQ(z.to_vector<double>(), (Doubles{3, 3, 3}));
}

TEST_F(GraphTest, reset_waits_for_the_replays) {
  Graph graph(kSim);
  {
    GraphCapture capture(graph);
    x.add_(1);
  }
  Held held(Stream{kSim});
  graph.replay();
  std::atomic<bool> let_go{false};
  std::jthread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    let_go = true;
    held.let_go();
  });
  graph.reset();
  EXPECT_TRUE(let_go);
  EXPECT_GRADUS_ERROR(graph.replay(), "E-CAPTURE", "Graph: replay: this graph is empty");
}

TEST_F(GraphTest, waiting_spoils_a_capture) {
  Graph graph(kSim);
  EXPECT_GRADUS_ERROR(
      [&] {
        GraphCapture capture(graph);
        x.cpu();
      }(),
      "E-CAPTURE", "operation not permitted when stream is capturing: a copy from or to pageable memory");
  EXPECT_GRADUS_ERROR(
      [&] {
        GraphCapture capture(graph);
        EXPECT_THROW(current_stream(kSim).synchronize(), Error);
      }(),
      "E-CAPTURE", "capture: there is no graph, because a synchronisation of the host was made during it");
  EXPECT_GRADUS_ERROR(graph.replay(), "E-CAPTURE", "this graph is empty");
  {
    GraphCapture capture(graph);  // and it can try again
    x.add_(1);
  }
  graph.replay();
  EXPECT_EQ(x.to_vector<double>(), (Doubles{2, 2, 2}));
}

TEST_F(GraphTest, an_exception_in_the_scope_leaves_the_graph_empty) {
  Graph graph(kSim);
  EXPECT_THROW(
      {
        GraphCapture capture(graph);
        x.add_(1);
        throw std::runtime_error("");
      },
      std::runtime_error);
  EXPECT_FALSE(graph.is_capturing());
  EXPECT_GRADUS_ERROR(graph.replay(), "E-CAPTURE", "this graph is empty");
}

TEST_F(GraphTest, a_capture_that_is_never_ended_ends_with_the_graph) {
  {
    Graph graph(kSim);
    graph.capture_begin();
    x.add_(1);
  }
  EXPECT_EQ(x.to_vector<double>(), (Doubles{1, 1, 1}));
}

TEST_F(GraphTest, calls_out_of_order_are_refused) {
  Graph graph(kSim);
  EXPECT_EQ(testing::error_of([&] { graph.replay(); }),
            "E-CAPTURE: Graph: replay: this graph is empty\n"
            "  hint: capture something between capture_begin() and capture_end() first");
  EXPECT_EQ(testing::error_of([&] { graph.capture_end(); }),
            "E-CAPTURE: Graph: capture_end: this graph is not capturing\n  hint: call capture_begin() first");
  graph.capture_begin();
  EXPECT_EQ(testing::error_of([&] { graph.capture_begin(); }),
            "E-CAPTURE: Graph: capture_begin: this graph is capturing\n"
            "  hint: make another Graph, or reset() this one first");
  graph.capture_end();
  EXPECT_EQ(testing::error_of([&] { graph.capture_begin(); }),
            "E-CAPTURE: Graph: capture_begin: this graph holds a capture already\n"
            "  hint: make another Graph, or reset() this one first");
  graph.reset();
  graph.capture_begin();
  graph.capture_end();
}

TEST(Graph, the_cpu_has_none) {
  Graph graph{Device()};
  EXPECT_GRADUS_ERROR(graph.capture_begin(), "E-CAPTURE", "cpu kernels run at once");
  EXPECT_FALSE(graph.is_capturing());
  EXPECT_EQ(current_stream({}), Stream{});
  EXPECT_GRADUS_ERROR(Graph(Device("sim:100")), "E-DEVICE-ORDINAL", "sim:100");
}

}  // namespace
}  // namespace gradus
