"""Tables about dtypes: promotion, integer division, conversion.

A dtype is stored as its place in ORDER (metadata `order`), -1 where PyTorch refuses the combination.
"""
import torch

from .file import Vectors

ORDER = ["bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
DTYPES = [getattr(torch, name) for name in ORDER]
INF, NAN = float("inf"), float("nan")


def code(make):
    try:
        return DTYPES.index(make().dtype)
    except (RuntimeError, TypeError):
        return -1


def pair_table(vectors, name, op, a_shape=(2,), b_shape=(2,)):
    rows = [[code(lambda: op(torch.ones(a_shape, dtype=a), torch.ones(b_shape, dtype=b))) for b in DTYPES] for a in DTYPES]
    vectors.add(name, torch.tensor(rows))


def promotion(vectors):
    vectors.note("order", " ".join(ORDER))
    pair_table(vectors, "promote/add", torch.add)
    pair_table(vectors, "promote/add_zero_dim", torch.add, b_shape=())
    pair_table(vectors, "promote/add_both_zero_dim", torch.add, (), ())
    pair_table(vectors, "promote/sub", torch.sub)
    pair_table(vectors, "promote/mul", torch.mul)
    pair_table(vectors, "promote/div", torch.div)
    pair_table(vectors, "promote/floor_divide", torch.floor_divide)
    pair_table(vectors, "promote/eq", torch.eq)
    # One row for each of: + true, + 1, + 1.5, * 2, / 2, // 2
    scalar_ops = [lambda t: t + True, lambda t: t + 1, lambda t: t + 1.5, lambda t: t * 2, lambda t: t / 2, lambda t: t // 2]
    vectors.add("promote/scalar", torch.tensor([[code(lambda: op(torch.ones(2, dtype=d))) for d in DTYPES] for op in scalar_ops]))
    vectors.note("promote/scalar rows", "+true +1 +1.5 *2 /2 //2")
    unary = {"sum": torch.sum, "prod": torch.prod, "cumsum": lambda t: torch.cumsum(t, 0), "mean": torch.mean, "exp": torch.exp, "sqrt": torch.sqrt, "abs": torch.abs, "neg": torch.neg}
    for name, op in unary.items():
        vectors.add(f"unary/{name}", torch.tensor([code(lambda: op(torch.ones(2, dtype=d))) for d in DTYPES]))


def division(vectors):
    """floor_divide, remainder, fmod and both rounding modes, for signs that matter and for floats that misbehave."""
    numbers = [-7, -6, -3, -2, -1, 1, 2, 3, 6, 7]
    whole = torch.tensor([-9, *numbers, 0, 8])
    operands = {
        "int64": (whole, torch.tensor(numbers)),
        "int32": (whole.int(), torch.tensor(numbers, dtype=torch.int32)),
        "uint8": (torch.tensor([0, 1, 5, 7, 200, 255], dtype=torch.uint8), torch.tensor([1, 2, 3, 7, 100, 255], dtype=torch.uint8)),
        "float32": tuple(torch.tensor(v) for v in ([-INF, -7.5, -1.0, -0.0, 0.0, 0.3, 1.0, 7.5, INF, NAN], [-INF, -2.5, -1.0, -0.0, 0.0, 0.1, 1.0, 2.5, INF, NAN])),
    }
    ops = {
        "floor_divide": torch.floor_divide,
        "trunc_divide": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
        "remainder": torch.remainder,
        "fmod": torch.fmod,
        "div": torch.div,
    }
    for dtype, (a, b) in operands.items():
        vectors.add(f"division/{dtype}/a", a[:, None])
        vectors.add(f"division/{dtype}/b", b)
        for name, op in ops.items():
            vectors.add(f"division/{dtype}/{name}", op(a[:, None], b))


def arithmetic(vectors):
    """Results that go wrong when integers take a road through floats, or bytes do not wrap."""
    big = torch.tensor([16777217, -16777217, 2**53 + 1, 2**62])
    vectors.add("int64/x", big)
    vectors.add("int64/plus_zero", big + 0)
    vectors.add("int64/times_three", big * 3)
    vectors.add("int64/sum", big.sum())
    byte = torch.tensor([0, 1, 127, 128, 200, 255], dtype=torch.uint8)
    vectors.add("uint8/x", byte)
    for name, result in {"plus": byte + byte, "times": byte * byte, "minus": byte - byte.flip(0), "neg": -byte, "sum": byte.sum()}.items():
        vectors.add(f"uint8/{name}", result)


def conversion(vectors):
    """Every dtype from every other, for values that all of them may hold in some form."""
    plain = torch.tensor([0.0, 1.0, 2.5, 3.99, 100.0, 250.0], dtype=torch.float64)
    for source, dtype in zip(ORDER, DTYPES):
        start = plain.to(dtype)
        vectors.add(f"convert/{source}", start)
        for target, other in zip(ORDER, DTYPES):
            vectors.add(f"convert/{source}/{target}", start.to(other))
    # Rounding to the half types: ties to even, overflow to infinity, subnormals.
    floats = [1.0, 1.0009765625, 1.00048828125, 1.00146484375, 1.00390625, 1.01171875, 65504.0, 65519.0, 65520.0, 1e-7, 5.96e-8, 2.9e-8, 6.1e-5, -0.0, 3.4e38, 1e-40, 0.1, -INF, NAN]
    rounded = torch.tensor(floats)
    vectors.add("round/float32", rounded)
    vectors.add("round/float16", rounded.half())
    vectors.add("round/bfloat16", rounded.bfloat16())


def make():
    vectors = Vectors()
    promotion(vectors)
    division(vectors)
    arithmetic(vectors)
    conversion(vectors)
    return vectors
