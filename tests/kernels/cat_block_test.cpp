#include <kernels/cat_block.cuh>
#include <numeric>

#include "kernels/indexed.cuh"
#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

// x: sizes and strides of each input, all in one piece of memory from which input i starts at element
// start[i].
template <class T>
struct Inputs {
  std::vector<T> memory = std::vector<T>(6000);
  CatArgs args{};
  Inputs() { std::iota(memory.begin(), memory.end(), T(1)); }
  void add(const Shape& sizes, const Shape& strides, int64_t start) {
    TensorArg x;
    x.sizes = sizes, x.strides = strides;
    x.address = memory.data() + start;
    args.x.push_back(x);
  }
};

// Joins on all blocks; returns how many inputs were left to be copied alone.
template <class T>
int check(Inputs<T>& inputs, const Shape& y_sizes, int dim, int64_t offset, size_t word) {
  CatArgs& args = inputs.args;
  args.dim = dim, args.offset = offset;
  args.y.sizes = y_sizes, args.y.strides = y_sizes;
  args.y.dtype = sizeof(T) == 4 ? DType::float32 : sizeof(T) == 1 ? DType::uint8 : DType::int64;
  int64_t step = 1;
  for (int d = y_sizes.size() - 1; d >= 0; --d) args.y.strides[d] = step, step *= y_sizes[d];
  alignas(16) static T memory[4096];
  std::vector<T> want(static_cast<size_t>(step));
  int64_t at = offset;
  for (int i = 0; i < args.x.count; at += args.x[i].sizes[dim], ++i) {
    for (int64_t e = 0; e < args.x[i].numel(); ++e) {
      TensorArg part = args.y;
      part.sizes = args.x[i].sizes;
      want[static_cast<size_t>(at * args.y.strides[dim] + element_offset(part, e))] =
          args.x[i].template data<T>()[element_offset(args.x[i], e)];
    }
  }
  int alone = 0;
  on_all_blocks<Cat<T>>([&](Runner run) {
    std::fill_n(memory, step, T{});
    args.y.address = memory;
    alone = 0;
    int launches = 0;
    run_cat(
        args,
        [&](const auto& body) {
          ++launches;
          EXPECT_EQ(sizeof(*body.pieces[0].x), word);
          run(body);
        },
        [&](const CopyArgs& copy) {
          ++alone;
          copy::move_elements(copy);
        });
    EXPECT_EQ(launches, alone == args.x.count ? 0 : 1);
    EXPECT_EQ(std::vector<T>(memory, memory + step), want);
  });
  return alone;
}

TEST(CatKernel, RowsOfWordsInOneLaunch) {
  Inputs<float> inputs;
  inputs.add({3, 8}, {8, 1}, 0);
  inputs.add({3, 4}, {12, 1}, 40);
  inputs.add({3, 0}, {0, 1}, 0);
  inputs.add({3, 16}, {16, 1}, 100);
  EXPECT_EQ(check(inputs, {3, 32}, 1, 4, 16), 0);
}
TEST(CatKernel, AnOddInputMakesTheWordsOfAllSmaller) {
  Inputs<float> inputs;
  inputs.add({3, 8}, {8, 1}, 0);
  inputs.add({3, 5}, {5, 1}, 40);
  EXPECT_EQ(check(inputs, {3, 13}, 1, 0, 4), 0);
}
TEST(CatKernel, MoreThanABlockHas) {
  Inputs<uint8_t> inputs;
  inputs.add({1025}, {1}, 1);
  inputs.add({1}, {1}, 7);
  inputs.add({2049}, {1}, 3);
  EXPECT_EQ(check(inputs, {3075}, 0, 0, 1), 0);
}
TEST(CatKernel, WhatIsNotRowsIsCopiedAlone) {
  Inputs<int64_t> inputs;
  inputs.add({2, 3, 4}, {12, 4, 1}, 0);
  inputs.add({2, 3, 4}, {12, 1, 3}, 30);
  EXPECT_EQ(check(inputs, {4, 3, 4}, 0, 0, 16), 1);
  Inputs<int64_t> turned;
  turned.add({2, 2}, {1, 2}, 0);
  EXPECT_EQ(check(turned, {2, 2}, 0, 0, 16), 1);
}

}  // namespace
}  // namespace gradus::kernels
