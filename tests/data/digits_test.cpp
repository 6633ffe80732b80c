#include <gradus/base/parallel.h>
#include <gradus/data/digits.h>

#include <numeric>

#include "support/expect_error.h"

namespace gradus {
namespace {

// The label of the nearest training image: the simplest learner there is.
int64_t nearest_label(const ImageSet& train, const uint8_t* image) {
  int64_t best = std::numeric_limits<int64_t>::max(), label = -1;
  for (int64_t i = 0; i < train.size(); ++i) {
    const uint8_t* other = train.images.data<uint8_t>() + i * 784;
    int64_t distance = 0;
    for (int p = 0; p < 784; ++p) distance += (image[p] - other[p]) * (image[p] - other[p]);
    if (distance < best) best = distance, label = train.labels.data<int64_t>()[i];
  }
  return label;
}

TEST(Digits, can_be_learned) {
  const ImageData data = make_digit_data(2000, 300);
  int right = 0;
  for (int64_t i = 0; i < 300; ++i)
    right += nearest_label(data.train, data.test.images.data<uint8_t>() + i * 784) ==
             data.test.labels.data<int64_t>()[i];
  EXPECT_GE(right, 285) << "of 300";
  EXPECT_LT(right, 300) << "too easy to tell learners apart";
}

TEST(Digits, image_i_depends_on_seed_and_i_only) {
  const ImageSet few = make_digits(5, 3), many = make_digits(50, 3), other = make_digits(5, 4);
  const auto bytes = [](const ImageSet& set) {
    return std::vector<uint8_t>(set.images.data<uint8_t>(), set.images.data<uint8_t>() + 5 * 784);
  };
  EXPECT_EQ(bytes(few), bytes(many));
  EXPECT_NE(bytes(few), bytes(other));
  const int threads = get_num_threads();
  set_num_threads(1);
  EXPECT_EQ(bytes(make_digits(50, 3)), bytes(many));
  set_num_threads(threads);
}

TEST(Digits, are_the_same_on_every_machine) {
  const ImageSet set = make_digits(100, 0);
  uint64_t hash = 1469598103934665603u;
  for (int64_t i = 0; i < set.images.numel(); ++i)
    hash = (hash ^ set.images.data<uint8_t>()[i]) * 1099511628211u;
  EXPECT_EQ(hash, 3457827076696250255u);
}

TEST(Digits, every_digit_is_there) {
  const ImageSet set = make_digits(1000, 1);
  std::vector<int> counts(10);
  for (int64_t i = 0; i < set.size(); ++i) ++counts[static_cast<size_t>(set.labels.data<int64_t>()[i])];
  for (int count : counts) EXPECT_GE(count, 60);
  for (int64_t i = 0; i < set.size(); ++i) {
    const uint8_t* image = set.images.data<uint8_t>() + i * 784;
    EXPECT_GT(std::accumulate(image, image + 784, 0), 10 * 255) << "enough ink in image " << i;
  }
}

TEST(Digits, sizes) {
  EXPECT_EQ(make_digits(3).images.sizes(), (Shape{3, 1, 28, 28}));
  EXPECT_EQ(make_digits(0).size(), 0);
  EXPECT_GRADUS_ERROR(make_digits(-1), "E-ARG", "must not be negative, got -1");
}

}  // namespace
}  // namespace gradus
