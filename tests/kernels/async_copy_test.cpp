#include <kernels/blocks/async_copy.cuh>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

struct alignas(16) Four {
  float v[4];
};

TEST(AsyncCopies, WhatIsNotWaitedForIsNaN) {
  const Four from{{1, 2, 3, 4}};
  Four to[3] = {};
  AsyncCopies<SerialBlock> copies;
  copies.copy<16>(&to[0], &from);
  copies.commit();
  copies.copy<4>(&to[1].v[2], &from.v[3]);
  copies.commit();
  copies.copy<16>(&to[2], &from);  // belongs to no group yet
  EXPECT_TRUE(std::isnan(to[0].v[0]) && std::isnan(to[1].v[2]) && std::isnan(to[2].v[3]));
  EXPECT_EQ(to[1].v[1], 0);

  copies.wait<1>();
  EXPECT_EQ(to[0].v[3], 4);
  EXPECT_TRUE(std::isnan(to[1].v[2]));
  copies.wait<0>();
  EXPECT_EQ(to[1].v[2], 4);
  EXPECT_EQ(to[1].v[3], 0);
  EXPECT_TRUE(std::isnan(to[2].v[0]));
  copies.commit();
  copies.wait<0>();
  EXPECT_EQ(to[2].v[0], 1);
}

TEST(AsyncCopies, AddressesMustBeAligned) {
  const Four from{{1, 2, 3, 4}};
  Four to{};
  AsyncCopies<SerialBlock> copies;
  EXPECT_THROW(copies.copy<16>(&to.v[0], &from.v[1]), Error);
  EXPECT_THROW(copies.copy<16>(&to.v[1], &from.v[0]), Error);
  copies.copy<4>(&to.v[1], &from.v[3]);
}

}  // namespace
}  // namespace gradus::kernels
