// Reductions and their gradients against PyTorch.
#include <gradus/ops/cumsum.h>
#include <gradus/ops/extremum.h>
#include <gradus/ops/norm.h>
#include <gradus/ops/reduce.h>

#include <limits>

#include "golden.h"

namespace gradus::golden {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The three ways of giving a dim, over all of these reductions.
#define GOLDEN_DIMS(name, op)                                           \
  GOLDEN(name ".dim0", op(in.x, 0)), GOLDEN(name ".dim1", op(in.x, 1)), \
      GOLDEN(name ".last_keep", op(in.x, -1, true))

const std::vector<OpCase> kCases = {
    GOLDEN_DIMS("sum", sum),
    GOLDEN_DIMS("mean", mean),
    GOLDEN_DIMS("prod", prod),
    GOLDEN_DIMS("amax", amax),
    GOLDEN_DIMS("amin", amin),
    GOLDEN_DIMS("logsumexp", logsumexp),
    GOLDEN_DIMS("max", max),
    GOLDEN_DIMS("min", min),
    GOLDEN_DIMS("var", var),
    GOLDEN_DIMS("std", std),
    GOLDEN("sum.dims", sum(in.x, {0, 2})),
    GOLDEN("mean.dims", mean(in.x, {0, 2})),
    GOLDEN("var.dims", var(in.x, {0, 2})),
    GOLDEN("std.dims", std(in.x, {0, 2})),
    GOLDEN("amax.dims", amax(in.x, {0, 2})),
    GOLDEN("amin.dims", amin(in.x, {0, 2})),
    GOLDEN("logsumexp.dims", logsumexp(in.x, {0, 2})),
    GOLDEN("sum.all", sum(in.x)),
    GOLDEN("mean.all", mean(in.x)),
    GOLDEN("prod.all", prod(in.x)),
    GOLDEN("var.all", var(in.x)),
    GOLDEN("std.all", std(in.x)),
    GOLDEN("max.all", max(in.x)),
    GOLDEN("min.all", min(in.x)),
    GOLDEN("sum.transposed", sum(in.x.transpose(0, 2), 1)),
    GOLDEN("mean.transposed", mean(in.x.transpose(0, 2), 1)),
    GOLDEN("var.transposed", var(in.x.transpose(0, 2), 1)),
    GOLDEN("prod.transposed", prod(in.x.transpose(0, 2), 1)),
    GOLDEN("prod.zeros", prod(in.x, 1)),
    GOLDEN("var.population", var(in.x, 1, false, 0)),
    GOLDEN("std.population", std(in.x, 1, false, 0)),
    GOLDEN_SLACK("var.offset", 10, var(in.x, 0)),  // values of 1000 that differ by 1
    GOLDEN("sum.empty", sum(in.x, 0)),
    GOLDEN("sum.long", sum(in.x)),
    GOLDEN("norm.1", norm(in.x, 1)),
    GOLDEN("norm.1.dim", norm(in.x, 1, 1, true)),
    GOLDEN("norm.2", norm(in.x, 2)),
    GOLDEN("norm.2.dim", norm(in.x, 2, 1, true)),
    GOLDEN("norm.3", norm(in.x, 3)),
    GOLDEN("norm.3.dim", norm(in.x, 3, 1, true)),
    GOLDEN("norm.inf", norm(in.x, kInfinity)),
    GOLDEN("norm.inf.dim", norm(in.x, kInfinity, 1, true)),
    GOLDEN("max.ties", max(in.x, 1)),
    GOLDEN("min.ties", min(in.x, 1)),
    GOLDEN("amax.ties", amax(in.x, 1)),
    GOLDEN("amin.ties", amin(in.x, 1)),
    GOLDEN("argmax", argmax(in.x)),
    GOLDEN("argmax.dim", argmax(in.x, 1, true)),
    GOLDEN("argmax.ties", argmax(in.x, 1)),
    GOLDEN("argmin", argmin(in.x)),
    GOLDEN("argmin.dim", argmin(in.x, 1, true)),
    GOLDEN("argmin.ties", argmin(in.x, 1)),
    GOLDEN("cumsum.0", cumsum(in.x, 0)),
    GOLDEN("cumsum.1", cumsum(in.x, 1)),
    GOLDEN("cumsum.-1", cumsum(in.x, -1)),
    GOLDEN("sum.bool", sum(in.x)),
    GOLDEN("sum.int", sum(in.x, 0)),
    GOLDEN("any.all", any(in.x)),
    GOLDEN("any.dim", any(in.x, 1)),
    GOLDEN("all.all", all(in.x)),
    GOLDEN("all.dim", all(in.x, 1)),
};

// Sums of up to 30 terms (1037 once) in whatever order; the gradients of var and std divide by small numbers.
TEST(GoldenOps, reduce) { check_family("reduce", kCases, {3e-15, 1e-6}); }

}  // namespace
}  // namespace gradus::golden
