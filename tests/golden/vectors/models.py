"""Whole networks over 5 training steps, from weights and data given by a formula.

Storing 3 MB of weights would be a waste: element i of array s is made from integers alone, the same in any language,

    h = i * 0x9E3779B1 + s * 0x85EBCA77 + 1      (all in uint32)
    h = (h ^ h >> 16) * 0x85EBCA6B;  h = (h ^ h >> 13) * 0xC2B2AE35;  h = h ^ h >> 16
    weight = (h / 256 - 2^23) / 2^23 * scale     (in [-1, 1) * scale; scale is a power of two, so this is exact)

where s is the parameter's place in model.named_parameters(), and scale is 1/sqrt(fan_in) rounded down to a power of
two (for biases too, with their layer's fan_in); weight of a batch or layer norm: 1 + weight/4. Data use s = 1000 and
1001. For the model `cnn` in float64 (`cnn/float64/...`) and in float32:

    losses            [5]       before each step
    grads             [P, 2]    sum and sum of absolute values of each parameter's gradient in the first step
    after             [5, P, 2] the same of each parameter after each step
    sample/NAME       [5, K]    every stride-th element of the parameter after each step, K <= 16; stride = ceil(n / 16)
    buffer/NAME       [...]     the buffers at the end; output: what the model in eval mode gives then
"""
import math

import torch
from torch import nn

from .file import Vectors

STEPS = 5
M = 0xFFFFFFFF


def hashes(count, stream):
    """uint32 hashes of 0 .. count-1, as int64."""
    h = (torch.arange(count) * 0x9E3779B1 + (stream * 0x85EBCA77 + 1)) & M
    h = multiply(h ^ h >> 16, 0x85EBCA6B)
    h = multiply(h ^ h >> 13, 0xC2B2AE35)
    return h ^ h >> 16


def multiply(h, factor):
    """h * factor in uint32, in two halves because int64 would overflow."""
    return ((h & 0xFFFF) * factor + ((((h >> 16) * factor) & 0xFFFF) << 16)) & M


def signed_unit(shape, stream):
    return ((hashes(math.prod(shape), stream) >> 8) - 2**23).double().div(2**23).reshape(shape)


def power_of_two_scale(fan_in):
    return 2.0 ** math.floor(math.log2(1 / math.sqrt(fan_in)))


def set_weights(model):
    """Fills all parameters by the formula; a bias takes the fan_in of the weight before it."""
    fan_in = 1
    with torch.no_grad():
        for stream, (name, param) in enumerate(model.named_parameters()):
            layer = model.get_submodule(name.rpartition(".")[0])
            unit = signed_unit(tuple(param.shape), stream)
            if isinstance(layer, (nn.BatchNorm2d, nn.LayerNorm)):
                param.copy_(unit / 4 + (1 if name.endswith("weight") else 0))
                continue
            if name.endswith("weight"):
                fan_in = math.prod(param.shape[1:])
            param.copy_(unit * power_of_two_scale(fan_in))


def images(count, side):
    """count grey images, as bytes / 255 rounded to float32."""
    pixels = hashes(count * side * side, 1000) & 0xFF
    return (pixels.float() / 255).reshape(count, 1, side, side)


def labels(count, classes):
    return hashes(count, 1001) % classes


def cnn():
    """The CNN of lesson 04 (dropout with p = 0: its mask is no matter of this test)."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(3136, 256), nn.ReLU(), nn.Dropout(0.0), nn.Linear(256, 10),
    )  # fmt: skip


def simple_net():
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


def tiny():
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))


def normed():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(),
        nn.AvgPool2d(2), nn.Flatten(), nn.Linear(64, 3),
    )  # fmt: skip


def layer_normed():
    return nn.Sequential(nn.Embedding(11, 8), nn.LayerNorm(8), nn.GELU(), nn.Flatten(), nn.Linear(40, 4))


def cross_entropy_on(x, classes):
    return x, labels(len(x), classes), nn.functional.cross_entropy


MODELS = {
    "cnn": (cnn, lambda: cross_entropy_on(images(4, 28), 10), "torch.optim.Adam(p, lr=1e-3)"),
    "simple_net": (simple_net, lambda: cross_entropy_on(images(16, 28).flatten(1), 10), "torch.optim.Adam(p, lr=1e-3)"),
    "tiny": (tiny, lambda: (signed_unit((32, 16), 1000), signed_unit((32, 1), 1001), nn.functional.mse_loss), "torch.optim.Adam(p, lr=1e-2)"),
    "normed": (normed, lambda: cross_entropy_on(images(6, 8), 3), "torch.optim.SGD(p, lr=0.1, momentum=0.9)"),
    "layer_normed": (layer_normed, lambda: cross_entropy_on((hashes(7 * 5, 1000) % 11).reshape(7, 5), 4), "torch.optim.AdamW(p, lr=1e-2, weight_decay=0.1)"),
}  # fmt: skip


def sums(tensors):
    return torch.stack([torch.stack([t.double().sum(), t.double().abs().sum()]) for t in tensors])


def sample(tensor):
    flat = tensor.detach().flatten()
    return flat[:: -(-flat.numel() // 16)].clone()


def train(vectors, name, dtype):
    """Trains one model and records it under name/dtype/."""
    build, data, optimizer_call = MODELS[name]
    model = build().to(dtype)
    set_weights(model)
    x, target, loss_of = data()
    x, target = [t.to(dtype) if t.is_floating_point() else t for t in (x, target)]
    named = dict(model.named_parameters())
    optimizer = eval(optimizer_call, {"torch": torch}, {"p": model.parameters()})

    losses, after, samples = [], [], {key: [] for key in named}
    prefix = f"{name}/{str(dtype).removeprefix('torch.')}"
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model(x), target)
        loss.backward()
        if step == 0:
            vectors.add(f"{prefix}/grads", sums([p.grad for p in named.values()]))
        optimizer.step()
        losses.append(loss.detach())
        after.append(sums(named.values()))
        for key, param in named.items():
            samples[key].append(sample(param))
    vectors.add(f"{prefix}/losses", torch.stack(losses))
    vectors.add(f"{prefix}/after", torch.stack(after))
    for key, rows in samples.items():
        vectors.add(f"{prefix}/sample/{key}", torch.stack(rows))
    for key, buffer in model.named_buffers():
        vectors.add(f"{prefix}/buffer/{key}", buffer)
    vectors.add(f"{prefix}/output", model.eval()(x))


def make():
    vectors = Vectors()
    for name, (_, _, optimizer_call) in MODELS.items():
        vectors.note(name, optimizer_call)
        for dtype in (torch.float64, torch.float32):
            train(vectors, name, dtype)
    return vectors
