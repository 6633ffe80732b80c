"""Element-wise operations and reductions."""
from .cases import booleans, integers, normal, uniform, values

SPECIAL = [float("-inf"), -2.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.5, 2.5, float("inf"), float("nan")]
ANYWHERE = ["neg", "abs", "square", "exp", "expm1", "sin", "cos", "tanh", "sigmoid", "relu", "erf"]
POSITIVE = ["log", "log1p", "sqrt", "rsqrt", "reciprocal"]
STEPS = ["sign", "floor", "ceil", "round", "trunc"]


def unary(case):
    for op in ANYWHERE:
        case(f"{op}", f"torch.{op}(x)", x=normal(3, 7))
    for op in POSITIVE:
        case(f"{op}", f"torch.{op}(x)", x=uniform(0.3, 3.0, 3, 7))
    for op in STEPS:
        case(f"{op}", f"torch.{op}(x)", x=values([-2.5, -1.5, -0.5, 0.0, 0.4, 0.5, 1.5, 2.5, 3.7]))
    # Infinities, NaN and the two zeros; the gradients here are PyTorch's choice of subgradient.
    for op in ["abs", "exp", "tanh", "sigmoid", "relu", "erf", "sign", "floor", "round"]:
        case(f"{op}.special", f"torch.{op}(x)", x=values(SPECIAL))
    for op in ["log", "sqrt", "rsqrt", "reciprocal"]:
        case(f"{op}.special", f"torch.{op}(x)", x=values([-1.0, 0.0, 0.25, float("inf"), float("nan")]))
    for op in ["isnan", "isinf", "isfinite"]:
        case(f"{op}", f"torch.{op}(x)", x=values(SPECIAL))
    for approximate in ["none", "tanh"]:
        case(f"gelu.{approximate}", f"F.gelu(x, approximate='{approximate}')", x=normal(5, 5))
    case("logical_not", "torch.logical_not(x)", x=values(SPECIAL))


def binary(case):
    for op in ["add", "sub", "mul", "div", "maximum", "minimum", "fmod", "remainder"]:
        case(f"{op}", f"torch.{op}(a, b)", a=normal(3, 7), b=uniform(0.4, 1.9, 3, 7))
        case(f"{op}.broadcast", f"torch.{op}(a, b)", a=normal(3, 1, 5), b=uniform(0.4, 1.9, 4, 1))
    case("add.alpha", "torch.add(a, b, alpha=-0.75)", a=normal(4, 3), b=normal(3))
    case("add.zero_dim", "a + b", a=normal(4, 3), b=values(0.625))
    case("add.empty", "a + b", a=normal(0, 3), b=normal(3))
    case("mul.same_input", "x * x", x=normal(6))
    case("div.scalar", "1.5 / x", x=uniform(0.5, 2.0, 5))
    case("div.floor", "torch.div(a, b, rounding_mode='floor')", ("a", "b"), a=normal(5, 3), b=normal(5, 3))
    case("div.trunc", "torch.div(a, b, rounding_mode='trunc')", ("a", "b"), a=normal(5, 3), b=normal(5, 3))
    case("pow.tensor", "torch.pow(a, b)", a=uniform(0.3, 2.0, 3, 1), b=normal(4))
    for exponent in ["2", "3", "0.5", "-1.5", "0"]:
        case(f"pow.{exponent}", f"torch.pow(x, {exponent})", x=uniform(0.3, 2.0, 7))
    case("pow.zero", "torch.pow(x, 2)", x=values([-2.0, -1.0, 0.0, 1.5]))
    case("maximum.ties", "torch.maximum(a, b)", a=values([1.0, 2.0, float("nan"), 0.0]), b=values([1.0, 3.0, 0.0, 0.0]))
    case("minimum.ties", "torch.minimum(a, b)", a=values([1.0, 2.0, float("nan"), 0.0]), b=values([1.0, 3.0, 0.0, 0.0]))
    for op in ["eq", "ne", "lt", "le", "gt", "ge"]:
        case(f"{op}", f"torch.{op}(a, b)", ("a", "b"), a=values(SPECIAL), b=values(SPECIAL[::-1]))
        case(f"{op}.broadcast", f"torch.{op}(a, b)", a=integers(0, 3, 3, 1), b=integers(0, 3, 4))
    for op in ["logical_and", "logical_or", "logical_xor"]:
        case(f"{op}", f"torch.{op}(a, b)", a=values([True, True, False, False]), b=values([1, 0, 2, 0]))


def select(case):
    case("where", "torch.where(c, a, b)", c=booleans(4, 5), a=normal(4, 5), b=normal(4, 5))
    case("where.broadcast", "torch.where(c, a, b)", c=booleans(4, 1), a=normal(5), b=normal(3, 1, 1))
    case("clamp", "torch.clamp(x, -0.5, 0.75)", x=normal(5, 5))
    # No value on a bound: there older PyTorch passes the gradient on, and 2.15 does not.
    case("clamp.special", "torch.clamp(x, -0.75, 0.75)", x=values(SPECIAL))
    case("clamp.min", "torch.clamp(x, min=0.1)", x=normal(9))
    case("clamp.max", "torch.clamp(x, max=0.1)", x=normal(9))
    case("masked_fill", "x.masked_fill(m, -2.5)", x=normal(3, 4), m=booleans(3, 4))


def pointwise(case):
    unary(case)
    binary(case)
    select(case)


# dim, keepdim and the ending of the case's name
DIMS = [("0", False, "dim0"), ("-1", True, "last_keep"), ("1", False, "dim1")]


def reduce(case):
    for op in ["sum", "mean", "prod", "var", "std", "amax", "amin", "logsumexp"]:
        for dim, keep, ending in DIMS:
            case(f"{op}.{ending}", f"torch.{op}(x, dim={dim}, keepdim={keep})", x=normal(3, 5, 2))
        if op not in ("prod",):
            case(f"{op}.dims", f"torch.{op}(x, dim=(0, 2))", x=normal(3, 5, 2))
    for op in ["sum", "mean", "prod", "var", "std", "max", "min"]:
        case(f"{op}.all", f"torch.{op}(x)", x=normal(3, 5, 2))
    for op in ["sum", "mean", "var", "prod"]:
        case(f"{op}.transposed", f"torch.{op}(x.transpose(0, 2), dim=1)", x=normal(3, 5, 2))
    case("prod.zeros", "torch.prod(x, dim=1)", x=values([[1.0, 0.0, 3.0], [0.0, 0.0, 2.0], [2.0, 3.0, 4.0]]))
    case("var.population", "torch.var(x, dim=1, correction=0)", x=normal(4, 6))
    case("std.population", "torch.std(x, dim=1, correction=0)", x=normal(4, 6))
    case("var.offset", "torch.var(x, dim=0)", x=uniform(1000.0, 1001.0, 33, 2))
    case("sum.empty", "torch.sum(x, dim=0)", x=normal(0, 3))
    case("sum.long", "torch.sum(x)", x=normal(1037))
    for p in ["1", "2", "3", "float('inf')"]:
        name = "inf" if "inf" in p else p
        case(f"norm.{name}", f"torch.linalg.vector_norm(x, {p})", x=normal(3, 7))
        case(f"norm.{name}.dim", f"torch.linalg.vector_norm(x, {p}, dim=1, keepdim=True)", x=normal(3, 7))
    ties = values([[1.0, 3.0, 3.0], [2.0, 2.0, 0.0], [float("nan"), 5.0, float("nan")]])
    for op in ["max", "min"]:
        for dim, keep, ending in DIMS:
            case(f"{op}.{ending}", f"torch.{op}(x, dim={dim}, keepdim={keep})", x=normal(3, 5, 2))
        case(f"{op}.ties", f"torch.{op}(x, dim=1)", x=ties)
        case(f"a{op}.ties", f"torch.a{op}(x, dim=1)", x=ties)
        case(f"arg{op}", f"torch.arg{op}(x)", x=normal(3, 5, 2))
        case(f"arg{op}.dim", f"torch.arg{op}(x, dim=1, keepdim=True)", x=normal(3, 5, 2))
        case(f"arg{op}.ties", f"torch.arg{op}(x, dim=1)", x=ties)
    for dim in ["0", "1", "-1"]:
        case(f"cumsum.{dim}", f"torch.cumsum(x, dim={dim})", x=normal(3, 5, 2))
    case("sum.bool", "torch.sum(x)", x=booleans(37))
    case("sum.int", "torch.sum(x, dim=0)", x=integers(-9, 9, 4, 3))
    for op in ["any", "all"]:
        case(f"{op}.all", f"torch.{op}(x)", x=booleans(3, 4))
        case(f"{op}.dim", f"torch.{op}(x, dim=1)", x=booleans(6, 2))
