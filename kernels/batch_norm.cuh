// Batch norm: statistics of channels, normalising by them, and the gradients: the host loops of cpu and sim.
#pragma once
#include "kernels/channel_loops.cuh"
#include "kernels/channels.cuh"

namespace gradus {

/// mean and rstd = 1 / sqrt(var + eps) of each channel of x, var with the divisor rows. running_mean and
/// running_var, which may be absent, move towards them: (1 - momentum) old + momentum new, the variance with
/// the divisor rows - 1. All but x: [channels] in the compute type.
struct BatchNormStatisticsArgs {
  TensorArg x, running_mean, running_var, mean, rstd;
  ChannelLayout layout;
  double momentum, eps;
  static constexpr auto operands =
      std::tuple{in(&BatchNormStatisticsArgs::x), inout(&BatchNormStatisticsArgs::running_mean),
                 inout(&BatchNormStatisticsArgs::running_var), out(&BatchNormStatisticsArgs::mean),
                 out(&BatchNormStatisticsArgs::rstd)};
};

/// y = (x - mean) * rstd * weight + bias; weight and bias may be absent.
struct BatchNormArgs {
  TensorArg x, mean, rstd, weight, bias, y;
  ChannelLayout layout;
  static constexpr auto operands =
      std::tuple{in(&BatchNormArgs::x),      in(&BatchNormArgs::mean), in(&BatchNormArgs::rstd),
                 in(&BatchNormArgs::weight), in(&BatchNormArgs::bias), out(&BatchNormArgs::y)};
};

/// The sums over each channel of dy and of dy n, n the normalised x: the gradients of bias and weight.
struct BatchNormSumsArgs {
  TensorArg x, dy, mean, rstd, sum, dot;
  ChannelLayout layout;
  static constexpr auto operands =
      std::tuple{in(&BatchNormSumsArgs::x),    in(&BatchNormSumsArgs::dy),   in(&BatchNormSumsArgs::mean),
                 in(&BatchNormSumsArgs::rstd), out(&BatchNormSumsArgs::sum), out(&BatchNormSumsArgs::dot)};
};

/// dx = rstd * weight * (dy - sum / rows - n dot / rows), where mean and rstd are the batch's.
struct BatchNormBackwardArgs {
  TensorArg x, dy, mean, rstd, weight, sum, dot, dx;
  ChannelLayout layout;
  static constexpr auto operands = std::tuple{
      in(&BatchNormBackwardArgs::x),    in(&BatchNormBackwardArgs::dy),     in(&BatchNormBackwardArgs::mean),
      in(&BatchNormBackwardArgs::rstd), in(&BatchNormBackwardArgs::weight), in(&BatchNormBackwardArgs::sum),
      in(&BatchNormBackwardArgs::dot),  out(&BatchNormBackwardArgs::dx)};
};

/// What becomes of a channel's moments. C: the compute type; the running statistics may be null.
template <class C>
struct BatchNormFinish {
  C *running_mean, *running_var, *mean, *rstd;
  double momentum, eps;

  GRADUS_HD void operator()(int64_t channel, const Moments& m) const {
    mean[channel] = static_cast<C>(m.sum / m.count);
    rstd[channel] = static_cast<C>(math::rsqrt(m.squares / m.count + eps));
    move(running_mean, channel, m.sum / m.count);
    move(running_var, channel, m.squares / (m.count - 1));
  }

 private:
  GRADUS_HD void move(C* running, int64_t channel, double batch) const {
    if (running == nullptr) return;
    running[channel] =
        static_cast<C>((1 - momentum) * static_cast<double>(running[channel]) + momentum * batch);
  }
};

struct BatchNormStatisticsKernel {
  template <class T>
  static void run(const BatchNormStatisticsArgs& a, const Stream&) {
    using C = ComputeType<T>;
    const T* x = a.x.data<T>();
    channels::Partials<Moments> partials(a.layout);
    partials.each([&](const channels::Piece& piece, Moments* moments) {
      C sum[channels::kWidth], mean[channels::kWidth], squares[channels::kWidth];
      channels::sums(piece, sum, [x](int64_t at, int) { return static_cast<C>(x[at]); });
      for (int c = 0; c < piece.width; ++c) mean[c] = sum[c] / static_cast<C>(piece.count());
      channels::sums(piece, squares, [x, &mean](int64_t at, int c) {
        const C apart = static_cast<C>(x[at]) - mean[c];
        return apart * apart;
      });
      for (int c = 0; c < piece.width; ++c)
        moments[c].add({static_cast<double>(piece.count()), static_cast<double>(sum[c]),
                        static_cast<double>(squares[c])});
    });
    const BatchNormFinish<C> finish{channels::optional<C>(a.running_mean),
                                    channels::optional<C>(a.running_var),
                                    a.mean.data<C>(),
                                    a.rstd.data<C>(),
                                    a.momentum,
                                    a.eps};
    partials.finish(finish);
  }
};

struct BatchNormKernel {
  template <class T>
  static void run(const BatchNormArgs& a, const Stream&) {
    using C = ComputeType<T>;
    const T* x = a.x.data<T>();
    T* y = a.y.data<T>();
    const C *mean = a.mean.data<C>(), *weight = channels::optional<C>(a.weight),
            *bias = channels::optional<C>(a.bias);
    const channels::Vectors<C, 2> v(a.layout, [&](int64_t c) {
      const C rstd = a.rstd.data<C>()[c];
      return std::array{weight != nullptr ? rstd * weight[c] : rstd, bias != nullptr ? bias[c] : C{0}};
    });
    const C *scale = v[0], *shift = v[1];
    channels::for_each_run(a.layout, [=](int64_t at, int64_t n, auto channel) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        const int64_t c = channel(i);
        y[at + i] = static_cast<T>((static_cast<C>(x[at + i]) - mean[c]) * scale[c] + shift[c]);
      }
    });
  }
};

struct BatchNormSumsKernel {
  template <class T>
  static void run(const BatchNormSumsArgs& a, const Stream&) {
    using C = ComputeType<T>;
    struct Sums {
      double sum = 0, dot = 0;
      void add(const Sums& other) { sum += other.sum, dot += other.dot; }
    };
    const T *x = a.x.data<T>(), *dy = a.dy.data<T>();
    const C *mean = a.mean.data<C>(), *rstd = a.rstd.data<C>();
    C *sum = a.sum.data<C>(), *dot = a.dot.data<C>();
    channels::Partials<Sums> partials(a.layout);
    partials.each([=](const channels::Piece& piece, Sums* sums) {
      C total[channels::kWidth], along[channels::kWidth];
      channels::sums(piece, total, [=](int64_t at, int) { return static_cast<C>(dy[at]); });
      const C* m = mean + piece.channel;
      channels::sums(piece, along, [=](int64_t at, int c) {
        return static_cast<C>(dy[at]) * (static_cast<C>(x[at]) - m[c]);
      });
      for (int c = 0; c < piece.width; ++c)
        sums[c].add({static_cast<double>(total[c]), static_cast<double>(along[c])});
    });
    partials.finish([=](int64_t c, const Sums& s) {
      sum[c] = static_cast<C>(s.sum);
      dot[c] = static_cast<C>(s.dot * static_cast<double>(rstd[c]));
    });
  }
};

struct BatchNormBackwardKernel {
  template <class T>
  static void run(const BatchNormBackwardArgs& a, const Stream&) {
    using C = ComputeType<T>;
    const T *x = a.x.data<T>(), *dy = a.dy.data<T>();
    T* dx = a.dx.data<T>();
    const C *mean = a.mean.data<C>(), *weight = channels::optional<C>(a.weight);
    const C share = C{1} / static_cast<C>(a.layout.rows);
    const channels::Vectors<C, 3> v(a.layout, [&](int64_t c) {
      const C rstd = a.rstd.data<C>()[c];
      return std::array{weight != nullptr ? rstd * weight[c] : rstd, a.sum.data<C>()[c] * share,
                        a.dot.data<C>()[c] * share * rstd};
    });
    const C *scale = v[0], *level = v[1], *slope = v[2];
    channels::for_each_run(a.layout, [=](int64_t at, int64_t n, auto channel) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        const int64_t c = channel(i);
        const C apart = static_cast<C>(x[at + i]) - mean[c];
        dx[at + i] = static_cast<T>((static_cast<C>(dy[at + i]) - level[c] - apart * slope[c]) * scale[c]);
      }
    });
  }
};

}  // namespace gradus
