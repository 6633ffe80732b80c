#include <kernels/extremum.cuh>
#include <kernels/reduce_block.cuh>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

// A tensor of `sizes` that lies in memory in the order of dimensions `order`, outermost first, and what it is
// reduced to: size 1 in the dimensions of the bit set `over`.
struct Case {
  Shape sizes, order;
  unsigned over;

  TensorArg x() const {
    TensorArg arg;
    arg.sizes = arg.strides = sizes;
    int64_t stride = 1;
    for (int k = sizes.size() - 1; k >= 0; --k)
      arg.strides[static_cast<int>(order[k])] = stride, stride *= sizes[static_cast<int>(order[k])];
    return arg;
  }
  TensorArg y() const {
    TensorArg arg;
    arg.sizes = sizes;
    for (int d = 0; d < sizes.size(); ++d)
      if (over >> d & 1) arg.sizes[d] = 1;
    arg.strides = contiguous_strides(arg.sizes);
    return arg;
  }
  int64_t outputs() const { return y().numel(); }
  int64_t count() const { return outputs() == 0 ? 0 : sizes.numel() / outputs(); }

  /// Calls f(where an element lies in x, where its output lies in y), for each.
  template <class F>
  void each(const F& f) const {
    const TensorArg from = x(), to = y();
    for (int64_t i = 0; i < sizes.numel(); ++i) {
      int64_t rest = i, at = 0, y_at = 0;
      for (int d = sizes.size() - 1; d >= 0; rest /= sizes[d], --d) {
        at += rest % sizes[d] * from.strides[d];
        if (to.sizes[d] != 1) y_at += rest % sizes[d] * to.strides[d];
      }
      f(static_cast<size_t>(at), static_cast<size_t>(y_at));
    }
  }
};

// NCHW to C, the same channels-last, rows, columns, all, short and middling rows, odd orders, packs that fit
// and that do not, one element, and no reduction at all.
const Case kCases[] = {
    {{3, 4, 5, 4}, {0, 1, 2, 3}, 0b1101},
    {{3, 8, 5, 4}, {0, 2, 3, 1}, 0b1101},
    {{5, 67}, {0, 1}, 0b10},
    {{70, 9}, {0, 1}, 0b01},
    {{70, 72}, {0, 1}, 0b01},
    {{3, 32}, {0, 1}, 0b10},
    {{3, 7, 41}, {0, 1, 2}, 0b111},
    {{1039}, {0}, 0b1},
    {{2, 3, 4, 5}, {3, 1, 0, 2}, 0b0110},
    {{6, 5, 8}, {2, 0, 1}, 0b101},
    {{40, 3}, {0, 1}, 0b10},
    {{2, 600}, {0, 1}, 0b10},
    {{1, 1}, {0, 1}, 0b11},
    {{4, 3}, {1, 0}, 0b00},
};

// What cuda::reduce() launches, with the parts cut as for blocks that are never enough.
template <int V, class T, class Op>
void launch_reduce(Runner run, const Case& c, const T* x, const Op& op, int64_t parts) {
  using Total = typename Op::Total;
  const reduction::Nest nest = reduction::make_nest(c.x(), c.y());
  ReduceShape shape = reduce_plan::shape_of(nest, V, 64);
  if (shape.vertical && parts > 1) shape.width = 64;
  if ((shape.vertical || shape.teams.lanes == 0) && shape.length >= parts) {
    shape.part_length = (shape.length + parts - 1) / parts;
    shape.parts = (shape.length + shape.part_length - 1) / shape.part_length;
  }
  std::vector<Total> totals(static_cast<size_t>(c.outputs() * shape.parts));
  run(ReduceElements<Op, T, V>{x, op, totals.data(), shape});
  if (shape.parts == 1) return;
  const LoopDims kept = reduce_plan::dims_of(nest.kept, nest.kept_count, 1);
  for (const int lanes : {0, 32})
    run(ReduceParts<Op>{totals.data(), op, kept, c.outputs(), shape.parts, {lanes}});
}
template <class T, class Op>
void launch_reduce(Runner run, const Case& c, const T* x, const Op& op, int64_t parts) {
  constexpr int kPack = kPackSize<T>;
  if (reduce_plan::packs(reduction::make_nest(c.x(), c.y()), x, kPack))
    return launch_reduce<kPack>(run, c, x, op, parts);
  launch_reduce<1>(run, c, x, op, parts);
}

// The result of `fold`, which goes on from a number by an element, in double.
template <class T, class F>
std::vector<double> reference(const Case& c, const std::vector<T>& x, double first, F fold) {
  std::vector<double> y(static_cast<size_t>(c.outputs()), first);
  c.each([&](size_t at, size_t to) { y[to] = fold(y[to], static_cast<double>(x[at])); });
  return y;
}

template <class F, class T, class Y = T>
void check(const Case& c, const std::vector<T>& x, const std::vector<double>& want, double tolerance) {
  for (const int64_t parts : {1, 3}) {
    on_all_blocks<ReduceElements<FoldInto<F, T, Y>, T, 1>>([&](Runner run) {
      std::vector<Y> y(want.size());
      launch_reduce(run, c, x.data(), FoldInto<F, T, Y>{y.data(), c.count()}, parts);
      expect_close(y, want, tolerance);
    });
  }
}

template <class T>
struct ReduceBody : ::testing::Test {};
TYPED_TEST_SUITE(ReduceBody, FloatingTypes);

TEST(ReduceBodyLayouts, AnyDimensions) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(str(c.sizes, " over ", c.over));
    const auto x = random_vector(c.sizes.numel());
    check<reduction::Add>(c, x, reference(c, x, 0, [](double a, double b) { return a + b; }),
                          8 * tolerance_of<float>());
  }
}

TYPED_TEST(ReduceBody, SumAndMaxOfRowsAndColumns) {
  using T = TypeParam;
  for (const Case& c : {kCases[1], kCases[7]}) {
    const auto x = random_vector<T>(c.sizes.numel());
    check<reduction::Add>(c, x, reference(c, x, 0, [](double a, double b) { return a + b; }),
                          8 * tolerance_of<T>());
    check<reduction::Max>(c, x,
                          reference(c, x, -INFINITY, [](double a, double b) { return std::fmax(a, b); }), 0);
  }
}

TYPED_TEST(ReduceBody, MeanMinNormAndProduct) {
  using T = TypeParam;
  for (const Case& c : {kCases[5], kCases[10]}) {
    const auto x = random_vector<T>(c.sizes.numel());
    const auto count = static_cast<double>(c.count());
    check<reduction::Mean>(c, x, reference(c, x, 0, [&](double a, double b) { return a + b / count; }),
                           tolerance_of<T>());
    check<reduction::Min>(c, x, reference(c, x, INFINITY, [](double a, double b) { return std::fmin(a, b); }),
                          0);
    auto norm = reference(c, x, 0, [](double a, double b) { return std::sqrt(a * a + b * b); });
    check<reduction::Euclidean>(c, x, norm, 4 * tolerance_of<T>());
  }
  const Case kFactors{{2, 3, 4, 5}, {3, 1, 0, 2}, 0b0110};
  const auto factors = random_vector<T>(kFactors.sizes.numel());
  check<reduction::Multiply>(kFactors, factors,
                             reference(kFactors, factors, 1, [](double a, double b) { return a * b; }),
                             8 * tolerance_of<T>());
}

TEST(ReduceBodyEdges, NoElements) {
  const Case c{{2, 0}, {0, 1}, 0b10};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  check<reduction::Add, float>(c, {}, {0, 0}, 0);
  check<reduction::Mean, float>(c, {}, {nan, nan}, 0);
  check<reduction::Multiply, float>(c, {}, {1, 1}, 0);
  check<reduction::Min, uint8_t>(c, {}, {255, 255}, 0);
}

TEST(ReduceBodyEdges, IntegersAreExact) {
  const std::vector<int64_t> x{16777217, 0, 1, int64_t{1} << 53, 1, 1};
  const std::vector<uint8_t> flags{1, 0, 1, 1, 1, 1};
  const Case c{{2, 3}, {0, 1}, 0b10};
  on_all_blocks<ReduceElements<FoldInto<reduction::Add, int64_t, int64_t>, int64_t, 1>>([&](Runner run) {
    std::vector<int64_t> y(2);
    launch_reduce<1>(run, c, x.data(), FoldInto<reduction::Add, int64_t, int64_t>{y.data(), 1}, 1);
    EXPECT_EQ(y, (std::vector<int64_t>{16777218, (int64_t{1} << 53) + 2}));
    launch_reduce<1>(run, c, reinterpret_cast<const bool*>(flags.data()),
                     FoldInto<reduction::Add, bool, int64_t>{y.data(), 1}, 1);
    EXPECT_EQ(y, (std::vector<int64_t>{2, 3}));
  });
}

TEST(ReduceBodyEdges, HalfSumsInFloat) {  // 2048 + 1 is 2048 in float16
  check<reduction::Add>({{4096}, {0}, 1}, std::vector<Half>(4096, Half(1.0f)), {4096}, 0);
}

TEST(ReduceBodyEdges, NaNPropagates) {
  std::vector<float> x(70, 1.0f);
  const double nan = x[66] = std::numeric_limits<float>::quiet_NaN();
  check<reduction::Max>({{70}, {0}, 1}, x, {nan}, 0);
  check<reduction::Min>({{2, 35}, {0, 1}, 0b10}, x, {1, nan}, 0);
}

TEST(ReduceBodyEdges, AnAddressThatFitsNoPack) {
  const std::vector<float> x = random_vector(65);
  const reduction::Nest nest = reduction::make_nest(Case{{64}, {0}, 1}.x(), Case{{64}, {0}, 1}.y());
  const auto* aligned = reinterpret_cast<const float*>(uintptr_t{4096});
  EXPECT_TRUE(reduce_plan::packs(nest, aligned, 4));
  EXPECT_FALSE(reduce_plan::packs(nest, aligned + 1, 4));
}

template <class T, class Op>
void check_find(const Case& c, const std::vector<T>& x, const std::vector<int64_t>& want) {
  for (const int64_t parts : {1, 3}) {
    on_all_blocks<ReduceElements<FindInto<Op, T>, T, 1>>([&](Runner run) {
      std::vector<int64_t> index(want.size());
      std::vector<T> value(want.size());
      launch_reduce<1>(run, c, x.data(), FindInto<Op, T>{value.data(), index.data()}, parts);
      EXPECT_EQ(index, want);
      launch_reduce<1>(run, c, x.data(), FindInto<Op, T>{nullptr, index.data()}, parts);
      EXPECT_EQ(index, want);
      std::vector<double> stands(want.size());  // where the index says
      int64_t seen = 0;
      c.each([&](size_t at, size_t to) {
        const int64_t along = seen++ / (c.over == 0b10 ? 1 : c.sizes[1]) % c.count();
        if (along == want[to]) stands[to] = static_cast<double>(x[at]);
      });
      expect_close(value, stands, 0);
    });
  }
}

TYPED_TEST(ReduceBody, FindsTheFirstOfTheLargest) {
  using T = TypeParam;
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = INFINITY;
  std::vector<T> x;
  for (const float v :
       {3.0f, 7.0f, 7.0f, 1.0f, 1.0f, -inf, -inf, -inf, -inf, -inf, 1.0f, nan, 9.0f, nan, inf})
    x.push_back(static_cast<T>(v));
  check_find<T, ArgMax>({{3, 5}, {0, 1}, 0b10}, x, {1, 0, 1});
  check_find<T, ArgMin>({{3, 5}, {0, 1}, 0b10}, x, {3, 0, 1});
  check_find<T, ArgMax>({{3, 5}, {0, 1}, 0b01}, x, {0, 2, 2, 2, 2});
}

TEST(ReducePlan, CutsFewOutputsAndLeavesMany) {
  auto plan = [](const Case& c) { return reduce_plan::shape_of(reduction::make_nest(c.x(), c.y()), 1, 256); };
  const ReduceShape all = plan({{1 << 26}, {0}, 1});
  EXPECT_EQ(all.parts, reduce_plan::kBlocks);
  EXPECT_EQ(all.parts * all.part_length, 1 << 26);
  EXPECT_EQ(plan({{1 << 20, 10}, {0, 1}, 0b10}).parts, 1);         // a million short rows,
  EXPECT_EQ(plan({{1 << 20, 10}, {0, 1}, 0b10}).teams.lanes, 16);  // 16 lanes for each
  const ReduceShape columns = plan({{1 << 20, 10}, {0, 1}, 0b01});
  EXPECT_TRUE(columns.vertical);
  EXPECT_EQ(columns.width, 16);
  EXPECT_EQ(columns.parts, reduce_plan::kBlocks);
  EXPECT_EQ(plan({{16, 1 << 22}, {0, 1}, 0b01}).width, 256);  // a thread for each of many short columns
  EXPECT_EQ(plan({{int64_t{1} << 33}, {0}, 1}).part_length, 1 << 22);
}

}  // namespace
}  // namespace gradus::kernels
