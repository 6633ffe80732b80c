// Losses and their gradients against PyTorch.
#include <gradus/ops/loss.h>

#include "golden.h"

namespace gradus::golden {
namespace {

constexpr Reduction kMean = Reduction::mean, kSum = Reduction::sum, kNone = Reduction::none;

// The same case under the three reductions, which is named R in the expression.
#define GOLDEN_REDUCTIONS(name, ...)                \
  {name ".mean",                                    \
   [](const Inputs& in) -> Results {                \
     constexpr auto R = kMean;                      \
     return __VA_ARGS__;                            \
   }},                                              \
      {name ".sum",                                 \
       [](const Inputs& in) -> Results {            \
         constexpr auto R = kSum;                   \
         return __VA_ARGS__;                        \
       }},                                          \
  {                                                 \
    name ".none", [](const Inputs& in) -> Results { \
      constexpr auto R = kNone;                     \
      return __VA_ARGS__;                           \
    }                                               \
  }

const std::vector<OpCase> kCases = {
    GOLDEN_REDUCTIONS("cross_entropy", cross_entropy(in.x, in.t, {.reduction = R})),
    GOLDEN_REDUCTIONS("cross_entropy.weight", cross_entropy(in.x, in.t, {.weight = in.w, .reduction = R})),
    GOLDEN_REDUCTIONS("cross_entropy.ignore", cross_entropy(in.x, in.t, {.reduction = R})),
    GOLDEN_REDUCTIONS("cross_entropy.smooth",
                      cross_entropy(in.x, in.t, {.reduction = R, .label_smoothing = 0.2})),
    GOLDEN_REDUCTIONS(
        "cross_entropy.everything",
        cross_entropy(in.x, in.t,
                      {.weight = in.w, .ignore_index = 3, .reduction = R, .label_smoothing = 0.1})),
    GOLDEN_REDUCTIONS("nll_loss", nll_loss(in.x, in.t, {.reduction = R})),
    GOLDEN_REDUCTIONS("nll_loss.weight",
                      nll_loss(in.x, in.t, {.weight = in.w, .ignore_index = 1, .reduction = R})),
    GOLDEN("cross_entropy.all_ignored", cross_entropy(in.x, in.t)),
    GOLDEN("cross_entropy.huge", cross_entropy(in.x, in.t)),
    GOLDEN("cross_entropy.one_class", cross_entropy(in.x, in.t)),
    GOLDEN_REDUCTIONS("mse_loss", mse_loss(in.x, in.t, R)),
    GOLDEN_REDUCTIONS("bce", binary_cross_entropy_with_logits(in.x, in.t, {.reduction = R})),
    GOLDEN("bce.weights", binary_cross_entropy_with_logits(in.x, in.t, {.weight = in.w, .pos_weight = in.p})),
    GOLDEN("bce.huge", binary_cross_entropy_with_logits(in.x, in.t, {.reduction = kNone})),
};

// A few exp and log each, and sums of 12 terms.
TEST(GoldenOps, losses) { check_family("losses", kCases, {3e-15, 6e-7}); }

}  // namespace
}  // namespace gradus::golden
