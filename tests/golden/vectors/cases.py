"""One operation with its inputs, results and input gradients.

A case is a Python expression over named inputs. For the case `conv2d.stride` over x, w the file holds

    conv2d.stride                (metadata) the expression: what the C++ test writes in C++
    conv2d.stride/in/x           the inputs; floating ones are float32
    conv2d.stride/out/0, 1, ...  the results, one for each tensor the expression gives
    conv2d.stride/cot/0, ...     the cotangent of each floating result that has a gradient
    conv2d.stride/grad/x, ...    the gradients of the floating inputs

Results and gradients are computed and stored in float64, from the float32 inputs: the test compares its float64 run
with them tightly, and its float32 run with a tolerance that has to cover the error of one float32 run, not of two.
"""
import zlib

import torch
import torch.nn.functional as F


def normal(*shape):
    return lambda gen: torch.randn(shape, generator=gen)


def uniform(low, high, *shape):
    return lambda gen: torch.rand(shape, generator=gen) * (high - low) + low


def integers(low, high, *shape):
    return lambda gen: torch.randint(low, high, shape, generator=gen)


def values(data, dtype=None):
    return lambda gen: torch.tensor(data, dtype=dtype)


def booleans(*shape):
    return lambda gen: torch.rand(shape, generator=gen) < 0.5


def widened(tensor):
    return tensor.double() if tensor.is_floating_point() else tensor.clone()


def add_case(vectors, name, expression, constant=(), **inputs):
    """Adds one case; the inputs named in `constant` get no gradient."""
    gen = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    given = {key: make(gen) for key, make in inputs.items()}
    args = {key: widened(tensor) for key, tensor in given.items()}
    wanted = [key for key, tensor in args.items() if tensor.is_floating_point() and key not in constant]
    for key in wanted:
        args[key].requires_grad_()

    vectors.note(name, expression)
    for key, tensor in given.items():
        vectors.add(f"{name}/in/{key}", tensor)
    results = eval(expression, {"torch": torch, "F": F}, args)
    results = [results] if isinstance(results, torch.Tensor) else list(results)
    loss = None
    for number, result in enumerate(results):
        vectors.add(f"{name}/out/{number}", result)
        if result.requires_grad:
            cotangent = torch.randn(result.shape, generator=gen)
            vectors.add(f"{name}/cot/{number}", cotangent)
            term = (result * cotangent.double()).sum()
            loss = term if loss is None else loss + term
    if loss is None:
        return
    grads = torch.autograd.grad(loss, [args[key] for key in wanted], allow_unused=True)
    for key, grad in zip(wanted, grads):
        if grad is not None:
            vectors.add(f"{name}/grad/{key}", grad)
