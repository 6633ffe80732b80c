// Loops of cpu and sim over the channels of a tensor. The order of additions depends on the shape only, not
// on the number of threads.
#pragma once
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "kernels/channels.cuh"
#include "kernels/reduce.cuh"

namespace gradus::channels {

inline constexpr int kWidth = 32;          // neighbouring channels that are summed together
inline constexpr int64_t kPiece = 4096;    // elements of a piece: they are read twice, from the cache
inline constexpr int64_t kPart = 32768;    // elements of a part, at least
inline constexpr int64_t kMostParts = 16;  // of a channel: what threads share out
inline constexpr int64_t kGrain = 32768;   // elements a thread should have at least

template <class C>
C* optional(const TensorArg& arg) {
  return arg.present() ? arg.data<C>() : nullptr;
}

/// Elements of `width` channels from `channel` on: `lines` of `length` a channel, `step` apart, the first at
/// `at`. Either width or length is 1.
struct Piece {
  int64_t at, lines, step, length, channel;
  int width;
  int64_t count() const { return lines * length; }
};

// out[c] = the sum of v(place, first + c) over n lines of W neighbouring channels.
template <int W, class C, class V>
void column_sums(const Piece& p, int first, C* out, const V& v) {
  C lane[W] = {};
  for (int64_t r = 0; r < p.lines; ++r) {
    const int64_t at = p.at + r * p.step + first;
#pragma omp simd
    for (int c = 0; c < W; ++c) lane[c] += v(at + c, first + c);
  }
  for (int c = 0; c < W; ++c) out[first + c] = lane[c];
}

/// out[c] = the sum of v(place, c) over the elements of the piece's c-th channel.
template <class C, class V>
void sums(const Piece& p, C* out, const V& v) {
  if (p.length > 1) {
    C total = 0;
    for (int64_t r = 0; r < p.lines; ++r) {
      const int64_t at = p.at + r * p.step;
      total += reduction::fold<reduction::kLanes, reduction::Add>(p.length, C{0},
                                                                  [&](int64_t i) { return v(at + i, 0); });
    }
    out[0] = total;
    return;
  }
  int c = 0;
  for (; c + 32 <= p.width; c += 32) column_sums<32>(p, c, out, v);
  for (; c + 8 <= p.width; c += 8) column_sums<8>(p, c, out, v);
  for (; c < p.width; ++c) column_sums<1>(p, c, out, v);
}

/// Sums over channels, made in parts: P{} is a sum of nothing, and P::add(const P&) takes another one in.
template <class P>
class Partials {
 public:
  explicit Partials(const ChannelLayout& layout)
      : layout_(layout),
        length_(layout.last ? 1 : layout.inner),
        lines_(layout.rows / length_),
        width_(layout.last ? kWidth : 1),
        tiles_((layout.channels + width_ - 1) / width_),
        parts_(std::max<int64_t>(1, std::min({layout.rows * width_ / kPart, kMostParts, lines_}))),
        sums_(static_cast<size_t>(parts_ * layout.channels)) {}

  /// add(piece, the piece's sums) for each piece, those of a part one after another.
  template <class Add>
  void each(const Add& add) {
    const int64_t elements = std::max<int64_t>(1, layout_.rows * width_ / parts_);
    parallel_for(0, tiles_ * parts_, std::max<int64_t>(1, kGrain / elements),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t task = begin; task < end; ++task) part(task / parts_, task % parts_, add);
                 });
  }

  /// finish(channel, its sum) for each channel.
  template <class Finish>
  void finish(const Finish& finish) const {
    for (int64_t c = 0; c < layout_.channels; ++c) {
      P total = sums_[static_cast<size_t>(c)];
      for (int64_t p = 1; p < parts_; ++p) total.add(sums_[static_cast<size_t>(p * layout_.channels + c)]);
      finish(c, total);
    }
  }

 private:
  template <class Add>
  void part(int64_t tile, int64_t part, const Add& add) {
    const int64_t channel = tile * width_, end = lines_ * (part + 1) / parts_;
    const int width = static_cast<int>(std::min(width_, layout_.channels - channel));
    const int64_t step = layout_.last ? layout_.channels : layout_.channels * layout_.inner;
    const int64_t most = std::max<int64_t>(1, kPiece / (length_ * width_));
    for (int64_t line = lines_ * part / parts_; line < end; line += most) {
      add(Piece{layout_.at(line * length_, channel), std::min(most, end - line), step, length_, channel,
                width},
          &sums_[static_cast<size_t>(part * layout_.channels + channel)]);
    }
  }

  ChannelLayout layout_;
  int64_t length_, lines_, width_, tiles_, parts_;
  std::vector<P> sums_;  // [parts, channels]
};

/// N numbers a channel, computed once: vector k of them is (*this)[k].
template <class C, size_t N>
class Vectors {
 public:
  template <class Make>
  Vectors(const ChannelLayout& layout, const Make& make)
      : channels_(layout.channels), values_(new C[N * static_cast<size_t>(layout.channels)]) {
    for (int64_t c = 0; c < channels_; ++c) {
      const std::array<C, N> of = make(c);
      for (size_t k = 0; k < N; ++k)
        values_[k * static_cast<size_t>(channels_) + static_cast<size_t>(c)] = of[k];
    }
  }
  const C* operator[](size_t k) const { return values_.get() + k * static_cast<size_t>(channels_); }

 private:
  int64_t channels_;
  std::unique_ptr<C[]> values_;
};

/// run(at, n, channel) for the pieces of memory that the tensor consists of: n neighbours from `at`, the i-th
/// of which belongs to channel(i).
template <class Run>
void for_each_run(const ChannelLayout& layout, const Run& run) {
  const int64_t n = layout.last ? layout.channels : layout.inner;
  const int64_t runs = n == 0 ? 0 : layout.rows * layout.channels / n;
  parallel_for(0, runs, std::max<int64_t>(1, kGrain / std::max<int64_t>(n, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) {
                   if (layout.last) {
                     run(r * n, n, [](int64_t i) { return i; });
                   } else {
                     run(r * n, n, [c = r % layout.channels](int64_t) { return c; });
                   }
                 }
               });
}

}  // namespace gradus::channels
