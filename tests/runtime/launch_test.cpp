#include <gradus/runtime/launch.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/expect_error.h"

namespace gradus {
namespace {

struct Args {
  TensorArg x, bias, y;
  TensorListArg more;
  float factor;
  static constexpr auto operands =
      std::tuple{in(&Args::x), in(&Args::bias), out(&Args::y), inout(&Args::more)};
};

struct Scale {
  template <class T>
  static void run(const Args& args, const Stream&) {
    for (int64_t i = 0; i < args.x.numel(); ++i)
      args.y.data<T>()[i] = static_cast<T>(args.x.data<T>()[i] * args.factor);
  }
};

constexpr auto kTable = KernelTable<Args>("scale").host<Scale, dtypes(kFloat32, kInt64)>();

template <class T>
TensorArg arg(std::vector<T>& values, uint64_t id) {
  return {values.data(), id, {static_cast<int64_t>(values.size())}, {1}, dtype_of<T>()};
}

TEST(Launch, runs_the_kernel_of_the_dtype_and_counts_it) {
  std::vector<float> x{1, 2, 3}, y(3);
  std::vector<int64_t> i{1, 2, 3}, j(3);
  const Stats before = stats();
  launch(kTable, kFloat32, Stream{}, Args{arg(x, 1), {}, arg(y, 2), {}, 1.5f});
  launch(kTable, kInt64, Stream{}, Args{arg(i, 3), {}, arg(j, 4), {}, 2});
  EXPECT_EQ(y, (std::vector<float>{1.5f, 3, 4.5f}));
  EXPECT_EQ(j, (std::vector<int64_t>{2, 4, 6}));
  EXPECT_EQ((stats() - before).launches, 2);
}

struct Seen {
  std::string name;
  Stream stream;
  std::vector<uint64_t> storages;
  std::vector<Access> accesses;
};

struct Recorder : runtime::LaunchObserver {
  std::vector<Seen> begun;
  int ended = 0;
  Recorder() { runtime::add_observer(this); }
  ~Recorder() override { runtime::remove_observer(this); }
  void begin(const runtime::LaunchRecord& record) override {
    Seen seen{record.name, record.stream, {}, {}};
    for (int i = 0; i < record.operand_count; ++i) {
      seen.storages.push_back(record.operands[i].tensor->storage_id);
      seen.accesses.push_back(record.operands[i].access);
    }
    begun.push_back(seen);
  }
  void end(const runtime::LaunchRecord&) override { ++ended; }
};

TEST(Launch, an_observer_hears_of_the_end_of_a_launch_that_throws) {
  constexpr auto kThrows = KernelTable<Args>("throws").host(
      dtypes(kFloat32), +[](const Args&, const Stream&) { GRADUS_FAIL("E-TEST", "throws: on purpose"); });
  std::vector<float> x(4), y(4);
  Recorder recorder;
  EXPECT_GRADUS_ERROR(launch(kThrows, kFloat32, Stream(), Args{arg(x, 1), {}, arg(y, 2), {}, 1}), "E-TEST",
                      "on purpose");
  EXPECT_EQ(recorder.begun.size(), 1u);
  EXPECT_EQ(recorder.ended, 1);
}

TEST(Launch, an_observer_receives_every_operand_that_is_present) {
  std::vector<float> x(4), y(4), a(4), b(4);
  Args args{arg(x, 11), {}, arg(y, 12), {}, 1};  // no bias
  args.more.push_back(arg(a, 13));
  args.more.push_back(arg(b, 14));
  const Stream stream = Stream::create({});
  Recorder recorder;
  launch(kTable, kFloat32, stream, args);
  ASSERT_EQ(recorder.begun.size(), 1u);
  const Seen& seen = recorder.begun[0];
  EXPECT_EQ(seen.name, "scale");
  EXPECT_EQ(seen.stream, stream);
  EXPECT_EQ(seen.storages, (std::vector<uint64_t>{11, 12, 13, 14}));
  EXPECT_EQ(seen.accesses,
            (std::vector{Access::read, Access::write, Access::read_write, Access::read_write}));
  EXPECT_EQ(recorder.ended, 1);
}

TEST(Launch, an_observer_that_left_hears_nothing) {
  std::vector<float> x(1), y(1);
  const Args args{arg(x, 1), {}, arg(y, 2), {}, 1};
  Recorder stays;
  {
    Recorder leaves;
    launch(kTable, kFloat32, Stream{}, args);
    EXPECT_EQ(leaves.begun.size(), 1u);
  }
  launch(kTable, kFloat32, Stream{}, args);
  EXPECT_EQ(stays.begun.size(), 2u);
}

struct Wide {
  TensorListArg a, b, c, d;
  TensorArg e;
  static constexpr auto operands =
      std::tuple{inout(&Wide::a), inout(&Wide::b), inout(&Wide::c), in(&Wide::d), in(&Wide::e)};
  static void run(const Wide&, const Stream&) {}
};

TEST(Launch, the_most_operands_there_can_be_fit) {
  std::vector<float> x(1);
  Wide wide;
  for (int i = 0; i < TensorListArg::kCapacity; ++i)
    for (auto list : {&Wide::a, &Wide::b, &Wide::c, &Wide::d}) (wide.*list).push_back(arg(x, 1));
  wide.e = arg(x, 1);
  Recorder recorder;
  launch(KernelTable<Wide>("wide").host(dtypes(kFloat32), &Wide::run), kFloat32, Stream{}, wide);
  EXPECT_EQ(recorder.begun.at(0).storages.size(), 4u * TensorListArg::kCapacity + 1);
}

std::string refusal(DeviceType device, DType dtype) {
  try {
    kTable.get(device, dtype);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-NOT-IMPLEMENTED");
    return e.what();
  }
  return "no error";
}

TEST(KernelTable, refuses_an_empty_slot_and_says_what_there_is) {
  EXPECT_EQ(refusal(DeviceType::cpu, kFloat16),
            "scale: not implemented for float16 on cpu; it has int64, float32\n"
            "  hint: convert the input with .to(dtype)");
  EXPECT_EQ(refusal(DeviceType::cuda, kFloat32),
            "scale: not implemented for float32 on cuda; it has no kernel there\n"
            "  hint: move the input to another device with .to(device)");
}

TEST(KernelTable, a_refused_launch_is_not_counted) {
  std::vector<float> x(1), y(1);
  const Stats before = stats();
  EXPECT_THROW(launch(kTable, kFloat16, Stream{}, Args{arg(x, 1), {}, arg(y, 2), {}, 1}), Error);
  EXPECT_EQ((stats() - before).launches, 0);
}

TEST(KernelTable, a_host_kernel_serves_cpu_and_sim) {
  EXPECT_EQ(kTable.get(DeviceType::cpu, kFloat32), kTable.get(DeviceType::sim, kFloat32));
  EXPECT_NE(kTable.get(DeviceType::cpu, kFloat32), kTable.get(DeviceType::cpu, kInt64));
  EXPECT_EQ(kTable.supported(DeviceType::sim).bits, dtypes(kFloat32, kInt64).bits);
  EXPECT_EQ(kTable.supported(DeviceType::cuda).bits, 0);
}

}  // namespace
}  // namespace gradus
