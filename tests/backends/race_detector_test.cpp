#include <gradus/backends/sim/race_detector.h>
#include <gtest/gtest.h>
#include <support/expect_error.h>

#include <string>
#include <vector>

namespace gradus::sim {
namespace {

using testing::error_of;

// A dense or strided operand at an address that nobody looks at.
TensorArg at(uintptr_t address, Shape sizes, Shape strides = {}, DType dtype = kUInt8) {
  if (strides.empty()) strides = contiguous_strides(sizes);
  return {reinterpret_cast<void*>(address), 1, sizes, strides, dtype};
}

struct Detector : RaceDetector {
  void read(int stream, const TensorArg& x) { use(stream, "read", {{&x, Access::read}}); }
  void write(int stream, const TensorArg& x) { use(stream, "write", {{&x, Access::write}}); }
  void use(int stream, const char* name, std::vector<Use> uses) { task(stream, name, uses); }
  void wait(int stream, int for_stream) { join(stream, clock(for_stream)); }
};
#define EXPECT_RACE(statement) EXPECT_GRADUS_ERROR(statement, "E-RACE", "race with")

const TensorArg kX = at(0x1000, {64});

TEST(RaceDetector, a_stream_is_in_order_with_itself) {
  Detector d;
  d.write(0, kX), d.read(0, kX), d.write(0, kX), d.write(0, kX);
  d.use(0, "in place", {{&kX, Access::read}, {&kX, Access::write}});
  d.use(0, "both", {{&kX, Access::read_write}});
}

TEST(RaceDetector, two_streams_race_unless_both_read) {
  for (const bool first_writes : {false, true})
    for (const bool second_writes : {false, true}) {
      Detector d;
      first_writes ? d.write(1, kX) : d.read(1, kX);
      auto second = [&] { second_writes ? d.write(2, kX) : d.read(2, kX); };
      EXPECT_EQ(error_of(second) == "", !first_writes && !second_writes);
    }
}

TEST(RaceDetector, read_write_counts_as_both) {
  Detector d;
  d.use(0, "add_", {{&kX, Access::read_write}});
  EXPECT_RACE(d.read(1, kX));
  Detector e;
  e.read(0, kX);
  EXPECT_RACE(e.use(1, "add_", {{&kX, Access::read_write}}));
}

TEST(RaceDetector, the_report_names_both_places) {
  Detector d;
  d.name_stream(0, "sim:0 default stream");
  d.name_stream(3, "sim:0 stream 2");
  const TensorArg a = at(0x1000, {4, 4}, {}, kFloat32), b = at(0x5000, {2, 3}, {}, kInt64),
                  part = at(0x1010, {2, 4}, {}, kFloat32);
  d.use(0, "relu", {{&b, Access::read}, {&a, Access::write}});
  EXPECT_EQ(
      error_of([&] {
        d.use(3, "add", {{&b, Access::read}, {&b, Access::read}, {&part, Access::read}});
      }),
      "E-RACE: add: race with relu: relu on sim:0 default stream writes operand 2 (float32 [4, 4]), then add "
      "on sim:0 stream 2 reads operand 3 (float32 [2, 4]), and nothing makes the second wait for the first; "
      "both use bytes 0x1010 to 0x102f\n"
      "  hint: make it wait: second.wait_stream(first), or an Event that is recorded after the first use and "
      "waited for before the second; if the memory was freed and given out again, call record_stream() on it "
      "before it is freed");
}

TEST(RaceDetector, an_unnamed_stream_goes_by_its_number) {
  Detector d;
  d.write(0, kX);
  EXPECT_GRADUS_ERROR(d.write(7, kX), "E-RACE", "write on stream 7 writes operand 1 (uint8 [64])");
}

TEST(RaceDetector, a_task_that_raced_was_not_queued) {
  Detector d;
  const TensorArg other = at(0x2000, {8});
  d.write(0, kX);
  const Clock before = d.clock(1);
  EXPECT_RACE(d.use(1, "two", {{&other, Access::write}, {&kX, Access::read}}));
  EXPECT_EQ(d.clock(1), before);
  EXPECT_EQ(d.interval_count(), 1u);
  d.write(2, other);  // nobody else wrote it
  d.wait(1, 0);
  d.read(1, kX);
}

TEST(RaceDetector, waiting_for_an_event_orders_what_was_queued_before_its_record) {
  Detector d;
  d.write(0, kX);
  const Clock event = d.clock(0);
  const TensorArg later = at(0x2000, {8});
  d.write(0, later);
  d.join(1, event);
  d.read(1, kX);
  EXPECT_RACE(d.read(1, later));
  d.join(1, d.clock(0));
  d.read(1, later);
}

TEST(RaceDetector, order_passes_through_a_third_stream) {
  Detector d;
  d.write(0, kX);
  d.wait(1, 0);
  d.wait(2, 1);
  d.write(2, kX);
  EXPECT_RACE(d.read(0, kX));  // it does not pass back
}

TEST(RaceDetector, an_event_stands_for_what_its_stream_waited_for) {
  Detector d;
  d.write(0, kX);
  d.wait(1, 0);
  const Clock event = d.clock(1);
  d.join(2, event);
  d.read(2, kX);
}

TEST(RaceDetector, a_host_wait_orders_all_that_is_queued_afterwards) {
  Detector d;
  d.write(0, kX);
  d.join_host(d.clock(0));
  d.write(1, kX);
  d.wait(5, 1);
  d.write(5, kX);
  EXPECT_RACE(d.read(0, kX));
}

TEST(RaceDetector, an_event_recorded_after_a_host_wait_stands_for_it_too) {
  Detector d;
  d.write(0, kX);
  const Clock early = d.clock(1);
  d.join_host(d.clock(0));
  EXPECT_EQ(early, Clock{});
  EXPECT_EQ(d.clock(1), Clock{1});
}

TEST(RaceDetector, a_write_must_wait_for_every_reader) {
  Detector d;
  d.read(1, kX), d.read(2, kX), d.read(3, kX);
  d.wait(0, 1), d.wait(0, 3);
  EXPECT_GRADUS_ERROR(d.write(0, kX), "E-RACE", "read on stream 2 reads operand 1");
  d.wait(0, 2);
  d.write(0, kX);
}

TEST(RaceDetector, a_later_read_on_the_same_stream_must_be_waited_for_too) {
  Detector d;
  d.read(1, kX);
  const Clock first = d.clock(1);
  d.read(1, kX);
  d.join(0, first);
  EXPECT_RACE(d.write(0, kX));
}

TEST(RaceDetector, only_shared_bytes_count) {
  Detector d;
  d.write(0, at(0x1000, {16}));
  d.write(1, at(0x1010, {16}));
  d.write(2, at(0x0ff0, {16}));
  d.read(3, at(0x1020, {0}));
  d.read(3, at(0x1008, {0, 4}));
  EXPECT_GRADUS_ERROR(
      d.read(3, at(0x100f, {2})), "E-RACE",
      "write on stream 0 writes operand 1 (uint8 [16]), then read on stream 3 reads "
      "operand 1 (uint8 [2]), and nothing makes the second wait for the first; both use bytes "
      "0x100f to 0x100f");
}

TEST(RaceDetector, pieces_of_one_write_keep_their_history) {
  Detector d;
  d.write(0, at(0x1000, {64}));
  d.wait(1, 0);
  d.write(1, at(0x1010, {16}));  // in the middle
  EXPECT_RACE(d.read(2, at(0x1000, {1})));
  EXPECT_RACE(d.read(2, at(0x103f, {1})));
  EXPECT_RACE(d.read(0, at(0x1000, {64})));
  d.read(0, at(0x1000, {16}));
  d.read(0, at(0x1020, {32}));
}

TEST(RaceDetector, halves_of_a_matrix_by_columns_do_not_meet) {
  Detector d;
  const TensorArg left = at(0x1000, {100, 3}, {8, 1}, kFloat32),
                  right = at(0x1000 + 3 * 4, {100, 5}, {8, 1}, kFloat32);
  d.write(0, left);
  d.write(1, right);
  d.read(0, left);
  EXPECT_RACE(d.read(2, at(0x1000 + 99 * 8 * 4 + 7 * 4, {1}, {}, kFloat32)));
  EXPECT_RACE(d.write(0, at(0x1000, {100, 8}, {}, kFloat32)));
}

TEST(RaceDetector, a_transposed_operand_is_dense) {
  Detector d;
  d.write(0, at(0x1000, {8, 100}, {1, 8}, kFloat32));
  EXPECT_EQ(d.interval_count(), 1u);
  d.write(0, at(0x9000, {2, 3, 4, 5}, channels_last_strides({2, 3, 4, 5}), kFloat32));
  EXPECT_EQ(d.interval_count(), 2u);
}

TEST(RaceDetector, an_expanded_operand_is_its_one_row) {
  Detector d;
  d.read(0, at(0x1000, {1000, 4}, {0, 1}, kFloat32));
  EXPECT_EQ(d.interval_count(), 1u);
  d.write(1, at(0x1010, {16}));
  EXPECT_RACE(d.write(1, at(0x100f, {1})));
}

TEST(RaceDetector, windows_that_overlap_are_one_range) {
  Detector d;
  d.read(0, at(0x1000, {10, 4}, {2, 1}));  // unfold: 0 … 3, 2 … 5, …
  EXPECT_EQ(d.interval_count(), 1u);
  EXPECT_RACE(d.write(1, at(0x1000 + 21, {1})));
  d.write(1, at(0x1000 + 22, {1}));
}

TEST(RaceDetector, runs_beyond_the_bound_are_not_watched) {
  const int64_t most = RaceDetector::kMaxRuns;
  Detector d;
  d.write(0, at(0x10000, {most + 1}, {2}));
  d.write(1, at(0x10000 + 2 * most, {1}));
  EXPECT_RACE(d.write(1, at(0x10000 + 2 * (most - 1), {1})));
}

TEST(RaceDetector, memory_given_back_has_no_history) {
  Detector d;
  d.write(0, at(0x1000, {64}));
  d.forget(reinterpret_cast<void*>(0x1010), 16);
  d.write(1, at(0x1010, {16}));
  EXPECT_RACE(d.write(2, at(0x100f, {1})));
  EXPECT_RACE(d.write(2, at(0x1020, {1})));
  d.forget(reinterpret_cast<void*>(0), 0x10000);
  EXPECT_EQ(d.interval_count(), 0u);
}

TEST(RaceDetector, clear_forgets_the_memory_and_keeps_the_order) {
  Detector d;
  d.write(0, kX), d.write(0, kX);
  const Clock old = d.clock(0);
  d.clear();
  d.write(1, kX);
  d.wait(0, 1);
  d.write(0, kX);  // after two that were forgotten
  d.join(1, old);
  EXPECT_RACE(d.read(1, kX));  // an old event does not stand for a new task
}

// A step of training: a copy stream brings the batch, and the compute stream uses it and updates weights.
void step(Detector& d, int i) {
  const TensorArg batch = at(0x100000 + 0x1000 * (i % 2), {32, 16}, {}, kFloat32);
  d.wait(1, 0);
  d.write(1, batch);
  d.wait(0, 1);
  for (uintptr_t row = 0; row < 32; ++row)
    d.read(0, at(reinterpret_cast<uintptr_t>(batch.address) + 64 * row, {16}, {}, kFloat32));
  const TensorArg weights = at(0x200000, {1024}, {}, kFloat32), gradient = at(0x300000, {32, 32}, {64, 1});
  d.use(0, "step", {{&gradient, Access::read}, {&weights, Access::read_write}});
  d.write(0, gradient);
}

TEST(RaceDetector, a_training_loop_does_not_make_the_history_grow) {
  Detector d;
  for (int i = 0; i < 10; ++i) step(d, i);
  const size_t after_ten = d.interval_count();
  for (int i = 10; i < 5000; ++i) step(d, i);
  EXPECT_EQ(d.interval_count(), after_ten);
  EXPECT_LT(after_ten, 110u);
}

TEST(RaceDetector, what_the_host_waited_for_is_swept) {
  Detector d;
  for (uintptr_t i = 0; i < 200'000; ++i) {  // always new memory
    d.write(0, at(0x1000 + 64 * i, {8}));
    if (i % 100 == 0) d.join_host(d.clock(0));
    ASSERT_LE(d.interval_count(), 1025u);
  }
}

TEST(RaceDetector, a_sweep_changes_no_verdict) {
  Detector d;
  d.write(0, at(0x1000, {4096}));
  for (uintptr_t i = 0; i < 4096; ++i) d.wait(1, 0), d.read(1, at(0x1000 + i, {1}));
  for (uintptr_t i = 0; i < 2000; ++i) d.write(2, at(0x100000 + 2 * i, {1}));
  EXPECT_GRADUS_ERROR(d.read(3, at(0x1800, {1})), "E-RACE", "race with write");
  d.wait(3, 0);
  d.read(3, at(0x1800, {1}));
  EXPECT_GRADUS_ERROR(d.write(3, at(0x1900, {1})), "E-RACE", "race with read");
  d.wait(3, 1);
  d.write(3, at(0x1900, {1}));
}

}  // namespace
}  // namespace gradus::sim
