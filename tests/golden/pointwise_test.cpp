// Element-wise operations and their gradients against PyTorch.
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/clamp.h>
#include <gradus/ops/compare.h>
#include <gradus/ops/pow.h>
#include <gradus/ops/rounding.h>
#include <gradus/ops/unary.h>
#include <gradus/ops/where.h>

#include "golden.h"

namespace gradus::golden {
namespace {

const std::vector<OpCase> kUnary = {
    GOLDEN("neg", neg(in.x)),
    GOLDEN("abs", abs(in.x)),
    GOLDEN("square", square(in.x)),
    GOLDEN("exp", exp(in.x)),
    GOLDEN("expm1", expm1(in.x)),
    GOLDEN("sin", sin(in.x)),
    GOLDEN("cos", cos(in.x)),
    GOLDEN("tanh", tanh(in.x)),
    GOLDEN("sigmoid", sigmoid(in.x)),
    GOLDEN("relu", relu(in.x)),
    GOLDEN("erf", erf(in.x)),
    GOLDEN("log", log(in.x)),
    GOLDEN("log1p", log1p(in.x)),
    GOLDEN("sqrt", sqrt(in.x)),
    GOLDEN("rsqrt", rsqrt(in.x)),
    GOLDEN("reciprocal", reciprocal(in.x)),
    GOLDEN("sign", sign(in.x)),
    GOLDEN("floor", floor(in.x)),
    GOLDEN("ceil", ceil(in.x)),
    GOLDEN("round", round(in.x)),
    GOLDEN("trunc", trunc(in.x)),
    GOLDEN("abs.special", abs(in.x)),
    GOLDEN("exp.special", exp(in.x)),
    GOLDEN("tanh.special", tanh(in.x)),
    GOLDEN("sigmoid.special", sigmoid(in.x)),
    GOLDEN("relu.special", relu(in.x)),
    GOLDEN("erf.special", erf(in.x)),
    GOLDEN("sign.special", sign(in.x)),
    GOLDEN("floor.special", floor(in.x)),
    GOLDEN("round.special", round(in.x)),
    GOLDEN("log.special", log(in.x)),
    GOLDEN("sqrt.special", sqrt(in.x)),
    GOLDEN("rsqrt.special", rsqrt(in.x)),
    GOLDEN("reciprocal.special", reciprocal(in.x)),
    GOLDEN("isnan", isnan(in.x)),
    GOLDEN("isinf", isinf(in.x)),
    GOLDEN("isfinite", isfinite(in.x)),
    GOLDEN("gelu.none", gelu(in.x)),
    GOLDEN("gelu.tanh", gelu(in.x, "tanh")),
    GOLDEN("logical_not", logical_not(in.x)),
};

const std::vector<OpCase> kBinary = {
    GOLDEN("add", add(in.a, in.b)),
    GOLDEN("add.broadcast", add(in.a, in.b)),
    GOLDEN("sub", sub(in.a, in.b)),
    GOLDEN("sub.broadcast", sub(in.a, in.b)),
    GOLDEN("mul", mul(in.a, in.b)),
    GOLDEN("mul.broadcast", mul(in.a, in.b)),
    GOLDEN("div", div(in.a, in.b)),
    GOLDEN("div.broadcast", div(in.a, in.b)),
    GOLDEN("maximum", maximum(in.a, in.b)),
    GOLDEN("maximum.broadcast", maximum(in.a, in.b)),
    GOLDEN("minimum", minimum(in.a, in.b)),
    GOLDEN("minimum.broadcast", minimum(in.a, in.b)),
    GOLDEN("fmod", fmod(in.a, in.b)),
    GOLDEN("fmod.broadcast", fmod(in.a, in.b)),
    GOLDEN("remainder", remainder(in.a, in.b)),
    GOLDEN("remainder.broadcast", remainder(in.a, in.b)),
    GOLDEN("add.alpha", add(in.a, in.b * -0.75)),
    GOLDEN("add.zero_dim", in.a + in.b),
    GOLDEN("add.empty", in.a + in.b),
    GOLDEN("mul.same_input", in.x* in.x),
    GOLDEN("div.scalar", 1.5 / in.x),
    GOLDEN("div.floor", div(in.a, in.b, Rounding::floor)),
    GOLDEN("div.trunc", div(in.a, in.b, Rounding::trunc)),
    GOLDEN("pow.tensor", pow(in.a, in.b)),
    GOLDEN("pow.2", pow(in.x, 2)),
    GOLDEN("pow.3", pow(in.x, 3)),
    GOLDEN("pow.0.5", pow(in.x, 0.5)),
    GOLDEN("pow.-1.5", pow(in.x, -1.5)),
    GOLDEN("pow.0", pow(in.x, 0)),
    GOLDEN("pow.zero", pow(in.x, 2)),
    GOLDEN("maximum.ties", maximum(in.a, in.b)),
    GOLDEN("minimum.ties", minimum(in.a, in.b)),
};

const std::vector<OpCase> kLogic = {
    GOLDEN("eq", eq(in.a, in.b)),
    GOLDEN("eq.broadcast", eq(in.a, in.b)),
    GOLDEN("ne", ne(in.a, in.b)),
    GOLDEN("ne.broadcast", ne(in.a, in.b)),
    GOLDEN("lt", lt(in.a, in.b)),
    GOLDEN("lt.broadcast", lt(in.a, in.b)),
    GOLDEN("le", le(in.a, in.b)),
    GOLDEN("le.broadcast", le(in.a, in.b)),
    GOLDEN("gt", gt(in.a, in.b)),
    GOLDEN("gt.broadcast", gt(in.a, in.b)),
    GOLDEN("ge", ge(in.a, in.b)),
    GOLDEN("ge.broadcast", ge(in.a, in.b)),
    GOLDEN("logical_and", logical_and(in.a, in.b)),
    GOLDEN("logical_or", logical_or(in.a, in.b)),
    GOLDEN("logical_xor", logical_xor(in.a, in.b)),
    GOLDEN("where", where(in.c, in.a, in.b)),
    GOLDEN("where.broadcast", where(in.c, in.a, in.b)),
    GOLDEN("clamp", clamp(in.x, -0.5, 0.75)),
    GOLDEN("clamp.special", clamp(in.x, -0.75, 0.75)),
    GOLDEN("clamp.min", clamp(in.x, 0.1, {})),
    GOLDEN("clamp.max", clamp(in.x, {}, 0.1)),
    GOLDEN("masked_fill", masked_fill(in.x, in.m, -2.5)),
};

std::vector<OpCase> all() {
  std::vector<OpCase> cases = kUnary;
  cases.insert(cases.end(), kBinary.begin(), kBinary.end());
  cases.insert(cases.end(), kLogic.begin(), kLogic.end());
  return cases;
}

// One rounding or two per element, plus the last bits of exp, log and their like: a few units in the last
// place; broadcast gradients sum up to 12 of them.
TEST(GoldenOps, pointwise) { check_family("pointwise", all(), {2e-15, 1e-6}); }

}  // namespace
}  // namespace gradus::golden
