#include <algorithm>
#include <kernels/put_block.cuh>
#include <kernels/radix_sort_block.cuh>
#include <numeric>

#include "kernels/blocks/words.cuh"
#include "kernels/kernel_testing.h"
#include "kernels/pick.cuh"

namespace gradus::kernels {
namespace {

struct Fault {
  DeviceFault record;
  FaultSite site() { return {&record, "embedding", &pick::describe}; }
  std::string text() const { return record.written ? record.describe(record.op, record.values) : ""; }
};

TensorArg arg(const Shape& sizes, const Shape& strides) {
  TensorArg t;
  t.sizes = sizes, t.strides = strides;
  return t;
}
template <int N>
Nest<N> nest(const Shape& sizes, const Shape (&strides)[N]) {
  elementwise::LoopNest<N - 1> loop;
  loop.ndim = sizes.size();
  for (int d = 0; d < loop.ndim; ++d) {
    loop.sizes[d] = sizes[d];
    for (int o = 0; o < N; ++o) loop.strides[d][o] = strides[o][d];
  }
  return Nest<N>(loop);
}

TEST(PickKernel, RowsOfATable) {
  const int64_t rows = 6, width = 5;
  const std::vector<int64_t> index{5, 0, -1, 0, 5, 3, -6};
  const auto n = static_cast<int64_t>(index.size());
  const auto table = random_vector(rows * width);
  on_all_blocks<Pick<float>>([&](Runner run) {
    Fault fault;
    std::vector<float> y(index.size() * 5);
    run(Pick<float>{y.data(),
                    table.data(),
                    index.data(),
                    nest<3>({n, width}, {{width, 1}, {0, 1}, {1, 0}}),
                    {rows, width, 0, true, fault.site()}});
    for (int64_t i = 0; i < n * width; ++i) {
      const int64_t row = (index[static_cast<size_t>(i / width)] + rows) % rows;
      ASSERT_EQ(y[static_cast<size_t>(i)], table[static_cast<size_t>(row * width + i % width)]) << i;
    }
    EXPECT_EQ(fault.text(), "");
  });
}

TEST(PickKernel, AnIndexOutOfRangeIsReportedAndReadsNothing) {
  const std::vector<float> table{1, 2};
  for (const int64_t bad : {int64_t{2}, int64_t{-1}, int64_t{1} << 60, INT64_MIN}) {
    const std::vector<int64_t> index{bad};
    Fault fault;
    float y = 7;
    const auto one = nest<3>({1}, {{1}, {1}, {1}});
    const CheckedIndex along{2, 1, 3, false, fault.site()};
    EXPECT_THROW(run_serial(Pick<float>{&y, table.data(), index.data(), one, along}), DeviceTrap);
    EXPECT_EQ(y, 7.0f);
    EXPECT_EQ(fault.text(), str("embedding: index ", bad, " is out of bounds for dimension 3 with size 2"));
  }
}

TEST(PickKernel, TwoIndicesAsOne) {
  const std::vector<int64_t> before{0, 2, 1}, index{3, -1, -4};
  on_all_blocks<LinearIndex>([&](Runner run) {
    Fault fault;
    std::vector<int64_t> y(3), first(3);
    const auto all = nest<3>({3}, {{1}, {1}, {1}});
    const CheckedIndex along{4, 1, 1, true, fault.site()};
    run(LinearIndex{y.data(), before.data(), index.data(), all, along, 4});
    EXPECT_EQ(y, (std::vector<int64_t>{3, 11, 4}));
    run(LinearIndex{first.data(), index.data(), index.data(), all, along, 0});
    EXPECT_EQ(first, (std::vector<int64_t>{3, 3, 0}));
  });
}

TEST(PickKernel, WordsAreAsWideAsAllStridesAllow) {
  alignas(16) char memory[64];
  const auto bytes = [&](int64_t width, int64_t stride, size_t offset, int64_t step) {
    const TensorArg y = arg({3, width}, {width, 1}), x = arg({3, width}, {stride, 1});
    auto loop = elementwise::make_loop<1>(y, {&x});
    const size_t word = widen(loop, 2, memory, memory + offset, &step);
    EXPECT_EQ(loop.sizes[1] * static_cast<int64_t>(word), width * 2);
    EXPECT_EQ(loop.strides[0][1] * static_cast<int64_t>(word), stride * 2);
    return word;
  };
  EXPECT_EQ(bytes(16, 24, 0, 80), 16u);
  EXPECT_EQ(bytes(16, 20, 0, 80), 8u);
  EXPECT_EQ(bytes(12, 24, 0, 80), 8u);
  EXPECT_EQ(bytes(16, 24, 4, 80), 4u);
  EXPECT_EQ(bytes(16, 24, 0, 81), 2u);
  const TensorArg turned = arg({3, 8}, {1, 3});
  auto strided = elementwise::make_loop<1>(arg({3, 8}, {8, 1}), {&turned});
  EXPECT_EQ(widen(strided, 4, memory, memory), 4u);
}

struct SortedKeys {
  std::vector<uint32_t> keys, numbers;
};
SortedKeys sort(Runner run, std::vector<uint32_t> keys, int bits) {
  const auto n = static_cast<int64_t>(keys.size());
  std::vector<uint32_t> numbers(keys.size()), next_keys(keys.size()), next_numbers(keys.size());
  std::iota(numbers.begin(), numbers.end(), 0u);
  const int64_t counters = radix::kDigits * radix::tiles(n);
  for (int shift = 0; shift < bits; shift += radix::kBits) {
    std::vector<uint32_t> counts(static_cast<size_t>(counters));
    run(SortCount{{n, shift}, keys.data(), counts.data()});
    run(SortStarts{counts.data(), counters});
    run(SortMove{
        {n, shift}, keys.data(), numbers.data(), counts.data(), next_keys.data(), next_numbers.data()});
    keys.swap(next_keys), numbers.swap(next_numbers);
  }
  return {keys, numbers};
}

TEST(PickKernel, SortIsStable) {
  for (const int64_t n : {1, 9, 1000, 2048, 4100}) {
    std::vector<uint32_t> keys(static_cast<size_t>(n)), numbers(keys.size());
    std::iota(numbers.begin(), numbers.end(), 0u);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = PhiloxStream{1, 2}.bits(i) >> (i % 3 ? 20 : 28);
    std::stable_sort(numbers.begin(), numbers.end(), [&](auto a, auto b) { return keys[a] < keys[b]; });
    on_all_blocks<SortMove>([&](Runner run) {
      const auto got = sort(run, keys, 12);
      EXPECT_EQ(got.numbers, numbers);
      for (size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(got.keys[i], keys[numbers[i]]);
    });
  }
}

// 50 records of 3 columns into 7 rows, most of them into one.
struct Records {
  std::vector<int64_t> index;
  std::vector<float> values, moved = random_vector(21, 1), added = moved;
  Records() : values(random_vector(150)) {
    for (size_t r = 0; r < 50; ++r) {
      index.push_back(r % 3 == 0 ? static_cast<int64_t>(PhiloxStream{3, 4}.bits(r) % 7) : 4);
      for (size_t c = 0; c < 3; ++c) {
        const size_t to = static_cast<size_t>(index[r]) * 3 + c;
        moved[to] = values[r * 3 + c];
        added[to] += values[r * 3 + c];
      }
    }
  }
  template <class T>
  PutOperands<T> put(std::vector<T>& x, Fault& fault) const {
    return {values.data(),
            x.data(),
            index.data(),
            nest<3>({50}, {{3}, {0}, {1}}),
            nest<3>({3}, {{1}, {1}, {0}}),
            {7, 3, 0, false, fault.site()}};
  }
};

TEST(PickKernel, WalkedPutsKeepTheOrder) {
  const Records all;
  on_all_blocks<PutWalk<float, PutAdd>>([&](Runner run) {
    Fault fault;
    auto moved = random_vector(21, 1), added = moved;
    run(PutWalk<float, PutMove>{all.put(moved, fault)});
    run(PutWalk<float, PutAdd>{all.put(added, fault)});
    EXPECT_EQ(moved, all.moved);
    EXPECT_EQ(added, all.added);
  });
}

TEST(PickKernel, SortedPutsKeepTheOrder) {
  const Records all;
  on_all_blocks<PutRuns<float>>([&](Runner run) {
    Fault fault;
    std::vector<uint32_t> keys(50), numbers(50);
    auto moved = random_vector(21, 1);
    run(PutKeys{all.index.data(),
                nest<4>({50}, {{3}, {0}, {1}, {0}}),
                {7, 3, 0, false, fault.site()},
                keys.data(),
                numbers.data()});
    const auto sorted = sort(run, keys, 3);
    run(PutLast<float>{all.put(moved, fault), sorted.keys.data(), sorted.numbers.data()});
    EXPECT_EQ(moved, all.moved);
    for (const int64_t length : {1, 3, 7, 50, 64}) {
      auto added = random_vector(21, 1);
      std::vector<float> heads(150, NAN), tails(150, NAN);
      const PutChunks<float> chunks{all.put(added, fault), sorted.keys.data(), sorted.numbers.data(), length,
                                    heads.data(),          tails.data()};
      run(PutRuns<float>{chunks});
      run(PutJoin<float>{chunks});
      expect_close(added, std::vector<double>(all.added.begin(), all.added.end()), 1e-5);
    }
  });
}

TEST(PickKernel, RowsThatCannotMeetHaveKeysOfTheirOwn) {
  const std::vector<int64_t> index{2, 0, 2, 1, 1, 1};  // two rows of three
  std::vector<uint32_t> keys(6), numbers(6);
  Fault fault;
  run_serial(PutKeys{index.data(),
                     nest<4>({2, 3}, {{3, 1}, {9, 0}, {3, 1}, {1, 0}}),
                     {5, 1, 1, false, fault.site()},
                     keys.data(),
                     numbers.data()});
  EXPECT_EQ(keys, (std::vector<uint32_t>{2, 0, 2, 6, 6, 6}));
}

TEST(PickKernel, APutOutOfRangeWritesNothing) {
  const std::vector<int64_t> index{3};
  const std::vector<float> values{9};
  std::vector<float> x{1, 2, 3};
  Fault fault;
  const auto one = nest<3>({1}, {{0}, {0}, {0}});
  const CheckedIndex along{3, 1, 0, false, fault.site()};
  const PutOperands<float> put{values.data(), x.data(), index.data(), one, one, along};
  EXPECT_THROW(run_serial(PutWalk<float, PutAdd>{put}), DeviceTrap);
  std::vector<uint32_t> keys(1), numbers(1);
  const auto records = nest<4>({1}, {{0}, {0}, {0}, {0}});
  EXPECT_THROW(run_serial(PutKeys{index.data(), records, along, keys.data(), numbers.data()}), DeviceTrap);
  EXPECT_EQ(x, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(fault.text(), "embedding: index 3 is out of bounds for dimension 0 with size 3");
}

}  // namespace
}  // namespace gradus::kernels
