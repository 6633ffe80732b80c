#include <gradus/backends/cpu/conv_loops.h>
#include <gradus/base/parallel.h>

#include <cmath>

// Letters: n image, o output channel, c input channel within the group, i = output row/column, k = row/column
// in window.
namespace gradus::cpu {
namespace {

template <class T>
T& at(const TensorArg& t, int64_t a, int64_t b, int64_t c, int64_t d) {
  return t.data<T>()[a * t.strides[0] + b * t.strides[1] + c * t.strides[2] + d * t.strides[3]];
}

// The input row (or column) that window position k of output i looks at; may lie outside.
int64_t source(const Window& w, int axis, int64_t i, int64_t k) {
  return i * w.stride[axis] - w.padding[axis] + k * w.dilation[axis];
}
// The output i whose window position k looks at input row s, or -1.
int64_t target(const Window& w, int axis, int64_t s, int64_t k, int64_t outputs) {
  const int64_t shifted = s + w.padding[axis] - k * w.dilation[axis];
  if (shifted < 0 || shifted % w.stride[axis] != 0) return -1;
  const int64_t i = shifted / w.stride[axis];
  return i < outputs ? i : -1;
}
bool inside(int64_t i, int64_t size) { return i >= 0 && i < size; }

}  // namespace

template <class T>
void conv_loops(const ConvArgs& p) {
  const Shape &xs = p.x.sizes, &ws = p.w.sizes, &ys = p.y.sizes;
  const int64_t outputs_per_group = ws[0] / p.window.groups;
  parallel_for(0, ys[0] * ys[1], 1, [&](int64_t begin, int64_t end) {
    for (int64_t no = begin; no < end; ++no) {
      const int64_t n = no / ys[1], o = no % ys[1], first = o / outputs_per_group * ws[1];
      for (int64_t i = 0; i < ys[2]; ++i)
        for (int64_t j = 0; j < ys[3]; ++j) {
          T sum = p.bias.present() ? p.bias.data<T>()[o * p.bias.strides[0]] : T(0);
          for (int64_t c = 0; c < ws[1]; ++c)
            for (int64_t k = 0; k < ws[2]; ++k)
              for (int64_t l = 0; l < ws[3]; ++l) {
                const int64_t r = source(p.window, 0, i, k), s = source(p.window, 1, j, l);
                if (inside(r, xs[2]) && inside(s, xs[3]))
                  sum = std::fma(at<T>(p.x, n, first + c, r, s), at<T>(p.w, o, c, k, l), sum);
              }
          at<T>(p.y, n, o, i, j) = sum;
        }
    }
  });
}

template <class T>
void conv_grad_input_loops(const ConvGradInputArgs& p) {
  const Shape &xs = p.gx.sizes, &ws = p.w.sizes, &ys = p.gy.sizes;
  const int64_t outputs_per_group = ws[0] / p.window.groups;
  parallel_for(0, xs[0] * xs[1], 1, [&](int64_t begin, int64_t end) {
    for (int64_t nc = begin; nc < end; ++nc) {
      const int64_t n = nc / xs[1], group = nc % xs[1] / ws[1], c = nc % xs[1] % ws[1];
      for (int64_t r = 0; r < xs[2]; ++r)
        for (int64_t s = 0; s < xs[3]; ++s) {
          T sum = 0;
          for (int64_t q = 0; q < outputs_per_group; ++q)
            for (int64_t k = 0; k < ws[2]; ++k)
              for (int64_t l = 0; l < ws[3]; ++l) {
                const int64_t i = target(p.window, 0, r, k, ys[2]), j = target(p.window, 1, s, l, ys[3]);
                const int64_t o = group * outputs_per_group + q;
                if (i >= 0 && j >= 0) sum = std::fma(at<T>(p.gy, n, o, i, j), at<T>(p.w, o, c, k, l), sum);
              }
          at<T>(p.gx, n, group * ws[1] + c, r, s) = sum;
        }
    }
  });
}

template <class T>
void conv_grad_weight_loops(const ConvGradWeightArgs& p) {
  const Shape &xs = p.x.sizes, &ws = p.gw.sizes, &ys = p.gy.sizes;
  const int64_t outputs_per_group = ws[0] / p.window.groups;
  parallel_for(0, ws[0], 1, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const int64_t first = o / outputs_per_group * ws[1];
      for (int64_t c = 0; c < ws[1]; ++c)
        for (int64_t k = 0; k < ws[2]; ++k)
          for (int64_t l = 0; l < ws[3]; ++l) {
            T sum = 0;
            for (int64_t n = 0; n < ys[0]; ++n)
              for (int64_t i = 0; i < ys[2]; ++i)
                for (int64_t j = 0; j < ys[3]; ++j) {
                  const int64_t r = source(p.window, 0, i, k), s = source(p.window, 1, j, l);
                  if (inside(r, xs[2]) && inside(s, xs[3]))
                    sum = std::fma(at<T>(p.gy, n, o, i, j), at<T>(p.x, n, first + c, r, s), sum);
                }
            at<T>(p.gw, o, c, k, l) = sum;
          }
      if (!p.gbias.present()) continue;
      T sum = 0;
      for (int64_t n = 0; n < ys[0]; ++n)
        for (int64_t i = 0; i < ys[2]; ++i)
          for (int64_t j = 0; j < ys[3]; ++j) sum += at<T>(p.gy, n, o, i, j);
      p.gbias.data<T>()[o * p.gbias.strides[0]] = sum;
    }
  });
}

template void conv_loops<double>(const ConvArgs&);
template void conv_loops<float>(const ConvArgs&);
template void conv_grad_input_loops<double>(const ConvGradInputArgs&);
template void conv_grad_input_loops<float>(const ConvGradInputArgs&);
template void conv_grad_weight_loops<double>(const ConvGradWeightArgs&);
template void conv_grad_weight_loops<float>(const ConvGradWeightArgs&);

}  // namespace gradus::cpu
