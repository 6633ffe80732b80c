#include <gradus/base/random.h>
#include <gradus/data/transforms.h>
#include <gradus/tensor/views.h>

#include <array>
#include <cstring>
#include <type_traits>

namespace gradus {
namespace transforms {
namespace {

// Keeps augmentation's numbers apart from those of weights and dropout, which use the user's seed as it is.
constexpr uint64_t kStreamTag = 0x61756772616E646F;
constexpr uint64_t kMaxStages = 256;

PhiloxWords random_words(const BatchRequest& request, int64_t i) {
  const PhiloxStream stream{request.seed ^ kStreamTag, static_cast<uint64_t>(request.epoch) * kMaxStages +
                                                           static_cast<uint64_t>(request.stage)};
  return stream.words(static_cast<uint64_t>(request.indices[static_cast<size_t>(i)]));
}

void check_dtype(const Tensor& batch, DType wanted, const char* op) {
  GRADUS_CHECK(batch.dtype() == wanted, "E-DTYPE", op, ": expected a batch of ", to_string(wanted), ", got ",
               to_string(batch.dtype()));
}

void check_images(const Tensor& batch, const BatchRequest& request, const char* op) {
  GRADUS_CHECK(batch.dim() == 4, "E-SHAPE", op, ": expected images [N, C, H, W], got shape ", batch.sizes());
  GRADUS_CHECK(request.indices.size() == static_cast<size_t>(batch.size(0)), "E-ARG", op, ": ", batch.size(0),
               " images, but ", request.indices.size(), " indices");
}

// Calls f(channel, first element, elements) for each plane of a contiguous batch [N, C, …].
template <class F>
void for_each_plane(const Tensor& batch, size_t parameters, const char* op, const F& f) {
  const auto given = static_cast<int64_t>(parameters);
  const int64_t channels = batch.dim() >= 2 ? batch.size(1) : 1;
  GRADUS_CHECK(given == 1 || given == channels, "E-SHAPE", op, ": ", given,
               " channels of mean and std, but a batch of shape ", batch.sizes());
  if (batch.numel() == 0) return;
  if (given == 1) return f(0, int64_t{0}, batch.numel());
  const int64_t planes = batch.size(0) * channels, length = batch.numel() / planes;
  for (int64_t p = 0; p < planes; ++p) f(p % channels, p * length, length);
}

float to_unit(uint8_t byte) { return static_cast<float>(byte) / 255.0f; }

// What ToTensor and Normalize make of each byte.
class NormalizeBytes {
 public:
  explicit NormalizeBytes(const Normalize& n) : tables_(n.mean.size()) {
    for (size_t c = 0; c < tables_.size(); ++c)
      for (size_t b = 0; b < 256; ++b)
        tables_[c][b] = (to_unit(static_cast<uint8_t>(b)) - n.mean[c]) / n.std[c];
  }
  Tensor operator()(const Tensor& batch, const BatchRequest&) const {
    check_dtype(batch, kUInt8, "ToTensor");
    const Tensor in = batch.contiguous(), out = empty(in.sizes(), kFloat32);
    const uint8_t* bytes = in.data<uint8_t>();
    float* values = out.data<float>();
    for_each_plane(in, tables_.size(), "Normalize", [&](int64_t c, int64_t begin, int64_t n) {
      const float* table = tables_[static_cast<size_t>(c)].data();
      for (int64_t i = begin; i < begin + n; ++i) values[i] = table[bytes[i]];
    });
    return out;
  }

 private:
  std::vector<std::array<float, 256>> tables_;
};

template <class T>
void mirror_rows(const T* from, T* to, int64_t rows, int64_t width) {
  for (int64_t r = 0; r < rows; ++r, from += width, to += width)
    for (int64_t x = 0; x < width; ++x) to[x] = from[width - 1 - x];
}

// Moving values does not depend on what they mean: unsigned integers of the same size stand for every dtype.
template <class F>
void visit_width(DType dtype, const F& f) {
  switch (element_size(dtype)) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

}  // namespace

Tensor ToTensor::operator()(const Tensor& batch, const BatchRequest&) const {
  check_dtype(batch, kUInt8, "ToTensor");
  const Tensor in = batch.contiguous(), out = empty(in.sizes(), kFloat32);
  const uint8_t* bytes = in.data<uint8_t>();
  float* values = out.data<float>();
  for (int64_t i = 0; i < in.numel(); ++i) values[i] = to_unit(bytes[i]);
  return out;
}

Normalize::Normalize(std::vector<float> means, std::vector<float> stds)
    : mean(std::move(means)), std(std::move(stds)) {
  GRADUS_CHECK(!mean.empty() && mean.size() == std.size(), "E-ARG", "Normalize: ", mean.size(),
               " means, but ", std.size(), " standard deviations");
  for (float s : std)
    GRADUS_CHECK(s > 0 || s < 0, "E-ARG", "Normalize: a standard deviation must not be 0, got ", s);
}

Tensor Normalize::operator()(const Tensor& batch, const BatchRequest&) const {
  check_dtype(batch, kFloat32, "Normalize");
  const Tensor in = batch.contiguous(), out = empty(in.sizes(), kFloat32);
  const float* from = in.data<float>();
  float* to = out.data<float>();
  for_each_plane(in, mean.size(), "Normalize", [&](int64_t c, int64_t begin, int64_t n) {
    const float m = mean[static_cast<size_t>(c)], s = std[static_cast<size_t>(c)];
    for (int64_t i = begin; i < begin + n; ++i) to[i] = (from[i] - m) / s;
  });
  return out;
}

RandomHorizontalFlip::RandomHorizontalFlip(double probability) : p(probability) {
  GRADUS_CHECK(p >= 0 && p <= 1, "E-ARG", "RandomHorizontalFlip: p must be between 0 and 1, got ", p);
}

Tensor RandomHorizontalFlip::operator()(const Tensor& batch, const BatchRequest& request) const {
  check_images(batch, request, "RandomHorizontalFlip");
  const Tensor in = batch.contiguous(), out = empty(in.sizes(), in.dtype());
  const int64_t rows = in.size(1) * in.size(2), width = in.size(3), image = rows * width;
  visit_width(in.dtype(), [&]<class T>(T) {
    const T* from = static_cast<const T*>(in.raw_data());
    T* to = static_cast<T*>(out.raw_data());
    for (int64_t i = 0; i < in.size(0); ++i, from += image, to += image) {
      if (uniform_from_bits(random_words(request, i).word[0]) < p)
        mirror_rows(from, to, rows, width);
      else
        std::copy(from, from + image, to);
    }
  });
  return out;
}

RandomCrop::RandomCrop(int64_t crop_size, int64_t zeros) : size(crop_size), padding(zeros) {
  GRADUS_CHECK(size >= 1, "E-ARG", "RandomCrop: size must be at least 1, got ", size);
  GRADUS_CHECK(padding >= 0, "E-ARG", "RandomCrop: padding must not be negative, got ", padding);
}

Tensor RandomCrop::operator()(const Tensor& batch, const BatchRequest& request) const {
  check_images(batch, request, "RandomCrop");
  const Tensor in = batch.contiguous();
  const int64_t n = in.size(0), channels = in.size(1), height = in.size(2), width = in.size(3);
  const int64_t free_y = height + 2 * padding - size, free_x = width + 2 * padding - size;
  GRADUS_CHECK(free_y >= 0 && free_x >= 0, "E-SHAPE", "RandomCrop: a crop of ", size, " x ", size,
               " does not fit into images of shape ", in.sizes(), " with padding ", padding);
  Tensor out = empty({n, channels, size, size}, in.dtype());
  if (out.nbytes() > 0) std::memset(out.raw_data(), 0, out.nbytes());
  const auto bytes = static_cast<int64_t>(element_size(in.dtype()));
  const auto* from = static_cast<const char*>(in.raw_data());
  auto* to = static_cast<char*>(out.raw_data());
  for (int64_t i = 0; i < n; ++i) {
    const PhiloxWords random = random_words(request, i);
    const auto pick = [](uint32_t bits, int64_t choices) {
      return static_cast<int64_t>(static_cast<uint64_t>(bits) * static_cast<uint64_t>(choices) >> 32);
    };
    // Of the crop's upper left corner, in pixels of the image: negative within the padding.
    const int64_t top = pick(random.word[0], free_y + 1) - padding,
                  left = pick(random.word[1], free_x + 1) - padding;
    const int64_t x0 = std::max<int64_t>(0, -left), x1 = std::min(size, width - left);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t y = std::max<int64_t>(0, -top); y < std::min(size, height - top) && x0 < x1; ++y) {
        const int64_t source = ((i * channels + c) * height + top + y) * width + left + x0;
        const int64_t target = ((i * channels + c) * size + y) * size + x0;
        std::memcpy(to + target * bytes, from + source * bytes, static_cast<size_t>((x1 - x0) * bytes));
      }
    }
  }
  return out;
}

Compose::Compose(std::vector<Transform> steps) {
  GRADUS_CHECK(steps.size() < kMaxStages, "E-ARG", "Compose: ", steps.size(), " steps, at most ",
               kMaxStages - 1);
  for (Transform& step : steps) {
    GRADUS_CHECK(step, "E-ARG", "Compose: step ", steps_.size(), " is empty");
    const auto* normalize = step.target<Normalize>();
    if (normalize && !steps_.empty() && steps_.back().target<ToTensor>())
      steps_.back() = NormalizeBytes(*normalize);
    else
      steps_.push_back(std::move(step));
  }
}

Tensor Compose::operator()(const Tensor& batch, const BatchRequest& request) const {
  Tensor result = batch;
  BatchRequest with_stage = request;
  for (const Transform& step : steps_) {
    result = step(result, with_stage);
    ++with_stage.stage;
  }
  return result;
}

}  // namespace transforms

TransformedDataset::TransformedDataset(std::shared_ptr<const Dataset> dataset, Transform transform)
    : dataset_(std::move(dataset)), transform_(std::move(transform)) {
  GRADUS_CHECK(dataset_, "E-ARG", "TransformedDataset: the dataset is null");
  GRADUS_CHECK(transform_, "E-ARG", "TransformedDataset: the transform is empty");
}

Example TransformedDataset::get(int64_t index) const {
  BatchRequest request;
  request.indices = {&index, 1};
  const Example batch = get_batch(request);
  return {batch.data[0], batch.target.defined() ? batch.target[0] : Tensor()};
}

Example TransformedDataset::get_batch(const BatchRequest& request) const {
  Example batch = dataset_->get_batch(request);
  batch.data = transform_(batch.data, request);
  return batch;
}

}  // namespace gradus
