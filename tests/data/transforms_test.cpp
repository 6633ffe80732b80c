#include <gradus/data/dataloader.h>
#include <gradus/data/digits.h>
#include <gradus/data/transforms.h>

#include <cstring>

#include "data/samples.h"
#include "support/expect_error.h"

namespace gradus {
namespace {

using namespace testing;
using namespace transforms;

Tensor bytes(const Shape& sizes) {
  Tensor t = empty(sizes, kUInt8);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<uint8_t>()[i] = static_cast<uint8_t>(i % 256);
  return t;
}

std::vector<float> floats(const Tensor& t) { return {t.data<float>(), t.data<float>() + t.numel()}; }

// Indices 0 … n - 1 of an epoch.
struct Request {
  explicit Request(int64_t n, uint64_t seed = 0, int64_t epoch = 0) : indices(range(n)) {
    request = {indices, seed, epoch, 0};
  }
  operator const BatchRequest&() const { return request; }
  std::vector<int64_t> indices;
  BatchRequest request;
};

TEST(Transforms, to_tensor_and_normalize) {
  const Tensor x = ToTensor()(bytes({2, 2, 2, 32}));
  EXPECT_EQ(x.sizes(), (Shape{2, 2, 2, 32}));
  EXPECT_EQ(floats(x)[51], 51 / 255.0f);
  EXPECT_EQ(floats(x)[255], 1.0f);
  const Tensor y = Normalize({0.5f, 0.25f}, {0.5f, 2})(x);
  EXPECT_EQ(floats(y)[255], (1.0f - 0.25f) / 2) << "second channel";
  EXPECT_EQ(floats(y)[128], (128 / 255.0f - 0.5f) / 0.5f) << "first channel";
  EXPECT_EQ(floats(x)[255], 1.0f) << "the input is left alone";
}

TEST(Transforms, composed_to_tensor_and_normalize_give_the_same_bits_in_one_pass) {
  for (int64_t channels : {1, 3}) {
    const std::vector<float> mean(static_cast<size_t>(channels), 0.2860f),
        std(static_cast<size_t>(channels), 0.3530f);
    const Tensor x = bytes({3, channels, 16, 16});
    const Request request(3);
    const int64_t before = memory_stats().allocation_count;
    const Tensor fused = Compose({ToTensor(), Normalize(mean, std)})(x, request);
    EXPECT_EQ(memory_stats().allocation_count, before + 1);
    const Tensor apart = Normalize(mean, std)(ToTensor()(x));
    EXPECT_EQ(floats(fused), floats(apart));
    EXPECT_EQ(fused.sizes(), x.sizes());
  }
}

TEST(Transforms, wrong_inputs_are_named) {
  EXPECT_GRADUS_ERROR(ToTensor()(empty({1}, kFloat32)), "E-DTYPE",
                      "ToTensor: expected a batch of uint8, got float32");
  EXPECT_GRADUS_ERROR(Normalize({0}, {1})(bytes({1})), "E-DTYPE",
                      "Normalize: expected a batch of float32, got uint8");
  EXPECT_GRADUS_ERROR(Normalize({0, 0}, {1, 1})(empty({1, 3, 2, 2}, kFloat32)), "E-SHAPE",
                      "2 channels of mean and std");
  EXPECT_GRADUS_ERROR(Normalize({0}, {0}), "E-ARG", "must not be 0");
  EXPECT_GRADUS_ERROR(Normalize({0}, {1, 1}), "E-ARG", "1 means, but 2 standard deviations");
  EXPECT_GRADUS_ERROR(RandomHorizontalFlip(1.5), "E-ARG", "between 0 and 1, got 1.5");
  EXPECT_GRADUS_ERROR(RandomHorizontalFlip()(bytes({2, 2}), Request(2)), "E-SHAPE",
                      "expected images [N, C, H, W], got shape [2, 2]");
  EXPECT_GRADUS_ERROR(RandomHorizontalFlip()(bytes({2, 1, 2, 2}), Request(3)), "E-ARG",
                      "2 images, but 3 indices");
  EXPECT_GRADUS_ERROR(RandomCrop(5, 1)(bytes({1, 1, 2, 9}), Request(1)), "E-SHAPE",
                      "does not fit into images of shape [1, 1, 2, 9]");
  EXPECT_GRADUS_ERROR(Compose({ToTensor(), nullptr}), "E-ARG", "step 1 is empty");
}

TEST(Transforms, flip_mirrors_rows) {
  const Tensor x = ToTensor()(bytes({1, 2, 2, 3}));
  EXPECT_EQ(floats(RandomHorizontalFlip(1)(x, Request(1)))[0], floats(x)[2]);
  EXPECT_EQ(floats(RandomHorizontalFlip(1)(x, Request(1)))[4], floats(x)[4]);
  EXPECT_EQ(floats(RandomHorizontalFlip(0)(x, Request(1))), floats(x));
  const Tensor many = bytes({1000, 1, 1, 2});  // image i is {2 i, 2 i + 1}
  const Tensor flipped = RandomHorizontalFlip()(many, Request(1000));
  int count = 0;
  for (int i = 0; i < 1000; ++i) count += flipped.data<uint8_t>()[2 * i] > flipped.data<uint8_t>()[2 * i + 1];
  EXPECT_NEAR(count, 500, 80);  // 5 sigma
}

TEST(Transforms, crop_takes_every_place_within_the_padding) {
  const Tensor x = bytes({500, 1, 2, 2});
  std::memset(x.data<uint8_t>(), 0, 2000);
  for (int i = 0; i < 500; ++i) x.data<uint8_t>()[4 * i] = 1;  // the upper left pixel
  const Tensor y = RandomCrop(2, 1)(x, Request(500));
  EXPECT_EQ(y.sizes(), (Shape{500, 1, 2, 2}));
  std::vector<int> places(5);  // where the pixel went; 4: cut off
  for (int i = 0; i < 500; ++i) {
    int place = 4;
    for (int p = 0; p < 4; ++p)
      if (y.data<uint8_t>()[4 * i + p]) place = p;
    ++places[static_cast<size_t>(place)];
  }
  // Of 9 places of the crop, 4 keep the pixel, each at another corner; 5 cut it off.
  for (int p = 0; p < 4; ++p) EXPECT_NEAR(places[static_cast<size_t>(p)], 500 / 9, 35);
  EXPECT_NEAR(places[4], 5 * 500 / 9, 60);
  EXPECT_EQ(RandomCrop(4, 1)(x, Request(500)).data<uint8_t>()[5], 1)
      << "one place: the image in a frame of zeros";
  EXPECT_EQ(RandomCrop(1)(ToTensor()(x), Request(500)).sizes(), (Shape{500, 1, 1, 1}));
}

TEST(Transforms, random_ones_depend_on_seed_epoch_index_and_place_only) {
  const Tensor x = bytes({64, 1, 4, 4});
  const Transform augment = Compose({RandomHorizontalFlip(), RandomCrop(4, 2), RandomHorizontalFlip()});
  const auto run = [&](uint64_t seed, int64_t epoch) {
    const Tensor y = augment(x, Request(64, seed, epoch));
    return std::vector<uint8_t>(y.data<uint8_t>(), y.data<uint8_t>() + y.numel());
  };
  EXPECT_EQ(run(1, 2), run(1, 2));
  EXPECT_NE(run(1, 2), run(1, 3));
  EXPECT_NE(run(1, 2), run(2, 2));
  // Sample 5 alone is as in its batch.
  const std::vector<int64_t> five{5};
  const Tensor alone = augment(x.narrow(0, 5, 1), {five, 1, 2, 0});
  EXPECT_EQ(std::memcmp(alone.data<uint8_t>(), run(1, 2).data() + 5 * 16, 16), 0);
  // Two flips draw for themselves: together they are not the identity.
  const Tensor twice = Compose({RandomHorizontalFlip(), RandomHorizontalFlip()})(x, Request(64));
  EXPECT_NE(std::memcmp(twice.data<uint8_t>(), x.data<uint8_t>(), 1024), 0);
}

TEST(Transforms, augmented_epochs_do_not_depend_on_the_number_of_workers) {
  const ImageSet set = make_digits(50);
  const auto dataset = std::make_shared<TransformedDataset>(
      std::make_shared<TensorDataset>(set.images, set.labels),
      Compose({RandomCrop(28, 4), RandomHorizontalFlip(), ToTensor(), Normalize({0.5f}, {0.5f})}));
  const auto run = [&](int workers) {
    std::vector<std::vector<float>> epochs;
    DataLoader loader(dataset, {.batch_size = 16, .shuffle = true, .num_workers = workers, .seed = 7});
    for (int epoch = 0; epoch < 2; ++epoch)
      for (auto& [data, target] : loader) epochs.push_back(floats(data));
    return epochs;
  };
  const auto expected = run(0);
  EXPECT_EQ(run(1), expected);
  EXPECT_EQ(run(3), expected);
}

TEST(Transforms, a_transformed_sample_is_that_of_its_batch_in_epoch_0) {
  const ImageSet set = make_digits(4);
  const TransformedDataset dataset(std::make_shared<TensorDataset>(set.images, set.labels),
                                   Compose({RandomHorizontalFlip(), ToTensor()}));
  const Example one = dataset.get(2), all = dataset.get_batch(Request(4));
  EXPECT_EQ(one.data.sizes(), (Shape{1, 28, 28}));
  EXPECT_EQ(std::memcmp(one.data.data<float>(), all.data.data<float>() + 2 * 784, 784 * 4), 0);
  EXPECT_EQ(one.target.data<int64_t>()[0], set.labels.data<int64_t>()[2]);
}

}  // namespace
}  // namespace gradus
