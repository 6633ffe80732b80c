// Copies between devices: what they promise about streams and the host, and the memory they use.
#include <gradus/ops/copy.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/view.h>
#include <gradus/runtime/device_stats.h>
#include <gradus/runtime/pinned.h>
#include <gradus/tensor/node.h>
#include <support/expect_error.h>
#include <support/held.h>

#include <vector>

namespace gradus {
namespace {

using testing::Held;
using Doubles = std::vector<double>;

const Device kSim0(DeviceType::sim, 0), kSim1(DeviceType::sim, 1);
const Stream kDefault{kSim0};

Tensor pinned(const Shape& sizes, double value, DType dtype = kFloat32) {
  return full(sizes, value, {.dtype = dtype, .pin_memory = true});
}

TEST(Transfer, DEV_01_an_asynchronous_copy_is_there_after_synchronize) {
  const sim::OptionsGuard slow([](auto& o) { o.link = 2e6; });  // 4 ms for 8,000 bytes
  const Tensor x = arange(1000).to(kSim0);
  for (int round = 0; round < 20; ++round) {
    Tensor h = pinned({1000}, 1, kInt64);
    {
      Held held(kDefault);
      h.copy_(x, /*non_blocking=*/true);
      EXPECT_EQ(sum(h).item<int64_t>(), 1000) << "the copy has not begun: what was there before";
      held.let_go();
    }
    synchronize(kSim0);
    EXPECT_EQ(sum(h).item<int64_t>(), 499500);
  }
}

TEST(Transfer, DEV_01_a_blocking_copy_is_there_at_once) {
  const sim::OptionsGuard slow([](auto& o) { o.link = 2e6; });
  const Tensor x = arange(1000).to(kSim0);
  EXPECT_EQ(sum(x.cpu()).item<int64_t>(), 499500);
  Tensor h = pinned({1000}, 1, kInt64);
  h.copy_(x);
  EXPECT_EQ(sum(h).item<int64_t>(), 499500);
  Tensor pageable = zeros({1000}, kInt64);
  pageable.copy_(x, /*non_blocking=*/true);
  EXPECT_EQ(sum(pageable).item<int64_t>(), 499500) << "pageable memory blocks all the same";
}

TEST(Transfer, to_the_cpu_without_blocking_gives_a_pinned_tensor) {
  const Tensor x = arange(1000).to(kSim0);
  Held held(kDefault);
  const Tensor h = x.to("cpu", true);
  EXPECT_TRUE(h.is_pinned());
  held.let_go();
  synchronize(kSim0);
  EXPECT_EQ(sum(h).item<int64_t>(), 499500);
  EXPECT_FALSE(x.cpu().is_pinned());
}

// The cpu converts at once, so it must not begin before the copy is done.
TEST(Transfer, a_conversion_on_the_cpu_waits_for_the_copy) {
  const sim::OptionsGuard slow([](auto& o) { o.link = 2e6; });
  const Tensor x = arange(1000).to(kSim0);
  Tensor h = pinned({1000}, 1), reversed = pinned({2, 1000}, 1, kInt64);
  h.copy_(x, true);
  EXPECT_EQ(sum(h).item<double>(), 499500);
  reversed.copy_(x, true);
  EXPECT_EQ(sum(reversed).item<int64_t>(), 2 * 499500);
}

TEST(Transfer, pinned_memory_is_not_used_again_while_a_copy_reads_it) {
  Held held(kDefault);
  Tensor x = pinned({1000}, 1);
  const void* address = x.raw_data();
  const Tensor y = x.to(kSim0, true);
  x = {};
  const Tensor next = pinned({1000}, 2);
  EXPECT_NE(next.raw_data(), address);
  held.let_go();
  EXPECT_EQ(sum(y).item<double>(), 1000);
}

TEST(Transfer, pinned_memory_is_not_used_again_while_a_copy_writes_it) {
  const Tensor x = ones({1000}, kFloat32, kSim0);
  Held held(kDefault);
  x.to("cpu", true);  // nobody keeps the result
  const Tensor next = pinned({1000}, 2);
  held.let_go();
  synchronize(kSim0);
  EXPECT_EQ(sum(next).item<double>(), 2000);
}

TEST(Transfer, pinned_memory_is_used_again_after_the_copy) {
  const void* address;
  {
    const Tensor x = pinned({123'456}, 1);
    address = x.raw_data();
    x.to(kSim1, true);  // pinned memory serves all devices of the type
  }
  synchronize(kSim1);
  EXPECT_EQ(pinned({123'456}, 2).raw_data(), address);
}

TEST(Transfer, what_blocks_is_counted) {
  const Tensor pageable = ones({10}), page_locked = pinned({10}, 1);
  auto waits = [](auto copy) {
    const Stats before = stats(kSim0);
    copy();
    return (stats(kSim0) - before).synchronizations;
  };
  EXPECT_EQ(waits([&] { pageable.to(kSim0); }), 1);
  EXPECT_EQ(waits([&] { page_locked.to(kSim0); }), 1);
  EXPECT_EQ(waits([&] { pageable.to(kSim0, true); }), 1);
  EXPECT_EQ(waits([&] { page_locked.to(kSim0, true); }), 0);
  const Tensor x = pageable.to(kSim0);
  EXPECT_EQ(waits([&] { x.cpu(); }), 1);
  EXPECT_EQ(waits([&] { x.to("cpu", true); }), 0);
  EXPECT_EQ(waits([&] { x.to(kSim1); }), 0);
  EXPECT_EQ(waits([&] { x.sum().item(); }), 1);
}

TEST(Transfer, copies_count_on_the_device_they_belong_to) {
  const Tensor x = ones({10});
  const Stats cpu = stats("cpu"), first = stats(kSim0), second = stats(kSim1);
  const Tensor y = x.to(kSim1);  // 40 bytes
  y.to(kSim0);
  y.cpu();
  y.clone();
  x.clone();
  const Stats used = stats(kSim1) - second;
  EXPECT_EQ(used.copies_h2d, 1);
  EXPECT_EQ(used.bytes_h2d, 40);
  EXPECT_EQ(used.copies_d2h, 1);
  EXPECT_EQ(used.bytes_d2h, 40);
  EXPECT_EQ(used.copies_d2d, 2) << "to the peer, on the source, and within the device";
  EXPECT_EQ(used.bytes_d2d, 80);
  EXPECT_EQ((stats(kSim0) - first).copies_d2d, 0);
  EXPECT_EQ((stats("cpu") - cpu).copies_d2d, 1);
  EXPECT_EQ((stats("cpu") - cpu).copies_h2d, 0);
}

TEST(Transfer, any_layout_and_dtype_goes_to_a_device_and_back) {
  const Tensor x = arange(2 * 3 * 4 * 5).reshape({2, 3, 4, 5});
  for (const Tensor& t : {x, x.transpose(1, 3), x.slice(3, 0, 5, 2), x[1],
                          x.contiguous(MemoryFormat::channels_last), x.narrow(0, 0, 0), x[1][2][3][4]}) {
    const Tensor there = t.to(kSim0);
    EXPECT_EQ(there.device(), kSim0);
    EXPECT_EQ(there.sizes(), t.sizes());
    EXPECT_EQ(there.to_vector<int64_t>(), t.to_vector<int64_t>());
    EXPECT_EQ(there.to(kSim1).cpu().to_vector<int64_t>(), t.to_vector<int64_t>());
    Tensor wide = zeros(t.sizes(), kFloat64, kSim0);
    wide.copy_(t);
    EXPECT_EQ(wide.to_vector<int64_t>(), t.to_vector<int64_t>());
  }
  EXPECT_EQ(x.contiguous(MemoryFormat::channels_last).to(kSim0).strides(), (Shape{60, 1, 15, 3}));
  Tensor row = zeros({2, 5}, kFloat32, kSim0);
  row.copy_(tensor({1., 2., 3., 4., 5.}));
  EXPECT_EQ(row.to_vector<double>(), (Doubles{1, 2, 3, 4, 5, 1, 2, 3, 4, 5}));
}

TEST(Transfer, to_the_same_device_is_the_same_tensor) {
  const Tensor x = ones({3}, kFloat32, kSim1);
  EXPECT_TRUE(x.to(kSim1).is_same(x));
  EXPECT_TRUE(x.to(kSim1, true).is_same(x));
  EXPECT_FALSE(x.to(kSim0).is_same(x));
  EXPECT_EQ(x.device(), kSim1);
}

TEST(Transfer, gradients_return_to_the_device_they_came_from) {
  Tensor x = ones({3}).requires_grad_();
  (x.to(kSim0).to(kSim1) * 2).sum().backward();
  EXPECT_EQ(x.grad().device(), Device());
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{2, 2, 2}));
}

// The race detector sees each of these without the order that copies between devices promise.
TEST(PeerCopy, comes_after_the_work_on_both_sides_and_before_what_follows) {
  for (const bool side_streams : {false, true}) {
    const Stream from = side_streams ? Stream::create(kSim0) : Stream{kSim0};
    const Stream to = side_streams ? Stream::create(kSim1) : Stream{kSim1};
    const StreamGuard on_source(from), on_target(to);
    const Tensor x = arange(1000).to(kSim0).to(kFloat32) + 1;
    Tensor y = ones({1000}, kFloat32, kSim1);
    const Tensor before = y + 0;           // reads y on its stream
    y.copy_(x);                            // writes it, on the source's
    const Tensor after = y + 0;            // reads it on its own again
    const Tensor fresh = x.to(kSim1) * 2;  // memory that its device may still be using
    EXPECT_EQ(sum(before).item<double>(), 1000);
    EXPECT_EQ(sum(after).item<double>(), 500500);
    EXPECT_EQ(sum(fresh).item<double>(), 1001000);
  }
}

TEST(PeerCopy, the_target_s_memory_can_be_dropped_at_once) {
  const Tensor x = ones({1000}, kFloat32, kSim0);
  for (int i = 0; i < 10; ++i) {
    x.to(kSim1);
    const Tensor next = full({1000}, 7, {.device = kSim1});  // in the same memory
    EXPECT_EQ(sum(next).item<double>(), 7000);
  }
}

TEST(PeerCopy, does_not_block_the_host) {
  const Tensor x = ones({10}, kFloat32, kSim0);
  Held held(kDefault);
  const Tensor y = x.to(kSim1) + 1;
  held.let_go();
  EXPECT_EQ(sum(y).item<double>(), 20);
}

TEST(RecordStream, keeps_memory_until_the_other_stream_is_done) {
  const Stream side = Stream::create(kSim0);
  Tensor x = ones({1000}, kFloat32, kSim0), y;
  const void* address = x.raw_data();
  side.wait_stream(kDefault);
  Held held(side);
  {
    const StreamGuard guard(side);
    y = x * 3;
  }
  x.record_stream(side);
  x = {};
  const Tensor next = full({1000}, 2, {.device = kSim0});  // would be a race, if it were in x's memory
  EXPECT_NE(next.raw_data(), address);
  held.let_go();
  side.synchronize();
  EXPECT_EQ(sum(y).item<double>(), 3000);
  EXPECT_EQ(ones({1000}, kFloat32, kSim0).raw_data(), address) << "and then it is used again";
}

// What record_stream is for.
TEST(RecordStream, without_it_the_memory_is_used_too_early) {
  const Stream side = Stream::create(kSim0);
  Tensor x = ones({1000}, kFloat32, kSim0), y;
  side.wait_stream(kDefault);
  {
    const StreamGuard guard(side);
    y = x * 3;
  }
  x = {};
  EXPECT_GRADUS_ERROR(full({1000}, 2, {.device = kSim0}), "E-RACE", "fill");
  synchronize(kSim0);
}

TEST(RecordStream, refuses_another_device_s_stream) {
  EXPECT_GRADUS_ERROR(ones({1}, kFloat32, kSim0).record_stream(Stream{kSim1}), "E-DEVICE-MISMATCH",
                      "record_stream: the memory is on sim:0, the stream on sim:1");
  EXPECT_GRADUS_ERROR(ones({1}).record_stream(kDefault), "E-DEVICE-MISMATCH",
                      "record_stream: the memory is on cpu, the stream on sim:0");
  float memory[1] = {};
  from_blob(memory, {1}, kFloat32).record_stream(kDefault);  // its owner's to keep
}

TEST(PinMemory, copies_once_and_keeps_the_layout) {
  const Tensor x = arange(24).reshape({1, 2, 3, 4});
  EXPECT_FALSE(x.is_pinned());
  const Tensor y = x.pin_memory();
  EXPECT_TRUE(y.is_pinned());
  EXPECT_TRUE(y.is_pinned(kSim0));
  EXPECT_FALSE(y.is_pinned("cuda"));
  EXPECT_FALSE(y.is_alias_of(x));
  EXPECT_EQ(y.device(), Device());
  EXPECT_EQ(y.to_vector<int64_t>(), x.to_vector<int64_t>());
  EXPECT_TRUE(y.pin_memory().is_same(y));
  EXPECT_TRUE(y[0][1].is_pinned());
  const Tensor channels_last = x.contiguous(MemoryFormat::channels_last);
  EXPECT_EQ(channels_last.pin_memory().strides(), channels_last.strides());
  const Tensor strided = x.slice(3, 0, 4, 2);
  EXPECT_EQ(strided.pin_memory().to_vector<int64_t>(), strided.to_vector<int64_t>());
  EXPECT_EQ(zeros({0, 3}).pin_memory().sizes(), (Shape{0, 3}));
}

TEST(PinMemory, of_memory_that_was_pinned_elsewhere) {
  const PinnedBuffer buffer(40, kSim0);
  const Tensor x = from_blob(buffer.data(), {10}, kFloat32);
  EXPECT_TRUE(x.is_pinned());
  EXPECT_TRUE(x.pin_memory().is_same(x));
}

TEST(PinMemory, factories_make_it) {
  EXPECT_TRUE(empty({3}, {.pin_memory = true}).is_pinned());
  EXPECT_TRUE(zeros({2, 3}, {.pin_memory = true}).is_pinned());
  const Tensor x = empty({1, 2, 3, 4}, {.memory_format = MemoryFormat::channels_last, .pin_memory = true});
  EXPECT_TRUE(x.is_pinned());
  EXPECT_EQ(x.strides(), channels_last_strides({1, 2, 3, 4}));
  EXPECT_EQ(testing::error_of([] { empty({3}, {.device = kSim0, .pin_memory = true}); }),
            "E-DEVICE: empty: only dense CPU tensors can be pinned, the device is sim:0\n"
            "  hint: leave out the device or pin_memory");
}

TEST(PinMemory, refuses_what_cannot_be_pinned) {
  EXPECT_EQ(testing::error_of([] { ones({1}, kFloat32, kSim0).pin_memory(); }),
            "E-DEVICE: pin_memory: cannot pin 'sim:0' tensor, only dense CPU tensors can be pinned\n"
            "  hint: pin it before it is moved, or call .cpu() first");
  EXPECT_FALSE(ones({1}, kFloat32, kSim0).is_pinned());
  EXPECT_EQ(testing::error_of([] { ones({1}).pin_memory("cpu"); }),
            "E-DEVICE: pin_memory: memory is pinned for copies to another device, got cpu\n"
            "  hint: leave the device out, or name a sim or cuda device");
  EXPECT_GRADUS_ERROR(ones({1}).pin_memory("sim:100"), "E-DEVICE-ORDINAL", "sim:100");
}

TEST(PinMemory, its_gradient_is_the_input_s) {
  Tensor x = ones({3}).requires_grad_();
  (x.pin_memory() * 2).sum().backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{2, 2, 2}));
}

}  // namespace
}  // namespace gradus
