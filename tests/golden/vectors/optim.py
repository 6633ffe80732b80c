"""20 steps of every optimizer, the learning rates of every schedule, gradient clipping.

The gradients are given, not computed: the vectors test the update rule alone. For a configuration `adam.plain`:

    adam.plain                 (metadata) the call
    adam.plain/p0, p1          the two parameters after each step: [20, ...]
    start/p0, p1, grad/p0, p1  their start values and the gradients of each step, the same for all configurations

Float64, like the operations: the C++ test runs in float64 and in float32.
"""
import torch

from .file import Vectors

STEPS = 20
SHAPES = [(3, 4), (5,)]

CONFIGURATIONS = {
    "sgd.plain": "torch.optim.SGD(p, lr=0.1)",
    "sgd.momentum": "torch.optim.SGD(p, lr=0.05, momentum=0.9)",
    "sgd.dampening": "torch.optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.3)",
    "sgd.nesterov": "torch.optim.SGD(p, lr=0.05, momentum=0.8, nesterov=True)",
    "sgd.weight_decay": "torch.optim.SGD(p, lr=0.1, weight_decay=0.05)",
    "sgd.everything": "torch.optim.SGD(p, lr=0.02, momentum=0.9, weight_decay=0.1, nesterov=True)",
    "adam.plain": "torch.optim.Adam(p, lr=0.01)",
    "adam.betas": "torch.optim.Adam(p, lr=0.02, betas=(0.5, 0.9), eps=1e-3)",
    "adam.weight_decay": "torch.optim.Adam(p, lr=0.01, weight_decay=0.1)",
    "adamw.plain": "torch.optim.AdamW(p, lr=0.01)",
    "adamw.weight_decay": "torch.optim.AdamW(p, lr=0.01, weight_decay=0.2)",
    "adamw.betas": "torch.optim.AdamW(p, lr=0.02, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.05)",
}

SCHEDULES = {
    "step_lr": "torch.optim.lr_scheduler.StepLR(o, step_size=3, gamma=0.5)",
    "step_lr.tenth": "torch.optim.lr_scheduler.StepLR(o, step_size=7)",
    "cosine": "torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=10)",
    "cosine.floor": "torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=7, eta_min=0.01)",
}


def start_and_gradients():
    gen = torch.Generator().manual_seed(20)
    starts = [torch.randn(shape, generator=gen) for shape in SHAPES]
    grads = [torch.randn(STEPS, *shape, generator=gen) for shape in SHAPES]
    # Zero gradients, a large and a tiny one: where eps and its place matter.
    grads[1][:, 0] = 0
    grads[1][3, 1] = 1e4
    grads[1][:, 2] *= 1e-7
    return starts, grads


def add_configuration(vectors, name, call, starts, grads):
    params = [start.double().requires_grad_() for start in starts]
    optimizer = eval(call, {"torch": torch}, {"p": params})
    history = [[] for _ in params]
    for step in range(STEPS):
        for param, grad, past in zip(params, grads, history):
            param.grad = grad[step].double()
        optimizer.step()
        for param, past in zip(params, history):
            past.append(param.detach().clone())
    vectors.note(name, call)
    for number, past in enumerate(history):
        vectors.add(f"{name}/p{number}", torch.stack(past))


def add_schedule(vectors, name, call):
    """The rate in force at each of 25 epochs: before any step, after one, and so on."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    schedule = eval(call, {"torch": torch}, {"o": optimizer})
    rates = []
    for _ in range(25):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    vectors.note(name, call)
    vectors.add(f"{name}/lr", torch.tensor(rates, dtype=torch.float64))


def add_clipping(vectors, grads):
    calls = {
        "clip_norm.cut": "clip_grad_norm_(p, 1.5)",
        "clip_norm.inside": "clip_grad_norm_(p, 1000.0)",
        "clip_norm.p1": "clip_grad_norm_(p, 2.0, norm_type=1)",
        "clip_norm.inf": "clip_grad_norm_(p, 0.5, norm_type=float('inf'))",
        "clip_value": "clip_grad_value_(p, 0.4)",
    }
    for name, call in calls.items():
        params = [torch.zeros(shape, dtype=torch.float64, requires_grad=True) for shape in SHAPES]
        for param, grad in zip(params, grads):
            param.grad = grad[0].double()
        norm = eval(call, vars(torch.nn.utils), {"p": params})
        vectors.note(name, call)
        if norm is not None:
            vectors.add(f"{name}/norm", norm)
        for number, param in enumerate(params):
            vectors.add(f"{name}/grad{number}", param.grad)


def make():
    vectors = Vectors()
    starts, grads = start_and_gradients()
    for number, (start, grad) in enumerate(zip(starts, grads)):
        vectors.add(f"start/p{number}", start)
        vectors.add(f"grad/p{number}", grad)
    for name, call in CONFIGURATIONS.items():
        add_configuration(vectors, name, call, starts, grads)
    for name, call in SCHEDULES.items():
        add_schedule(vectors, name, call)
    add_clipping(vectors, grads)
    return vectors
