// An undefined tensor in any operation: the error names the operation, not the accessor that noticed.
#include <gradus/ops/ops.h>
#include <gtest/gtest.h>

#include <functional>

#include "support/expect_error.h"

namespace gradus {
namespace {

struct Use {
  const char* op;
  std::function<void()> run;
};

const Tensor none;
Tensor some() { return zeros({2, 2}); }

Use use(const char* op, std::function<void()> run) { return {op, std::move(run)}; }

#define UNARY(op) use(#op, [] { op(none); })
#define BINARY(op) use(#op, [] { op(none, some()); }), use(#op, [] { op(some(), none); })

const Use kUses[] = {
    UNARY(neg),
    UNARY(abs),
    UNARY(square),
    UNARY(reciprocal),
    UNARY(exp),
    UNARY(expm1),
    UNARY(log),
    UNARY(log1p),
    UNARY(sqrt),
    UNARY(rsqrt),
    UNARY(sin),
    UNARY(cos),
    UNARY(erf),
    UNARY(relu),
    UNARY(leaky_relu),
    UNARY(sigmoid),
    UNARY(tanh),
    UNARY(silu),
    UNARY(gelu),
    UNARY(softplus),
    UNARY(floor),
    UNARY(ceil),
    UNARY(round),
    UNARY(trunc),
    UNARY(sign),
    UNARY(isnan),
    UNARY(isinf),
    UNARY(isfinite),
    UNARY(logical_not),
    UNARY(sum),
    UNARY(mean),
    UNARY(prod),
    UNARY(amax),
    UNARY(amin),
    UNARY(max),
    UNARY(min),
    UNARY(argmax),
    UNARY(argmin),
    UNARY(all),
    UNARY(any),
    UNARY(var),
    UNARY(std),
    UNARY(norm),
    UNARY(count_nonzero),
    UNARY(flatten),
    UNARY(t),
    UNARY(squeeze),
    UNARY(unbind),
    UNARY(nonzero),
    UNARY(one_hot),
    UNARY(dropout),
    BINARY(add),
    BINARY(sub),
    BINARY(mul),
    BINARY(div),
    BINARY(minimum),
    BINARY(maximum),
    BINARY(eq),
    BINARY(ne),
    BINARY(lt),
    BINARY(le),
    BINARY(gt),
    BINARY(ge),
    BINARY(logical_and),
    BINARY(logical_or),
    BINARY(logical_xor),
    BINARY(isclose),
    BINARY(equal),
    BINARY(floor_divide),
    BINARY(remainder),
    BINARY(fmod),
    BINARY(pow),
    BINARY(matmul),
    BINARY(mm),
    BINARY(bmm),
    BINARY(linear),
    BINARY(masked_select),
    BINARY(embedding),
    BINARY(mse_loss),
    BINARY(l1_loss),
    BINARY(huber_loss),
    BINARY(smooth_l1_loss),
    BINARY(binary_cross_entropy),
    BINARY(binary_cross_entropy_with_logits),
    BINARY(cross_entropy),
    BINARY(nll_loss),
    BINARY(conv2d),
    {"add", [] { add(none, 1); }},
    {"sub", [] { sub(none, 1); }},
    {"rsub", [] { rsub(none, 1); }},
    {"mul", [] { mul(none, 1); }},
    {"div", [] { div(none, 1); }},
    {"add", [] { some().add_(none); }},
    {"sub", [] { some().sub_(none); }},
    {"mul", [] { some().mul_(none); }},
    {"div", [] { some().div_(none); }},
    {"eq", [] { eq(none, 1); }},
    {"pow", [] { pow(none, 2); }},
    {"remainder", [] { remainder(none, 2); }},
    {"floor_divide", [] { floor_divide(none, 2); }},
    {"clamp", [] { clamp(none, 0, 1); }},
    {"max", [] { max(none, 0); }},
    {"argmax", [] { argmax(none, 0); }},
    {"logsumexp", [] { logsumexp(none, 0); }},
    {"cumsum", [] { cumsum(none, 0); }},
    {"softmax", [] { softmax(none, 0); }},
    {"log_softmax", [] { log_softmax(none, 0); }},
    {"sum_to_size", [] { sum_to_size(none, {1}); }},
    {"view", [] { view(none, {1}); }},
    {"reshape", [] { reshape(none, {1}); }},
    {"transpose", [] { transpose(none, 0, 1); }},
    {"permute", [] { permute(none, {0}); }},
    {"expand", [] { expand(none, {1}); }},
    {"squeeze", [] { squeeze(none, 0); }},
    {"unsqueeze", [] { unsqueeze(none, 0); }},
    {"narrow", [] { narrow(none, 0, 0, 1); }},
    {"select", [] { select(none, 0, 0); }},
    {"slice", [] { slice(none, 0, 0, 1); }},
    {"chunk", [] { chunk(none, 1); }},
    {"split", [] { split(none, 1); }},
    {"cat",
     [] {
       cat({some(), none});
     }},
    {"stack",
     [] {
       stack({none, some()});
     }},
    {"pad",
     [] {
       pad(none, {1, 1});
     }},
    {"flip", [] { flip(none, {0}); }},
    {"repeat", [] { repeat(none, {2}); }},
    {"where", [] { where(none, some(), some()); }},
    {"where", [] { where(some() == 0, none, 1); }},
    {"masked_fill", [] { masked_fill(none, some() == 0, 1); }},
    {"lerp", [] { lerp(some(), none, 1); }},
    {"addcmul", [] { addcmul(some(), some(), none); }},
    {"index_select", [] { index_select(some(), 0, none); }},
    {"gather", [] { gather(some(), 0, none); }},
    {"take_along_dim", [] { take_along_dim(some(), none, 0); }},
    {"scatter", [] { scatter(some(), 0, none, 1); }},
    {"scatter_add", [] { scatter_add(some(), 0, none, some()); }},
    {"index_add", [] { index_add(some(), 0, zeros({2}, kInt64), none); }},
    {"batch_norm", [] { batch_norm(none, {}, {}, {}, {}, {.training = true}); }},
    {"layer_norm", [] { layer_norm(none, {2}); }},
    {"max_pool2d", [] { max_pool2d(none, 2); }},
    {"avg_pool2d", [] { avg_pool2d(none, 2); }},
};

TEST(Undefined, operands_are_refused_by_name_of_the_operation) {
  for (const Use& use : kUses)
    EXPECT_THAT(testing::error_of(use.run),
                ::testing::StartsWith(str("E-UNDEFINED: ", use.op, ": expected ")));
}

}  // namespace
}  // namespace gradus
