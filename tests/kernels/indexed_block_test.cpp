#include <cstring>
#include <kernels/dropout_block.cuh>
#include <kernels/random_block.cuh>
#include <kernels/sequence_block.cuh>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

// Tensors whose logical order is not their order in memory, or does not begin where packs do.
struct Layout {
  const char* name;
  Shape sizes, strides;
  int64_t offset;
};
const Layout kLayouts[] = {
    {"row-major", {201}, {1}, 0},
    {"whole packs", {2, 64}, {64, 1}, 0},
    {"not aligned", {5, 13}, {13, 1}, 1},
    {"channels-last, fours", {2, 3, 5, 8}, {120, 1, 24, 3}, 0},
    {"channels-last", {2, 3, 5, 7}, {105, 1, 21, 3}, 0},
    {"columns", {6, 10}, {16, 1}, 3},
    {"one", {}, {}, 0},
};

template <class T>
struct Memory {
  std::vector<T> data = std::vector<T>(300);
  TensorArg arg;
  explicit Memory(const Layout& layout) {
    arg.sizes = layout.sizes, arg.strides = layout.strides;
    arg.address = data.data() + layout.offset;
  }
  // In logical order.
  std::vector<T> values() const {
    std::vector<T> v;
    for (int64_t i = 0; i < arg.numel(); ++i) v.push_back(arg.data<T>()[element_offset(arg, i)]);
    return v;
  }
};

template <class T>
void expect_bits(const std::vector<T>& got, const std::vector<T>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(std::memcmp(&got[i], &want[i], sizeof(T)), 0)
        << "element " << i << ": got " << static_cast<double>(got[i]) << ", want "
        << static_cast<double>(want[i]);
}

// What f makes of zeros (or of x) on all blocks, against want(i) for each logical element i.
template <class T, class F, class Want>
void check(const F& f, const Want& want) {
  for (const Layout& layout : kLayouts) {
    SCOPED_TRACE(layout.name);
    Memory<T> x(layout);
    if constexpr (F::kReads) x.data = random_vector<T>(300);
    x.arg.address = x.data.data() + layout.offset;
    const auto before = x.values();
    std::vector<T> values;
    for (int64_t i = 0; i < x.arg.numel(); ++i)
      values.push_back(want(static_cast<uint64_t>(i), before[static_cast<size_t>(i)]));
    on_all_blocks<IndexedRow<T, F>>([&](Runner run) {
      for (const int64_t limit : {kMaxOffset, int64_t{50}}) {
        if (limit != kMaxOffset && run.block_size != 0) continue;  // threads are slow
        Memory<T> y(layout);
        const auto untouched = y.data;
        run_indexed<T>(f, y.arg, F::kReads ? &x.arg : nullptr, run, limit);
        expect_bits(y.values(), values);
        for (int64_t i = 0; i < y.arg.numel(); ++i) y.arg.template data<T>()[element_offset(y.arg, i)] = T{};
        expect_bits(y.data, untouched);  // nothing beside the tensor was written
      }
    });
    if (::testing::Test::HasFailure()) return;
  }
}

const PhiloxStream kStream{77, (uint64_t{1} << 33) + 5};

template <class T>
struct IndexedKernel : ::testing::Test {};
TYPED_TEST_SUITE(IndexedKernel, FloatingTypes);

TYPED_TEST(IndexedKernel, Uniform) {
  using T = TypeParam;
  using C = ComputeType<T>;
  check<T>(UniformNumbers<T>{kStream, C(-2), C(3)}, [](uint64_t i, T) {
    return static_cast<T>(C(-2) + C(3) * random::cut<T>(kStream.uniform<C>(i)));
  });
}
TYPED_TEST(IndexedKernel, Normal) {
  using T = TypeParam;
  using C = ComputeType<T>;
  check<T>(NormalNumbers<T>{kStream, C(1), C(2)},
           [](uint64_t i, T) { return static_cast<T>(C(1) + C(2) * kStream.normal<C>(i)); });
}
TYPED_TEST(IndexedKernel, Dropout) {
  using T = TypeParam;
  using C = ComputeType<T>;
  for (const double p : {0.3, 1.0}) {
    for (const uint64_t first : {0, 12}) {  // 12: of a part of a batch
      const DropoutArgs args{{}, {}, kStream, p, first};
      check<T>(Drop<T>(args), [p, first](uint64_t i, T x) {
        const bool keep = kStream.uniform<float>(first + i) >= static_cast<float>(p);
        return static_cast<T>(static_cast<C>(x) * (keep ? static_cast<C>(1 / (1 - p)) : C(0)));
      });
    }
  }
}
TYPED_TEST(IndexedKernel, Linspace) {
  using T = TypeParam;
  check<T>(Sequence<double, LinspaceNumbers>{LinspaceNumbers({{}, -1, 5, 201})}, [](uint64_t i, T) {
    const auto k = static_cast<double>(i);
    return static_cast<T>(i <= 100 ? -1 + k * 0.03 : 5 - (200 - k) * 0.03);
  });
}

TEST(IndexedKernels, RandomIntegers) {
  const auto check_type = [](auto zero, int64_t low, uint64_t range) {
    using T = decltype(zero);
    check<T>(RandomInts{kStream, low, range}, [=](uint64_t i, T) {
      return static_cast<T>(low + static_cast<int64_t>(kStream.below(i, range)));
    });
  };
  check_type(uint8_t{}, 3, 200);
  check_type(int32_t{}, -5, 1000000);
  check_type(int64_t{}, INT64_MIN / 2, uint64_t{1} << 63);
  check_type(Half{}, -5, 11);
}

TEST(IndexedKernels, Arange) {
  const ArangeArgs args{{}, 7, -3};
  check<int64_t>(Sequence<int64_t, ArangeNumbers<int64_t>>{ArangeNumbers<int64_t>(args)},
                 [](uint64_t i, int64_t) { return 7 - 3 * static_cast<int64_t>(i); });
  check<float>(Sequence<double, ArangeNumbers<double>>{ArangeNumbers<double>({{}, 0.5, 0.25})},
               [](uint64_t i, float) { return static_cast<float>(0.5 + 0.25 * static_cast<double>(i)); });
}

TEST(DropoutKernel, TheShareDroppedIsP) {
  const std::vector<float> x(20000, 1.0f);
  std::vector<float> y(x.size());
  run_serial(IndexedRow<float, Drop<float>>{y.data(), x.data(), 20000,
                                            Drop<float>(DropoutArgs{{}, {}, {5, 6}, 0.25}), false});
  const auto dropped = std::count(y.begin(), y.end(), 0.0f);
  EXPECT_TRUE(std::abs(dropped - 5000) <= 310) << dropped;  // five standard deviations
}

TEST(DropoutKernel, AtTheEnds) {
  const std::vector<float> x{1, -2, INFINITY, 4};
  std::vector<float> y(4);
  const auto drop = [&](double p) {
    run_serial(IndexedRow<float, Drop<float>>{y.data(), x.data(), 4,
                                              Drop<float>(DropoutArgs{{}, {}, {1, 1}, p}), false});
  };
  drop(0);
  EXPECT_EQ(y, x);
  drop(1);
  EXPECT_EQ(y[0], 0.0f);
  EXPECT_EQ(y[1], 0.0f);
  EXPECT_TRUE(std::isnan(y[2]));  // inf * 0, as in PyTorch
}

}  // namespace
}  // namespace gradus::kernels
