"""Autocast's result dtypes, GradScaler's history, and gradient accumulation.

    order                      (metadata) the dtypes that numbers stand for; -1: refused
    autocast/cpu/NAME          the result's dtype of an operation on half inputs, on float32, on half and float32 (where
                               there are two), on float64; the half type is bfloat16 on cpu and float16 on cuda
    scaler/grad                the gradients of 40 steps, with infinities and NaN injected
    scaler/scale, tracker, p   what each step left
    accumulation/...           7 micro-batches in groups of 4: the last group is of 3, and is divided by 3

The dtypes for cuda come from PyTorch's own dispatch, on fake tensors: no GPU is needed.
"""
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

from .file import Vectors

ORDER = [torch.float16, torch.bfloat16, torch.float32, torch.float64]

# x, y (2, 3) positive and below 1; i (1, 2, 4, 4); t two class indices.
CASES = {
    "linear": lambda x, y, i, t: F.linear(x, y),
    "matmul": lambda x, y, i, t: x.matmul(y.t()),
    "mm": lambda x, y, i, t: torch.mm(x, y.t()),
    "bmm": lambda x, y, i, t: torch.bmm(x[None], y.t()[None]),
    "vector": lambda x, y, i, t: x.matmul(y[0]),
    "conv2d": lambda x, y, i, t: F.conv2d(i, i),
    "exp": lambda x, y, i, t: x.exp(),
    "expm1": lambda x, y, i, t: x.expm1(),
    "log": lambda x, y, i, t: x.log(),
    "log1p": lambda x, y, i, t: x.log1p(),
    "reciprocal": lambda x, y, i, t: x.reciprocal(),
    "rdiv": lambda x, y, i, t: 1 / x,
    "rsqrt": lambda x, y, i, t: x.rsqrt(),
    "pow": lambda x, y, i, t: x.pow(3),
    "pow_tensor": lambda x, y, i, t: x.pow(y),
    "pow_of_number": lambda x, y, i, t: torch.pow(2, x),
    "softplus": lambda x, y, i, t: F.softplus(x),
    "softmax": lambda x, y, i, t: x.softmax(1),
    "log_softmax": lambda x, y, i, t: x.log_softmax(1),
    "logsumexp": lambda x, y, i, t: x.logsumexp(1),
    "layer_norm": lambda x, y, i, t: F.layer_norm(x, (3,)),
    "sum": lambda x, y, i, t: x.sum(),
    "sum_dim": lambda x, y, i, t: x.sum(1),
    "cumsum": lambda x, y, i, t: x.cumsum(1),
    "prod": lambda x, y, i, t: x.prod(),
    "prod_dim": lambda x, y, i, t: x.prod(1),
    "norm": lambda x, y, i, t: x.norm(),
    "mse_loss": lambda x, y, i, t: F.mse_loss(x, y),
    "l1_loss": lambda x, y, i, t: F.l1_loss(x, y),
    "huber_loss": lambda x, y, i, t: F.huber_loss(x, y),
    "smooth_l1_loss": lambda x, y, i, t: F.smooth_l1_loss(x, y),
    "binary_cross_entropy": lambda x, y, i, t: F.binary_cross_entropy(x, y),
    "binary_cross_entropy_with_logits": lambda x, y, i, t: F.binary_cross_entropy_with_logits(x, y),
    "cross_entropy": lambda x, y, i, t: F.cross_entropy(x, t),
    "cross_entropy_soft": lambda x, y, i, t: F.cross_entropy(x, y),
    "nll_loss": lambda x, y, i, t: F.nll_loss(x, t),
    "pad_reflect": lambda x, y, i, t: F.pad(i, (1, 1, 1, 1), mode="reflect"),
    "pad_replicate": lambda x, y, i, t: F.pad(i, (1, 1, 1, 1), mode="replicate"),
    "pad_constant": lambda x, y, i, t: F.pad(i, (1, 1, 1, 1)),
    "cat": lambda x, y, i, t: torch.cat([x, y]),
    "stack": lambda x, y, i, t: torch.stack([x, y]),
    "add": lambda x, y, i, t: x + y,
    "mul": lambda x, y, i, t: x * y,
    "div": lambda x, y, i, t: x / y,
    "where": lambda x, y, i, t: torch.where(x > 0, x, y),
    "mean": lambda x, y, i, t: x.mean(),
    "var": lambda x, y, i, t: x.var(),
    "sqrt": lambda x, y, i, t: x.sqrt(),
    "relu": lambda x, y, i, t: x.relu(),
    "gelu": lambda x, y, i, t: F.gelu(x),
    "silu": lambda x, y, i, t: F.silu(x),
    "sigmoid": lambda x, y, i, t: x.sigmoid(),
    "tanh": lambda x, y, i, t: x.tanh(),
    "max_pool2d": lambda x, y, i, t: F.max_pool2d(i, 2),
    "avg_pool2d": lambda x, y, i, t: F.avg_pool2d(i, 2),
    "batch_norm": lambda x, y, i, t: F.batch_norm(i, None, None, training=True),
}


def dtype_number(case, device, first, second):
    x, y = (torch.full((2, 3), 0.5, dtype=d, device=device) for d in (first, second))
    i = torch.full((1, 2, 4, 4), 0.5, dtype=first, device=device)
    t = torch.zeros(2, dtype=torch.int64, device=device)
    try:
        return ORDER.index(case(x, y, i, t).dtype)
    except RuntimeError:
        return -1


def add_autocast(vectors):
    rows = {}
    for device, half in (("cpu", torch.bfloat16), ("cuda", torch.float16)):
        pairs = [(half, half), (torch.float32, torch.float32), (half, torch.float32), (torch.float64, torch.float64)]
        torch.set_autocast_enabled(device, True)
        with FakeTensorMode():
            for name, case in CASES.items():
                row = [dtype_number(case, device, *pair) for pair in pairs]
                rows[f"autocast/{device}/{name}"] = row
        torch.set_autocast_enabled(device, False)
    for name, row in rows.items():
        vectors.add(name, torch.tensor(row))


def add_scaler(vectors):
    """Adam on one parameter."""
    gen = torch.Generator().manual_seed(8)
    grads = torch.randn(40, 3, generator=gen)
    for step, value in ((0, "inf"), (1, "nan"), (9, "-inf"), (20, "inf"), (21, "inf"), (33, "nan")):
        grads[step, step % 3] = float(value)
    p = torch.tensor([1.0, -2.0, 0.5], requires_grad=True)
    optimizer = torch.optim.Adam([p], lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_factor=1.7, backoff_factor=0.3, growth_interval=4)
    scales, trackers, params = [], [], []
    for grad in grads:
        optimizer.zero_grad()
        scaler.scale((p * grad).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        trackers.append(scaler._get_growth_tracker())
        params.append(p.detach().clone())
    vectors.add("scaler/grad", grads)
    vectors.add("scaler/scale", torch.tensor(scales, dtype=torch.float64))
    vectors.add("scaler/tracker", torch.tensor(trackers))
    vectors.add("scaler/p", torch.stack(params))


def add_accumulation(vectors):
    gen = torch.Generator().manual_seed(9)
    x, y = torch.randn(7, 5, 4, generator=gen).double(), torch.randn(7, 5, 2, generator=gen).double()
    start = torch.randn(2, 4, generator=gen).double()
    vectors.add("accumulation/x", x)
    vectors.add("accumulation/y", y)
    vectors.add("accumulation/start", start)
    w = start.clone().requires_grad_()
    optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    grads, params = [], []
    for first in (0, 4):
        group = range(first, min(first + 4, 7))
        optimizer.zero_grad()
        for k in group:
            (F.mse_loss(F.linear(x[k], w), y[k]) / len(group)).backward()
        grads.append(w.grad.clone())
        optimizer.step()
        params.append(w.detach().clone())
    vectors.add("accumulation/grad", torch.stack(grads))
    vectors.add("accumulation/w", torch.stack(params))


def make():
    vectors = Vectors()
    vectors.note("order", " ".join(str(d).removeprefix("torch.") for d in ORDER))
    add_autocast(vectors)
    add_scaler(vectors)
    add_accumulation(vectors)
    return vectors
