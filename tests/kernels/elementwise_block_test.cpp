#include <gradus/base/half.h>

#include <kernels/elementwise_block.cuh>
#include <set>

#include "kernels/arithmetic.cuh"
#include "kernels/compare.cuh"
#include "kernels/kernel_testing.h"
#include "kernels/unary.cuh"

namespace gradus::kernels {
namespace {

// Memory with a tensor in it, which begins `start` elements behind an address that is a multiple of 16.
template <class T>
struct Memory {
  std::vector<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>> values;  // no vector<bool>
  TensorArg arg;
  int64_t start;

  Memory(const Shape& sizes, const Shape& strides, int64_t first = 0, uint64_t salt = 0) : start(first) {
    arg.sizes = sizes, arg.strides = strides, arg.dtype = dtype_of<T>(), arg.storage_id = 1;
    const auto n = static_cast<int64_t>(arg.extent() / sizeof(T)) + start + 3;
    for (int64_t i = 0; i < n; ++i) {
      const auto u = PhiloxStream{7, salt}.normal<float>(static_cast<uint64_t>(i));
      values.push_back(static_cast<T>(std::is_integral_v<T> ? std::floor(u * 3 + 60) : u));
    }
    arg.address = values.data() + start;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(values.data()) % 16, 0u);
  }
  // Of the element of an output of `ndim` dimensions that has these indices.
  T& at(const int64_t* index, int ndim) {
    int64_t offset = start;
    for (int d = 0; d < ndim; ++d) offset += index[d] * elementwise::broadcast_stride(arg, d, ndim);
    return reinterpret_cast<T&>(values[static_cast<size_t>(offset)]);
  }
};

Shape dense(const Shape& sizes) { return contiguous_strides(sizes); }

// What one thread after another would make of y: all of its memory, gaps included.
template <class Y, class F, class... X>
auto plain_loop(const F& f, Memory<Y> y, Memory<X>... x) {
  const int ndim = y.arg.dim();
  for (int64_t i = 0; i < y.arg.numel(); ++i) {
    int64_t index[kMaxDims], rest = i;
    for (int d = ndim - 1; d >= 0; rest /= y.arg.sizes[d], --d) index[d] = rest % y.arg.sizes[d];
    y.at(index, ndim) = static_cast<Y>(f(static_cast<ComputeType<X>>(x.at(index, ndim))...));
  }
  return y.values;
}

template <class T>
std::vector<uint64_t> bits_of(const std::vector<T>& values) {
  std::vector<uint64_t> bits;
  for (const T v : values) std::memcpy(&bits.emplace_back(0), &v, sizeof v);
  return bits;
}

template <class Body>
constexpr int kVectorOf = 0;
template <class F, int V, class Y, class... X>
constexpr int kVectorOf<Elementwise<F, V, Y, X...>> = V;

// Runs y = f(x...) on all blocks, compares all of y's memory with plain loops, and returns the vectors'
// sizes.
template <class Y, class F, class... X>
std::set<int> check(const F& f, Memory<Y>& y, Memory<X>&... x) {
  const auto want = plain_loop<Y>(f, y, x...);
  const auto before = y.values;
  std::set<int> vectors;
  on_all_blocks<Elementwise<F, 1, Y, X...>>([&](Runner run) {
    std::copy(before.begin(), before.end(), y.values.begin());
    run_elementwise<Y, X...>(f, y.arg, {&x.arg...}, [&](const auto& body) {
      vectors.insert(kVectorOf<std::remove_cvref_t<decltype(body)>>);
      run(body);
    });
    ASSERT_EQ(bits_of(y.values), bits_of(want));
  });
  return vectors;
}

using Vectors = std::set<int>;

TEST(ElementwiseBlock, AnyNumberOfElements) {
  for (const int64_t n : {0, 1, 3, 4, 31, 33, 64, 1001}) {
    SCOPED_TRACE(n);
    Memory<float> y({n}, {1}), a({n}, {1}, 0, 1), b({n}, {1}, 0, 2);
    EXPECT_EQ(check(Add(), y, a, b), n == 0 ? Vectors{} : Vectors{4});
  }
}

TEST(ElementwiseBlock, NumbersWithoutDimensions) {
  Memory<double> y({}, {}), a({}, {}, 1, 1);
  EXPECT_EQ(check(Neg(), y, a), Vectors{1});  // it begins where no 16 bytes do
}

template <class T>
struct ElementwiseBlockTypes : ::testing::Test {};
using Types = ::testing::Types<uint8_t, int32_t, int64_t, Half, BFloat16, float, double>;
TYPED_TEST_SUITE(ElementwiseBlockTypes, Types);

TYPED_TEST(ElementwiseBlockTypes, VectorsOf16Bytes) {
  using T = TypeParam;
  Memory<T> y({131}, {1}), a({131}, {1}, 0, 1), b({131}, {1}, 0, 2);
  EXPECT_EQ(check(Mul(), y, a, b), Vectors{16 / sizeof(T)});
}

TYPED_TEST(ElementwiseBlockTypes, BoolsOfNumbers) {
  using T = TypeParam;
  Memory<bool> y({67}, {1});
  Memory<T> a({67}, {1}, 0, 1), b({67}, {1}, 0, 2);
  EXPECT_EQ(check(Lt(), y, a, b), Vectors{16 / sizeof(T)});
}

TYPED_TEST(ElementwiseBlockTypes, StartsThatAreNotAligned) {
  using T = TypeParam;
  Memory<T> y({50}, {1}, 1), a({50}, {1}, 0, 1), b({50}, {1}, 0, 2);
  EXPECT_EQ(check(Sub(), y, a, b), Vectors{1});
  Memory<T> aligned({50}, {1}), from_one({50}, {1}, 1, 2);
  EXPECT_EQ(check(Sub(), aligned, a, from_one), Vectors{1});
}

TYPED_TEST(ElementwiseBlockTypes, OneNumberForAll) {
  using T = TypeParam;
  Memory<T> y({50}, {1}), a({50}, {1}, 0, 1), number({}, {}, 1, 2);
  EXPECT_EQ(check(Sub(), y, a, number), Vectors{16 / sizeof(T)});  // wherever the number lies
  EXPECT_EQ(check(Sub(), y, number, a), Vectors{16 / sizeof(T)});
}

TYPED_TEST(ElementwiseBlockTypes, RowsAndColumnsRepeated) {
  using T = TypeParam;
  Memory<T> y({7, 16}, {16, 1}), a({7, 16}, {16, 1}, 0, 1), row({16}, {1}, 0, 2),
      column({7, 1}, {1, 1}, 0, 3);
  EXPECT_EQ(check(Add(), y, a, row), Vectors{16 / sizeof(T)});
  EXPECT_EQ(check(Add(), y, row, column), Vectors{16 / sizeof(T)});
  Memory<T> odd({7, 5}, {5, 1}), row5({5}, {1}, 0, 2);
  EXPECT_EQ(check(Add(), odd, row5, column), Vectors{1});
}

TEST(ElementwiseBlock, RowsOfAWiderMatrix) {
  Memory<float> y({5, 8}, {12, 1}), a({5, 8}, {20, 1}, 4, 1), odd({5, 8}, {21, 1}, 0, 2);
  EXPECT_EQ(check(Neg(), y, a), Vectors{4});
  EXPECT_EQ(check(Neg(), y, odd), Vectors{1});
  Memory<float> whole({5, 8}, {8, 1});
  EXPECT_EQ(check(Neg(), whole, a), Vectors{4});
  Memory<float> short_rows({5, 6}, {8, 1}), b({5, 6}, {8, 1}, 0, 3);  // a vector would reach over their ends
  EXPECT_EQ(check(Neg(), short_rows, b), Vectors{1});
}

TEST(ElementwiseBlock, AnyStrides) {
  Memory<float> y({3, 4, 5}, {20, 5, 1}), transposed({3, 4, 5}, {1, 15, 3}, 0, 1),
      every({3, 4, 5}, {40, 10, 2}, 1, 2);
  EXPECT_EQ(check(Add(), y, transposed, every), Vectors{1});
  EXPECT_EQ(check(Add(), every, y, transposed), Vectors{1});
  EXPECT_EQ(check(Add(), transposed, y, every), Vectors{1});
}

TEST(ElementwiseBlock, EightDimensionsThatDoNotMerge) {
  const Shape sizes{2, 3, 1, 2, 3, 2, 2, 3};
  Shape strides = dense({2, 6, 1, 4, 6, 4, 4, 6});
  Memory<int32_t> y(sizes, dense(sizes)), x(sizes, strides, 0, 1);
  EXPECT_EQ(check(Neg(), y, x), Vectors{1});
}

TEST(ElementwiseBlock, BothOrdersOfAnImage) {  // channels last: dense, in another order
  const Shape sizes{2, 8, 3, 4}, last{96, 1, 32, 8};
  Memory<Half> y(sizes, last), a(sizes, last, 0, 1), bias({8, 1, 1}, {1, 1, 1}, 0, 2),
      first(sizes, dense(sizes), 0, 3);
  EXPECT_EQ(check(Add(), y, a, bias), Vectors{8});
  EXPECT_EQ(check(Add(), y, a, first), Vectors{1});
}

struct Choose {
  float operator()(uint8_t c, float a, float b) const { return c ? a : b; }
};
TEST(ElementwiseBlock, ThreeOperandsOfTwoTypes) {
  Memory<float> y({6, 12}, {12, 1}), a({6, 12}, {12, 1}, 0, 1), b({12}, {1}, 0, 2);
  Memory<uint8_t> mask({6, 1}, {1, 1}, 0, 3), each({6, 12}, {12, 1}, 0, 4);
  EXPECT_EQ(check(Choose(), y, mask, a, b), Vectors{4});
  EXPECT_EQ(check(Choose(), y, each, a, b), Vectors{4});
}

struct Widen {
  double operator()(float x) const { return x; }
};
TEST(ElementwiseBlock, TheWidestTypeSaysHowManyMakeAVector) {
  Memory<double> y({21}, {1});
  Memory<Half> x({21}, {1}, 0, 1);
  EXPECT_EQ(check(Widen(), y, x), Vectors{2});
}

TEST(ElementwiseBlock, InPlace) {
  const Memory<float> before({77}, {1}, 0, 1);
  Memory<float> b({77}, {1}, 0, 2);
  const auto want = plain_loop<float>(Sub(), before, before, b);
  on_all_blocks<Elementwise<Sub, 4, float, float, float>>([&](Runner run) {
    Memory<float> y({77}, {1}, 0, 1);
    run_elementwise<float, float, float>(Sub(), y.arg, {&y.arg, &b.arg}, run);
    EXPECT_EQ(bits_of(y.values), bits_of(want));
  });
}

struct Seven {
  int16_t operator()() const { return 7; }
};
TEST(ElementwiseBlock, AFunctionOfNothing) {
  for (const int64_t step : {1, 3}) {
    std::vector<int16_t> memory(60), want(60);
    TensorArg y;
    y.address = memory.data(), y.sizes = {19}, y.strides = {step};
    for (size_t i = 0; i < 19; ++i) want[i * static_cast<size_t>(step)] = 7;
    on_all_blocks<Elementwise<Seven, 1, int16_t>>([&](Runner run) {
      std::fill(memory.begin(), memory.end(), int16_t{0});
      run_elementwise<int16_t>(Seven(), y, {&y}, run);
      EXPECT_EQ(memory, want);
    });
  }
}

TEST(ElementwiseBlock, TensorsTooLargeFor32BitsGoInParts) {
  Memory<float> y({9, 48}, {48, 1}), a({9, 48}, {48, 1}, 0, 1), row({48}, {1}, 0, 2),
      across({9, 48}, {1, 9}, 0, 3);
  const auto parts = [&](const Memory<float>& b) {
    std::vector<int> vectors;
    run_elementwise<float, float, float>(
        Add(), y.arg, {&a.arg, &b.arg},
        [&](const auto& body) {
          vectors.push_back(kVectorOf<std::remove_cvref_t<decltype(body)>>);
          run_serial(body);
        },
        100);
    EXPECT_EQ(bits_of(y.values), bits_of(plain_loop<float>(Add(), y, a, b)));
    return vectors;
  };
  const auto whole = parts(row);
  EXPECT_GE(whole.size(), 5u);
  EXPECT_EQ(Vectors(whole.begin(), whole.end()), Vectors{4});
  EXPECT_GE(parts(across).size(), 5u);
}

TEST(ElementwiseBlock, GridsAndParametersAsAGpuTakesThem) {
  using Body = Elementwise<Add, 4, float, float, float>;
  elementwise::LoopNest<2> loop;
  loop.ndim = 1;
  loop.strides[0][0] = loop.strides[0][1] = loop.strides[0][2] = 1;
  for (const auto& [n, grid] : {std::pair<int64_t, unsigned>{1, 1},
                                {31, 1},
                                {33, 1},
                                {2048, 1},
                                {2049, 2},
                                {(int64_t{1} << 31) - 1, 1u << 20}}) {
    loop.sizes[0] = n;
    const LaunchShape shape = launch_shape(Body(Add(), loop, {nullptr, nullptr, nullptr}), 256);
    EXPECT_EQ(shape.grid, grid) << n;
    EXPECT_EQ(shape.shared, 0u);
  }
  static_assert(sizeof(Elementwise<Choose, 1, float, uint8_t, float, float>) < 512);
}

}  // namespace
}  // namespace gradus::kernels
