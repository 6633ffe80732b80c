// Graphs: CUDA programming guide, "Creating a Graph Using Stream Capture", "Cross-Stream Dependencies and
// Events", "Prohibited and Unhandled Operations", "Invalidation".
#include <runtime/device_contract.h>

namespace gradus::contract {
namespace {

using testing::error_of;

// A graph, and its capture if that is not ended.
class Graph {
 public:
  explicit Graph(const Stream& stream) : stream_(stream) { backend().begin_capture(stream); }
  ~Graph() {
    if (!ended_) error_of([&] { end(); });
    if (graph_) backend().destroy_graph(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void end() {
    ended_ = true;
    graph_ = backend().end_capture(stream_);
  }
  void replay(const Stream& stream) const { backend().replay(graph_, stream); }
  void replay() const { replay(stream_); }

 private:
  runtime::Backend& backend() const { return runtime::backend(stream_.device); }
  Stream stream_;
  void* graph_ = nullptr;
  bool ended_ = false;
};

DEVICE_CONTRACT_WHERE(GraphContract, rules_of(type).graphs);
DEVICE_CONTRACT_WHERE(NoGraphContract, !rules_of(type).graphs);
DEVICE_CONTRACT_WHERE(TwoDeviceGraphContract, rules_of(type).graphs&& device_count(type) > 1);
DEVICE_CONTRACT_WHERE(LaunchBlockingGraphContract, rules_of(type).graphs&& rules_of(type).launch_blocking);

TEST_P(NoGraphContract, capture_is_refused) {
  EXPECT_GRADUS_ERROR(backend().begin_capture(stream()), "E-CAPTURE", "cannot be recorded");
  EXPECT_GRADUS_ERROR(backend().end_capture(stream()), "E-CAPTURE", "cannot be recorded");
  EXPECT_FALSE(backend().is_capturing(stream()));
}

TEST_P(GraphContract, what_is_captured_does_not_run_until_it_is_replayed_and_then_each_time) {
  const Buffer x(device(), 4, 1), y(device());
  const Stream s = stream();
  EXPECT_FALSE(backend().is_capturing(s));
  Graph graph(s);
  EXPECT_TRUE(backend().is_capturing(s));
  launch_affine(s, x, x, 2, 1);
  copy_across(s, y, x);
  graph.end();
  EXPECT_FALSE(backend().is_capturing(s));
  EXPECT_EQ(x.value(), 1);
  EXPECT_EQ(y.value(), 0);
  float expected = 1;
  for (int i = 0; i < 5; ++i) {
    graph.replay();
    expected = 2 * expected + 1;
    s.synchronize();
    EXPECT_EQ(y.value(), expected);
  }
}

TEST_P(GraphContract, arguments_are_those_of_the_capture) {
  const Buffer y(device());
  const Stream s = stream();
  Graph graph(s);
  for (float b = 0; b < 5; ++b) launch_affine(s, y, y, 2, b);
  graph.end();
  graph.replay();
  graph.replay();
  float expected = 0;
  for (int i = 0; i < 2; ++i)
    for (float b = 0; b < 5; ++b) expected = 2 * expected + b;
  s.synchronize();
  EXPECT_EQ(y.value(), expected);
}

TEST_P(GraphContract, a_replay_is_in_order_with_its_stream_and_does_not_block_the_host) {
  const Buffer x(device()), y(device());
  const Stream s = stream(), other = stream();
  Graph graph(s);
  launch_affine(s, y, y, 2, 1);
  graph.end();
  Gate gate(device());
  launch_affine(other, y, y, 0, 1, &gate);  // y = 1
  graph.replay(other);                      // y = 3
  launch_affine(other, y, y, 10, 0);        // y = 30
  EXPECT_FALSE(other.query());
  EXPECT_FALSE(gate.gave_up());
  gate.open();
  other.synchronize();
  EXPECT_EQ(y.value(), 30);
}

TEST_P(GraphContract, other_streams_work_goes_on_during_a_capture) {
  const Buffer x(device()), y(device());
  const Stream s = stream(), other = stream();
  Graph graph(s);
  launch_affine(other, y, y, 0, 1);
  other.synchronize();
  launch_affine(s, x, x, 0, 1);
  launch_affine(default_stream(), y, y, 1, 1);
  default_stream().synchronize();
  graph.end();
  EXPECT_EQ(y.value(), 2);
}

TEST_P(GraphContract, a_stream_that_waits_for_a_captured_event_is_captured_until_it_is_joined) {
  const Buffer x(device(), 4, 1), y(device());
  const Stream s = stream(), side = stream();
  Event fork(device()), join(device());
  Graph graph(s);
  launch_affine(s, x, x, 2, 0);
  fork.record(s);
  fork.wait(side);
  EXPECT_TRUE(backend().is_capturing(side));
  launch_affine(side, x, y, 3, 0);
  join.record(side);
  join.wait(s);
  launch_affine(s, y, x, 1, 1);
  graph.end();
  EXPECT_FALSE(backend().is_capturing(side));
  EXPECT_EQ(x.value(), 1);
  graph.replay();  // x = 2, y = 6, x = 7
  s.synchronize();
  EXPECT_EQ(y.value(), 6);
  EXPECT_EQ(x.value(), 7);
  graph.replay();  // 14, 42, 43
  s.synchronize();
  EXPECT_EQ(x.value(), 43);
}

TEST_P(GraphContract, a_stream_that_is_not_joined_again_is_refused) {
  const Buffer x(device()), y(device());
  const Stream s = stream(), side = stream();
  Graph graph(s);
  side.wait_stream(s);
  launch_affine(side, x, y, 1, 1);
  EXPECT_GRADUS_ERROR(graph.end(), "E-CAPTURE", "was not joined again");
  EXPECT_FALSE(backend().is_capturing(s));
  EXPECT_FALSE(backend().is_capturing(side));
  launch_affine(side, x, y, 1, 1);
  side.synchronize();
  EXPECT_EQ(y.value(), 1);
}

TEST_P(GraphContract, work_after_the_join_must_be_joined_too) {
  const Buffer x(device()), y(device());
  const Stream s = stream(), side = stream();
  Graph graph(s);
  side.wait_stream(s);
  launch_affine(side, x, y, 1, 1);
  s.wait_stream(side);
  launch_affine(side, x, y, 1, 1);
  EXPECT_GRADUS_ERROR(graph.end(), "E-CAPTURE", "was not joined again");
}

TEST_P(GraphContract, the_default_stream_cannot_be_captured) {
  EXPECT_GRADUS_ERROR(backend().begin_capture(default_stream()), "E-CAPTURE", "the default stream of");
  EXPECT_FALSE(backend().is_capturing(default_stream()));
}

TEST_P(GraphContract, a_stream_captures_once_at_a_time) {
  const Stream s = stream();
  Graph graph(s);
  EXPECT_GRADUS_ERROR(backend().begin_capture(s), "E-CAPTURE", "is capturing already");
  graph.end();
  EXPECT_GRADUS_ERROR(backend().end_capture(s), "E-CAPTURE", "began no capture");
}

TEST_P(GraphContract, the_host_may_not_wait_for_what_is_captured_and_trying_spoils_the_graph) {
  const Buffer x(device());
  std::vector<float> host(4);
  const Stream s = stream();
  Event event(device());
  const std::function<void()> calls[] = {[&] { s.synchronize(); },
                                         [&] { synchronize(device()); },
                                         [&] { s.query(); },
                                         [&] { event.synchronize(); },
                                         [&] { event.query(); },
                                         [&] { copy_in(s, x, host.data()); },
                                         [&] { copy_out(s, host.data(), x); }};
  for (const auto& call : calls) {
    SCOPED_TRACE(&call - calls);
    Graph graph(s);
    launch_affine(s, x, x, 1, 1);
    event.record(s);
    EXPECT_GRADUS_ERROR(call(), "E-CAPTURE", "not permitted when stream is capturing");
    EXPECT_GRADUS_ERROR(graph.end(), "E-CAPTURE", "there is no graph");
    EXPECT_FALSE(backend().is_capturing(s));
  }
  s.synchronize();
  EXPECT_EQ(x.value(), 0);
}

TEST_P(GraphContract, work_on_the_default_stream_is_refused_while_a_blocking_stream_captures) {
  const Buffer x(device()), y(device());
  const Stream s = Stream::create_blocking(device());
  Graph graph(s);
  launch_affine(s, x, x, 1, 1);
  EXPECT_GRADUS_ERROR(launch_affine(default_stream(), y, y, 1, 1), "E-CAPTURE", "not permitted");
  EXPECT_GRADUS_ERROR(graph.end(), "E-CAPTURE", "there is no graph");
  launch_affine(default_stream(), y, y, 1, 1);
  EXPECT_EQ(y.value(), 1);
}

TEST_P(GraphContract, an_event_of_a_capture_means_nothing_outside_of_it) {
  const Buffer x(device());
  const Stream s = stream(), other = stream();
  Event event(device());
  {
    Graph graph(s);
    launch_affine(s, x, x, 1, 1);
    event.record(s);
    graph.end();
  }
  EXPECT_GRADUS_ERROR(event.wait(other), "E-CAPTURE", "recorded in a capture");
  EXPECT_GRADUS_ERROR(event.query(), "E-CAPTURE", "recorded in a capture");
  EXPECT_GRADUS_ERROR(event.synchronize(), "E-CAPTURE", "recorded in a capture");
  EXPECT_GRADUS_ERROR(event.elapsed_time(event), "E-EVENT", "recorded in a capture");
  event.record(other);
  other.synchronize();
  EXPECT_TRUE(event.query());
}

TEST_P(GraphContract, a_capture_cannot_wait_for_work_outside_of_it) {
  const Buffer x(device());
  const Stream s = stream(), other = stream();
  Event event(device());
  event.record(other);
  Graph graph(s);
  EXPECT_GRADUS_ERROR(event.wait(s), "E-CAPTURE", "outside");
  EXPECT_GRADUS_ERROR(graph.end(), "E-CAPTURE", "there is no graph");
}

TEST_P(GraphContract, two_captures_do_not_merge) {
  const Stream a = stream(), b = stream();
  Graph first(a), second(b);
  EXPECT_GRADUS_ERROR(b.wait_stream(a), "E-CAPTURE", "another capture");
  EXPECT_GRADUS_ERROR(second.end(), "E-CAPTURE", "there is no graph");
}

TEST_P(GraphContract, the_default_stream_takes_no_part_in_a_capture) {
  const Stream s = stream();
  Graph graph(s);
  EXPECT_GRADUS_ERROR(default_stream().wait_stream(s), "E-CAPTURE", "a wait on the default stream");
  EXPECT_GRADUS_ERROR(graph.end(), "E-CAPTURE", "there is no graph");
}

TEST_P(LaunchBlockingGraphContract, launch_blocking_does_not_run_what_is_captured) {
  const sim::OptionsGuard blocking([](auto& o) { o.launch_blocking = true; });
  const Buffer x(device(), 4, 1), y(device());
  const Stream s = stream();
  Graph graph(s);
  launch_affine(s, x, x, 2, 0);
  copy_across(s, y, x);
  graph.end();
  EXPECT_EQ(x.value(), 1);
  EXPECT_EQ(y.value(), 0);
  graph.replay();
  EXPECT_TRUE(s.query());
  EXPECT_EQ(y.value(), 2);
}

TEST_P(GraphContract, a_graph_may_go_while_its_replay_is_queued) {
  const Buffer x(device()), y(device());
  const Stream s = stream();
  Gate gate(device());
  {
    Graph graph(s);
    launch_affine(s, y, y, 1, 1);
    graph.end();
    launch_gated(s, x, gate);
    graph.replay();
  }
  gate.open();
  s.synchronize();
  EXPECT_EQ(y.value(), 1);
}

TEST_P(TwoDeviceGraphContract, a_graph_is_replayed_on_its_own_device) {
  Graph graph(stream());
  graph.end();
  EXPECT_GRADUS_ERROR(graph.replay(Stream{other_device()}), "E-DEVICE-MISMATCH", "the graph was captured on");
}

}  // namespace
}  // namespace gradus::contract
