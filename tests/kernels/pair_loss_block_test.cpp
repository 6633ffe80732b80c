#include <kernels/pair_loss_block.cuh>
#include <kernels/reduce_block.cuh>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

template <class T>
struct PairLossBody : ::testing::Test {};
TYPED_TEST_SUITE(PairLossBody, FloatingTypes);

struct Alignment {
  int64_t offset;
  bool packed;
};

// 65 elements from an address that fits packs, and from one that does not.
template <class T, class Test>
void with_operands(const Test& test) {
  alignas(16) T x[67], t[67], dy[67];
  for (size_t i = 0; i < 67; ++i) {
    x[i] = random_vector<T>(67)[i], t[i] = random_vector<T>(67, 1)[i], dy[i] = random_vector<T>(67, 2)[i];
  }
  for (const Alignment& a : {Alignment{0, true}, Alignment{1, false}})
    test(x + a.offset, t + a.offset, dy + a.offset, a.packed);
}

TYPED_TEST(PairLossBody, ValuesAndTheirSum) {
  using T = TypeParam;
  using C = ComputeType<T>;
  with_operands<T>([](const T* x, const T* t, const T*, bool packed) {
    std::vector<double> want(65);
    double total = 0;
    for (size_t i = 0; i < 65; ++i) {
      const double d = static_cast<double>(x[i]) - static_cast<double>(t[i]);
      total += want[i] = std::fabs(d) <= 0.5 ? d * d / 2 : 0.5 * (std::fabs(d) - 0.25);
    }
    on_all_blocks<PairLossForward<losses::Huber, T>>([&](Runner run) {
      alignas(16) T y[65];
      run(PairLossForward<losses::Huber, T>{x, t, y, nullptr, 65, 16, static_cast<C>(0.5), false});
      expect_close(std::vector<T>(y, y + 65), want, tolerance_of<T>());
      std::vector<C> sums(3);
      run(PairLossForward<losses::Huber, T>{x, t, nullptr, sums.data(), 65, 32, static_cast<C>(0.5), packed});
      expect_close(std::vector<C>{sums[0] + sums[1] + sums[2]}, {total}, 8 * tolerance_of<C>());
    });
  });
}

TYPED_TEST(PairLossBody, Slopes) {
  using T = TypeParam;
  using C = ComputeType<T>;
  with_operands<T>([](const T* x, const T* t, const T* dy, bool packed) {
    std::vector<double> one(65), each(65);
    for (size_t i = 0; i < 65; ++i) {
      const double d = static_cast<double>(x[i]) - static_cast<double>(t[i]);
      one[i] = 2 * d * static_cast<double>(dy[0]) / 4;
      each[i] = 2 * d * static_cast<double>(dy[i]);
    }
    on_all_blocks<PairLossBackward<losses::Squared, T>>([&](Runner run) {
      alignas(16) T dx[65];
      PairLossBackward<losses::Squared, T> body{x, t, dy, dx, 65, 32, C{0}, C{4}, false, packed};
      run(body);
      expect_close(std::vector<T>(dx, dx + 65), one, 2 * tolerance_of<T>());
      body.each = true;
      run(body);
      expect_close(std::vector<T>(dx, dx + 65), each, 2 * tolerance_of<T>());
    });
  });
}

}  // namespace
}  // namespace gradus::kernels
