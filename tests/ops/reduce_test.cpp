#include <gradus/ops/cumsum.h>
#include <gradus/ops/extremum.h>
#include <gradus/ops/norm.h>
#include <gradus/ops/reduce.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "op_case.h"

namespace gradus::optest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The reference of a reduction: f of the values that go into one result, in row-major order.
auto reduced(std::vector<int> dims, bool keepdim, double (*f)(const std::vector<double>&)) {
  return [=](const RefArrays& x) {
    const Shape& sizes = x[0].sizes;
    auto gone = [&](int d) { return dims.empty() || std::count(dims.begin(), dims.end(), d) > 0; };
    Shape kept, out;
    for (int d = 0; d < sizes.size(); ++d) {
      kept.push_back(gone(d) ? 1 : sizes[d]);
      if (!gone(d) || keepdim) out.push_back(kept.back());
    }
    std::vector<std::vector<double>> groups(static_cast<size_t>(kept.numel()));
    for (int64_t i = 0; i < x[0].numel(); ++i)
      groups[static_cast<size_t>(broadcast_index(i, sizes, kept))].push_back(x[0][i]);
    RefArray y(out);
    for (int64_t i = 0; i < y.numel(); ++i) y[i] = f(groups[static_cast<size_t>(i)]);
    return y;
  };
}

double total(const std::vector<double>& v) {
  double s = 0;
  for (double x : v) s += x;
  return s;
}
double product(const std::vector<double>& v) {
  double s = 1;
  for (double x : v) s *= x;
  return s;
}
double average(const std::vector<double>& v) { return total(v) / static_cast<double>(v.size()); }
double largest(const std::vector<double>& v) { return *std::max_element(v.begin(), v.end()); }
double smallest(const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }
double variance(const std::vector<double>& v) {
  double s = 0;
  for (double x : v) s += (x - average(v)) * (x - average(v));
  return s / static_cast<double>(v.size() - 1);
}
double deviation(const std::vector<double>& v) { return std::sqrt(variance(v)); }
double log_sum_exp(const std::vector<double>& v) {
  double s = 0;
  for (double x : v) s += std::exp(x);
  return std::log(s);
}
template <int P>
double p_norm(const std::vector<double>& v) {
  double s = 0;
  for (double x : v) s += std::pow(std::abs(x), P);
  return std::pow(s, 1.0 / P);
}
double max_norm(const std::vector<double>& v) {
  double s = 0;
  for (double x : v) s = std::max(s, std::abs(x));
  return s;
}

const std::vector<std::vector<Shape>> kFull = {{{3, 4}}, {{2, 3, 2, 2}}, {{}}, {{1, 1}}, {{70}}};
const std::vector<std::vector<Shape>> kFullOrEmpty = {{{3, 4}}, {{2, 3, 2, 2}}, {{}},
                                                      {{1, 1}}, {{2, 0}},       {{70}}};
const std::vector<std::vector<Shape>> kFirst = {{{3, 4}}, {{2, 3, 2, 2}}, {{1, 5}}, {{3, 0}}, {{3, 43}}};
const std::vector<std::vector<Shape>> kLast = {{{3, 4}}, {{2, 3, 2, 2}}, {{5, 1}}, {{0, 3}}, {{2, 37}}};
const std::vector<std::vector<Shape>> kChannels = {{{2, 3, 2, 2}}, {{1, 9, 3, 1}}, {{0, 2, 1, 1}}};

GRADUS_OP_CASES(
    sums,
    OpCase{.name = "sum",
           .shapes = kFullOrEmpty,
           .inputs = {{uniform(-1, 1)}},
           .forward = [](const Tensors& x) { return sum(x[0]); },
           .reference = reduced({}, false, total),
           .tolerance = 12},
    OpCase{.name = "sum_first",
           .shapes = kFirst,
           .inputs = {{}},
           .forward = [](const Tensors& x) { return sum(x[0], 0); },
           .reference = reduced({0}, false, total)},
    OpCase{.name = "sum_last_keepdim",
           .shapes = kLast,
           .inputs = {{uniform(-1, 1)}},
           .forward = [](const Tensors& x) { return sum(x[0], -1, true); },
           .reference = [](const RefArrays& x) { return reduced({x[0].sizes.size() - 1}, true, total)(x); },
           .tolerance = 12},
    OpCase{.name = "sum_all_but_channels",
           .shapes = kChannels,
           .inputs = {{}},
           .forward =
               [](const Tensors& x) {
                 return sum(x[0], {0, 2, 3});
               },
           .reference = reduced({0, 2, 3}, false, total),
           .tolerance = 12},
    OpCase{.name = "mean",
           .shapes = kFull,
           .inputs = {{}},
           .forward = [](const Tensors& x) { return mean(x[0]); },
           .reference = reduced({}, false, average)},
    OpCase{.name = "mean_channels",
           .shapes = {{{2, 3, 2, 2}}, {{1, 9, 3, 1}}},
           .inputs = {{}},
           .forward =
               [](const Tensors& x) {
                 return mean(x[0], {0, 2, 3}, true);
               },
           .reference = reduced({0, 2, 3}, true, average)},
    OpCase{.name = "sum_to_size",
           .shapes = {{{3, 4}}, {{2, 3, 2, 4}}, {{1, 1, 4}}, {{0, 3, 4}}},
           .inputs = {{}},
           .forward =
               [](const Tensors& x) {
                 return sum_to_size(x[0], {1, 4});
               },
           .reference =
               [](const RefArrays& x) {
                 std::vector<int> dims;
                 for (int d = 0; d + 1 < x[0].sizes.size(); ++d) dims.push_back(d);
                 RefArray y = reduced(dims, false, total)(x);
                 y.sizes = {1, 4};
                 return y;
               },
           .tolerance = 12},
    OpCase{.name = "prod",
           .shapes = {{{3, 4}}, {{}}, {{1, 1}}, {{2, 0}}, {{2, 3, 2, 1}}},
           .inputs = {{uniform(0.5, 1.5)}},
           .forward = [](const Tensors& x) { return prod(x[0]); },
           .reference = reduced({}, false, product),
           .tolerance = 12},
    OpCase{.name = "prod_first",
           .shapes = {{{3, 4}}, {{5, 2}}, {{1, 5}}, {{2, 3, 2, 2}}},
           .inputs = {{uniform(0.5, 1.5)}},
           .forward = [](const Tensors& x) { return prod(x[0], 0, true); },
           .reference = reduced({0}, true, product),
           .tolerance = 8},
    // [snippet cumsum]
    OpCase{.name = "cumsum_first",
           .shapes = {{{3, 4}}, {{2, 3, 2, 2}}, {{1, 5}}, {{0, 3}}, {{}}},
           .inputs = {{}},
           .forward = [](const Tensors& x) { return cumsum(x[0], 0); },
           .reference =
               [](const RefArrays& x) {
                 RefArray y = x[0];
                 const int64_t row = y.sizes.empty() ? 1 : y.numel() / std::max<int64_t>(1, y.sizes[0]);
                 for (int64_t i = row; i < y.numel(); ++i) y[i] += y[i - row];
                 return y;
               }});
// [/snippet cumsum]

GRADUS_OP_CASES(extrema,
                OpCase{.name = "amax",
                       .shapes = kFull,
                       .inputs = {{distinct()}},
                       .forward = [](const Tensors& x) { return amax(x[0]); },
                       .reference = reduced({}, false, largest)},
                OpCase{.name = "amin_first",
                       .shapes = kFirst,
                       .inputs = {{distinct()}},
                       .forward = [](const Tensors& x) { return amin(x[0], 0, true); },
                       .reference = reduced({0}, true, smallest)},
                OpCase{.name = "max",
                       .shapes = kFull,
                       .inputs = {{distinct()}},
                       .forward = [](const Tensors& x) { return max(x[0]); },
                       .reference = reduced({}, false, largest)},
                OpCase{.name = "min",
                       .shapes = kFull,
                       .inputs = {{distinct()}},
                       .forward = [](const Tensors& x) { return min(x[0]); },
                       .reference = reduced({}, false, smallest)},
                OpCase{.name = "max_first",
                       .shapes = kFirst,
                       .inputs = {{distinct()}},
                       .forward = [](const Tensors& x) { return std::get<0>(max(x[0], 0)); },
                       .reference = reduced({0}, false, largest)},
                OpCase{.name = "min_last",
                       .shapes = kLast,
                       .inputs = {{distinct()}},
                       .forward = [](const Tensors& x) { return std::get<0>(min(x[0], -1, true)); },
                       .reference =
                           [](const RefArrays& x) {
                             return reduced({x[0].sizes.size() - 1}, true, smallest)(x);
                           }},
                OpCase{.name = "argmax_first",
                       .shapes = kFirst,
                       .inputs = {{distinct(), false}},
                       .forward = [](const Tensors& x) { return argmax(x[0], 0); },
                       .reference = reduced({0}, false,
                                            [](const std::vector<double>& v) {
                                              return static_cast<double>(
                                                  std::max_element(v.begin(), v.end()) - v.begin());
                                            })},
                OpCase{.name = "argmin",
                       .shapes = kFull,
                       .inputs = {{distinct(), false}},
                       .forward = [](const Tensors& x) { return argmin(x[0]); },
                       .reference = reduced({}, false, [](const std::vector<double>& v) {
                         return static_cast<double>(std::min_element(v.begin(), v.end()) - v.begin());
                       })});

GRADUS_OP_CASES(norms,
                OpCase{.name = "var",
                       .shapes = {{{3, 4}}, {{2, 3, 2, 2}}, {{70}}},
                       .inputs = {{}},
                       .forward = [](const Tensors& x) { return var(x[0]); },
                       .reference = reduced({}, false, variance),
                       .tolerance = 8},
                OpCase{.name = "var_correction",
                       .shapes = {{{3, 4}}, {{70}}},
                       .inputs = {{}},
                       .forward = [](const Tensors& x) { return var(x[0], {}, false, 2.5); },
                       .reference = reduced({}, false,
                                            [](const std::vector<double>& v) {
                                              const auto n = static_cast<double>(v.size());
                                              return variance(v) * (n - 1) / (n - 2.5);
                                            }),
                       .tolerance = 8},
                OpCase{.name = "var_first",
                       .shapes = {{{3, 4}}, {{2, 3, 2, 2}}},
                       .inputs = {{}},
                       .forward = [](const Tensors& x) { return var(x[0], 0, true); },
                       .reference = reduced({0}, true, variance),
                       .tolerance = 8},
                OpCase{.name = "std",
                       .shapes = {{{3, 4}}, {{2, 3, 2, 2}}},
                       .inputs = {{}},
                       .forward = [](const Tensors& x) { return gradus::std(x[0], 0); },
                       .reference = reduced({0}, false, deviation),
                       .tolerance = 8,
                       .gradient_tolerance = 64},
                OpCase{.name = "norm",
                       .shapes = kFull,
                       .inputs = {{normal().away_from({0})}},
                       .forward = [](const Tensors& x) { return norm(x[0]); },
                       .reference = reduced({}, false, p_norm<2>)},
                OpCase{.name = "norm_first",
                       .shapes = kFirst,
                       .inputs = {{normal().away_from({0})}},
                       .forward = [](const Tensors& x) { return norm(x[0], 2, 0, true); },
                       .reference = reduced({0}, true, p_norm<2>)},
                OpCase{.name = "norm_1",
                       .shapes = kFirst,
                       .inputs = {{normal().away_from({0})}},
                       .forward = [](const Tensors& x) { return norm(x[0], 1, 0); },
                       .reference = reduced({0}, false, p_norm<1>)},
                OpCase{.name = "norm_3",
                       .shapes = kFirst,
                       .inputs = {{normal().away_from({0})}},
                       .forward = [](const Tensors& x) { return norm(x[0], 3, 0); },
                       .reference = reduced({0}, false, p_norm<3>)},
                OpCase{.name = "norm_inf",
                       .shapes = kFirst,
                       .inputs = {{uniform(0.1, 1)}},
                       .forward = [](const Tensors& x) { return norm(x[0], kInfinity, 0); },
                       .reference = reduced({0}, false, max_norm),
                       .dtypes = dtypes(kFloat32, kFloat64)},
                OpCase{.name = "logsumexp",
                       .shapes = kFirst,
                       .inputs = {{}},
                       .forward = [](const Tensors& x) { return logsumexp(x[0], 0); },
                       .reference = reduced({0}, false, log_sum_exp)});

}  // namespace
}  // namespace gradus::optest
