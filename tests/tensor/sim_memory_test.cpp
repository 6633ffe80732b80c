// What PyTorch's rules for memory say, on tensors of a device of 100 MiB.
#include <gradus/autograd/backward.h>
#include <gradus/ops/factories.h>
#include <gradus/tensor/node.h>
#include <support/expect_error.h>
#include <support/held.h>

#include <string>
#include <vector>

namespace gradus {
namespace {

constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20;
const Device kSim(DeviceType::sim);

class SimMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    empty_cache(kSim);
    ASSERT_EQ(memory_reserved(kSim), 0) << "something from another test is alive";
    reset_peak_memory_stats(kSim);
  }
  static Tensor bytes(int64_t n) { return empty({n}, kUInt8, kSim); }
  static void expect(int64_t allocated, int64_t reserved) {
    EXPECT_EQ(memory_allocated(kSim), allocated);
    EXPECT_EQ(memory_reserved(kSim), reserved);
    EXPECT_EQ(static_cast<int64_t>(mem_get_info(kSim).free), 100 * kMiB - reserved);
    EXPECT_LE(memory_allocated(kSim), memory_reserved(kSim));
    EXPECT_GE(max_memory_allocated(kSim), memory_allocated(kSim));
    EXPECT_GE(max_memory_reserved(kSim), memory_reserved(kSim));
  }
  sim::OptionsGuard options{[](auto& o) { o.memory = 100 * kMiB; }};
};

TEST_F(SimMemory, MEM_01_allocated_and_reserved) {
  {
    const Tensor a = empty({1}, kFloat32, kSim);
    expect(512, 2 * kMiB);
    const Tensor b = empty({1}, kFloat32, kSim);
    expect(1024, 2 * kMiB);
  }
  expect(0, 2 * kMiB);
  empty_cache(kSim);
  expect(0, 0);
  const struct {
    int64_t floats, allocated, reserved;
  } rows[] = {
      {262144, kMiB, 2 * kMiB}, {393216, 3 * kMiB / 2, 20 * kMiB}, {11 * 262144, 11 * kMiB, 12 * kMiB}};
  for (const auto& row : rows) {
    reset_peak_memory_stats(kSim);
    {
      const Tensor t = empty({row.floats}, kFloat32, kSim);
      expect(row.allocated, row.reserved);
    }
    expect(0, row.reserved);
    EXPECT_EQ(max_memory_allocated(kSim), row.allocated);
    reset_peak_memory_stats(kSim);
    EXPECT_EQ(max_memory_allocated(kSim), 0);
    EXPECT_EQ(max_memory_reserved(kSim), row.reserved);
    empty_cache(kSim);
    expect(0, 0);
  }
}

TEST_F(SimMemory, MEM_01_the_summary) {
  const Tensor a = empty({393216}, kFloat32, kSim);
  empty({20 * 262144}, kFloat32, kSim);
  EXPECT_EQ(
      memory_summary(kSim),
      "memory of sim:0: allocated 1.50 MiB (peak 21.50 MiB) in 1 blocks, reserved 40.00 MiB (peak 40.00 "
      "MiB) in 2 segments, largest free block 20.00 MiB");
}

// A forward pass of four layers, each of which keeps its input: 120 MiB at batch 64.
class Net {
 public:
  Tensor forward(int64_t batch) const {
    Tensor h = ones({batch, 120 * kKiB}, kFloat32, kSim);  // 480 KiB a sample
    for (const Tensor& w : weights) h = h * w;
    return h;
  }
  std::vector<Tensor> weights = [] {
    std::vector<Tensor> w;
    for (int layer = 0; layer < 3; ++layer) w.push_back(ones({}, kFloat32, kSim).requires_grad_());
    return w;
  }();
};

TEST_F(SimMemory, MEM_03_memory_after_a_caught_out_of_memory) {
  const Net net;
  const int64_t before = memory_allocated(kSim), nodes = Node::live_count(), ooms = memory_stats(kSim).ooms;
  for (int round = 0; round < 10; ++round) {
    EXPECT_GRADUS_ERROR(net.forward(64), "E-OUT-OF-MEMORY", "Tried to allocate 30.00 MiB");
    EXPECT_EQ(memory_allocated(kSim), before);
    EXPECT_EQ(Node::live_count(), nodes);
    for (const Tensor& w : net.weights) EXPECT_FALSE(w.grad().defined()) << "backward() has not begun";
    EXPECT_EQ(net.forward(32)[31][0].item<float>(), 1.f);
    EXPECT_EQ(memory_allocated(kSim), before);
    EXPECT_LE(memory_reserved(kSim), 100 * kMiB);
  }
  EXPECT_EQ(memory_stats(kSim).ooms - ooms, 10);
}

TEST_F(SimMemory, MEM_05_empty_cache_gives_back_unused_segments_only) {
  Tensor a = bytes(kMiB / 2), b = full({kMiB / 8}, 3.0, {.device = kSim}), c = bytes(30 * kMiB);
  expect(31 * kMiB, 32 * kMiB);
  a = c = {};
  empty_cache(kSim);
  expect(kMiB / 2, 2 * kMiB);
  for (float v : b.to_vector<float>()) ASSERT_EQ(v, 3);
  b = {};
  empty_cache(kSim);
  expect(0, 0);
  empty_cache("sim:1");  // a device that was not used
}

TEST_F(SimMemory, out_of_memory_says_what_there_is) {
  const Tensor a = bytes(60 * kMiB), b = bytes(3 * kMiB / 2);
  EXPECT_EQ(
      testing::error_of([] { bytes(50 * kMiB + 1); }),
      "E-OUT-OF-MEMORY: allocate: sim:0 out of memory. Tried to allocate 50.00 MiB; the device has a "
      "total capacity of 100.00 MiB of which 20.00 MiB is free. 61.50 MiB is allocated by live tensors, "
      "18.50 MiB is reserved but unallocated; the largest free block is 18.50 MiB.\n"
      "  hint: use a smaller batch, checkpoint(), or a smaller dtype, or free tensors that are done");
  EXPECT_GRADUS_ERROR(bytes(101 * kMiB), "E-OUT-OF-MEMORY", "this request alone is larger than the device");
  EXPECT_EQ(ones({3}, kFloat32, kSim).to_vector<float>(), (std::vector<float>{1, 1, 1}))
      << "the device goes on";
}

TEST_F(SimMemory, halving_finds_the_batch_that_fits) {
  const Net net;
  int64_t batch = 256;
  for (;; batch /= 2) {
    try {
      net.forward(batch);
    } catch (const Error& e) {  // the retry belongs outside: here the exception is alive
      EXPECT_EQ(e.code(), "E-OUT-OF-MEMORY");
      continue;
    }
    break;
  }
  EXPECT_EQ(batch, 32);
}

}  // namespace
}  // namespace gradus
