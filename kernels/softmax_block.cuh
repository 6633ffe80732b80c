// softmax and log_softmax over one dimension, and their gradients. A row is read once: its threads keep it in
// registers, unless it is very long.
#pragma once
#include <gradus/base/math.h>

#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/reduce.cuh>
#include <kernels/blocks/rows.cuh>
#include <kernels/blocks/teams.cuh>

namespace gradus::kernels {

/// y = exp(x - m) / s, or with Log y = x - m - log(s); m the row's maximum, s the sum of exp(x - m).
/// A row of -inf only, or with a NaN or +inf, gives NaN, as in PyTorch.
template <class T, bool Log>
struct SoftmaxForwardBody {
  static constexpr const char* kName = Log ? "log_softmax" : "softmax";
  using C = ComputeType<T>;
  const T* x;
  T* y;
  Rows rows;
  Teams teams;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int block_size) const { return teams.groups(rows.count, block_size); }
  size_t shared_bytes(int block_size) const { return shared_size<C>(teams.slots(block_size)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    C* scratch = block.template shared<C>(teams.slots(block.size()));
    const TeamMember team = teams.member(block, block.group_index());
    const Row row = rows.row(team.row);
    const auto load = [&](int64_t i) { return static_cast<C>(x[row.at(i)]); };
    with_elements<C>(team, rows.length, team.row < rows.count, load, [&](auto& elements, auto held) {
      C m = -std::numeric_limits<C>::infinity();
      elements.each([&](int64_t, C& v) { m = Max{}(v, m); });
      m = team.reduce(block, m, Max{}, scratch);
      C s = 0;
      elements.each([&](int64_t, C& v) {
        v -= m;
        const C e = math::exp(v);
        s += e;
        if (!Log) v = e;
      });
      s = team.reduce(block, s, Sum{}, scratch);
      const C scale = Log ? math::log(s) : 1 / s;
      elements.each([&](int64_t i, C& v) {
        if (!held) v = Log ? v - m : math::exp(v - m);
        y[row.at(i)] = static_cast<T>(Log ? v - scale : v * scale);
      });
    });
  }
};

/// From y and the gradient dy of it: dx = y (dy - sum(y dy)), or with Log dx = dy - exp(y) sum(dy).
template <class T, bool Log>
struct SoftmaxBackwardBody {
  static constexpr const char* kName = Log ? "log_softmax_backward" : "softmax_backward";
  using C = ComputeType<T>;
  const T* y;
  const T* dy;
  T* dx;
  Rows rows;
  Teams teams;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int block_size) const { return teams.groups(rows.count, block_size); }
  size_t shared_bytes(int block_size) const { return shared_size<C>(teams.slots(block_size)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    struct Element {
      C y, dy;
    };
    C* scratch = block.template shared<C>(teams.slots(block.size()));
    const TeamMember team = teams.member(block, block.group_index());
    const Row row = rows.row(team.row);
    const auto load = [&](int64_t i) {
      return Element{static_cast<C>(y[row.at(i)]), static_cast<C>(dy[row.at(i)])};
    };
    with_elements<Element>(team, rows.length, team.row < rows.count, load, [&](auto& elements, auto) {
      C s = 0;
      elements.each([&](int64_t, Element& e) { s += Log ? e.dy : e.dy * e.y; });
      s = team.reduce(block, s, Sum{}, scratch);
      elements.each([&](int64_t i, Element& e) {
        dx[row.at(i)] = static_cast<T>(Log ? e.dy - math::exp(e.y) * s : e.y * (e.dy - s));
      });
    });
  }
};

/// The threads of each row: rows that interleave (inner > 1) are read best by a thread for each, where there
/// are rows enough.
inline Teams softmax_teams(const Rows& rows) {
  if (rows.inner > 1 && (rows.count >= 8192 || rows.length <= 4 * kWarpSize)) return {1};
  return Teams::for_length(rows.length);
}

}  // namespace gradus::kernels
