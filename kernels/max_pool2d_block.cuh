// 2-D max pooling with the places of the maxima, and its gradient; a thread for each element of the result.
#pragma once
#include <kernels/blocks/launch.cuh>

namespace gradus::kernels {

/// An image batch [n, c, h, w] of any strides (in elements), so channels-last too.
struct Image4d {
  int64_t size[4], stride[4];

  GRADUS_HD int64_t numel() const { return size[0] * size[1] * size[2] * size[3]; }
  GRADUS_HD int64_t plane(int64_t n, int64_t c) const { return n * stride[0] + c * stride[1]; }
  GRADUS_HD int64_t at(int64_t n, int64_t c, int64_t h, int64_t w) const {
    return plane(n, c) + h * stride[2] + w * stride[3];
  }
};

/// Along height and width.
struct PoolWindow {
  int64_t kernel[2], stride[2], padding[2], dilation[2];
};

/// y = the largest element of each window, index = its place h * W + w in the input plane; laid out as `out`
/// says. NaN wins over numbers, the last NaN of a window over the others; of equal numbers the first counts;
/// a window of -inf gives the place of its first element. Padding never takes part.
template <class T>
struct MaxPool2dForward {
  static constexpr const char* kName = "max_pool2d";
  const T* x;
  T* y;
  int64_t* index;
  Image4d in, out;
  PoolWindow window;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(out.numel(), block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    using C = ComputeType<T>;
    const int64_t i = element(block);
    if (i >= out.numel()) return;
    const int64_t ow = i % out.size[3], oh = i / out.size[3] % out.size[2];
    const int64_t c = i / (out.size[3] * out.size[2]) % out.size[1];
    const int64_t n = i / (out.size[3] * out.size[2] * out.size[1]);
    const int64_t h0 = first(oh, 0), h1 = last(oh, 0), w0 = first(ow, 1), w1 = last(ow, 1);
    int64_t best_h = h0, best_w = w0;
    C best = static_cast<C>(x[in.at(n, c, h0, w0)]);
    for (int64_t h = h0; h < h1; h += window.dilation[0]) {
      for (int64_t w = w0; w < w1; w += window.dilation[1]) {
        const C v = static_cast<C>(x[in.at(n, c, h, w)]);
        if (v > best || v != v) best = v, best_h = h, best_w = w;
      }
    }
    y[out.at(n, c, oh, ow)] = static_cast<T>(best);
    index[out.at(n, c, oh, ow)] = best_h * in.size[3] + best_w;
  }

 private:
  // The first place of a window inside the input, and the end of it.
  GRADUS_HD int64_t first(int64_t o, int axis) const {
    const int64_t start = o * window.stride[axis] - window.padding[axis], step = window.dilation[axis];
    return start >= 0 ? start : start + (-start + step - 1) / step * step;
  }
  GRADUS_HD int64_t last(int64_t o, int axis) const {
    const int64_t end = o * window.stride[axis] - window.padding[axis] +
                        (window.kernel[axis] - 1) * window.dilation[axis] + 1;
    return end < in.size[2 + axis] ? end : in.size[2 + axis];
  }
};

/// dx = the sum of the dy of the windows whose maximum lies here, in the windows' order: no atomics, the same
/// every run. dy and index are laid out as `out` says, dx as `in`.
template <class T>
struct MaxPool2dBackward {
  static constexpr const char* kName = "max_pool2d_backward";
  const T* dy;
  const int64_t* index;
  T* dx;
  Image4d in, out;
  PoolWindow window;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(in.numel(), block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    using C = ComputeType<T>;
    const int64_t i = element(block);
    if (i >= in.numel()) return;
    const int64_t w = i % in.size[3], h = i / in.size[3] % in.size[2];
    const int64_t c = i / (in.size[3] * in.size[2]) % in.size[1];
    const int64_t n = i / (in.size[3] * in.size[2] * in.size[1]);
    C sum = 0;
    for (int64_t oh = first(h, 0); oh <= last(h, 0); ++oh) {
      for (int64_t ow = first(w, 1); ow <= last(w, 1); ++ow) {
        const int64_t at = out.at(n, c, oh, ow);
        if (index[at] == h * in.size[3] + w) sum += static_cast<C>(dy[at]);
      }
    }
    dx[in.at(n, c, h, w)] = static_cast<T>(sum);
  }

 private:
  // The windows that may hold place p: from the one that ends there to the one that starts there.
  GRADUS_HD int64_t first(int64_t p, int axis) const {
    const int64_t reach = p + window.padding[axis] - (window.kernel[axis] - 1) * window.dilation[axis];
    return reach <= 0 ? 0 : (reach + window.stride[axis] - 1) / window.stride[axis];
  }
  GRADUS_HD int64_t last(int64_t p, int axis) const {
    const int64_t o = (p + window.padding[axis]) / window.stride[axis];
    return o < out.size[2 + axis] ? o : out.size[2 + axis] - 1;
  }
};

}  // namespace gradus::kernels

GRADUS_KERNEL_FLOATING(gradus::kernels::MaxPool2dForward);
GRADUS_KERNEL_FLOATING(gradus::kernels::MaxPool2dBackward);
