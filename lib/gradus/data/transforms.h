// Transforms of image batches, as torchvision's of single images.
#pragma once
#include <gradus/data/dataset.h>

#include <functional>
#include <memory>
#include <vector>

namespace gradus {

/// Makes a batch from a batch and leaves its input alone. Works on each sample for itself; a random one draws
/// its numbers from the request (see BatchRequest), so the result does not depend on how samples are batched.
using Transform = std::function<Tensor(const Tensor& batch, const BatchRequest& request)>;

namespace transforms {

/// uint8 0 … 255 of any shape to float32 0 … 1.
struct ToTensor {
  Tensor operator()(const Tensor& batch, const BatchRequest& = {}) const;
};

/// (x - mean) / std of each channel of a float32 batch [N, C, …]. One mean and std serve all channels.
struct Normalize {
  /// Throws E-ARG unless there are equally many of both and no std is 0.
  Normalize(std::vector<float> mean, std::vector<float> std);
  Tensor operator()(const Tensor& batch, const BatchRequest& = {}) const;
  std::vector<float> mean, std;
};

/// Mirrors an image [N, C, H, W] left to right with probability p.
struct RandomHorizontalFlip {
  explicit RandomHorizontalFlip(double p = 0.5);
  Tensor operator()(const Tensor& batch, const BatchRequest& request) const;
  double p;
};

/// Cuts size x size pixels from a random place of an image [N, C, H, W] that got `padding` zeros on each
/// side.
struct RandomCrop {
  /// Throws E-ARG for a size below 1 or a negative padding.
  explicit RandomCrop(int64_t size, int64_t padding = 0);
  /// Throws E-SHAPE if the padded image is smaller than the crop.
  Tensor operator()(const Tensor& batch, const BatchRequest& request) const;
  int64_t size, padding;
};

/// One transform after the other. ToTensor followed by Normalize becomes one pass over the bytes, with the
/// same numbers to the bit: a byte has 256 values, so each is computed once and looked up.
class Compose {
 public:
  explicit Compose(std::vector<Transform> steps);
  Tensor operator()(const Tensor& batch, const BatchRequest& request) const;

 private:
  std::vector<Transform> steps_;
};

}  // namespace transforms

/// A dataset whose data (not its targets) go through a transform.
class TransformedDataset : public Dataset {
 public:
  TransformedDataset(std::shared_ptr<const Dataset> dataset, Transform transform);
  int64_t size() const override { return dataset_->size(); }
  /// The sample as in epoch 0 with seed 0.
  Example get(int64_t index) const override;
  Example get_batch(const BatchRequest& request) const override;

 private:
  std::shared_ptr<const Dataset> dataset_;
  Transform transform_;
};

}  // namespace gradus
