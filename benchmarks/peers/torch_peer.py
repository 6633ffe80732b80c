#!/usr/bin/env python3
"""The work of lesson 03's and 04's benchmarks in PyTorch, to stand beside Gradus's own numbers.

    python3 -m venv venv && venv/bin/pip install torch numpy
    venv/bin/python benchmarks/peers/torch_peer.py --threads 1 --json torch_1.json

Neither the build nor the tests need PyTorch. Each case does one piece of work per call: a train step with zero_grad,
forward, loss, backward and optimizer step; one element-wise operation; an epoch of the loader. A case is warmed up,
then timed `--repetitions` times (at least 9), each repetition long enough for the clock; the cases take turns, so that
a slow moment of the machine does not fall on one of them. Printed and written: the median, quartiles and all samples.
With --device cuda the train steps alone, eager and by torch.compile, timed by events in the GPU's stream, TF32 as PyTorch has it
by default: as benchmarks/04_train_loop_bench.cpp times Gradus's.
The whole takes one to two minutes with one thread. Pin it (`taskset -c 0` with --threads 1) and leave the machine alone.
"""
import argparse
import json
import os
import platform
import statistics
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset


def seeds_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(3136, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, 10),
    )  # fmt: skip


def simple_net():
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


def tiny():
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))


def train_step(model, x, target, loss_of, fused, compiled):
    """One step of training as a function without arguments; fused: Adam as one kernel per group."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=fused)
    run = torch.compile(model) if compiled else model

    def step():
        optimizer.zero_grad()
        loss_of(run(x), target).backward()
        optimizer.step()

    return step


def training_cases(fused, device="cpu", compiled=False):
    ce, mse = nn.functional.cross_entropy, nn.functional.mse_loss
    ending = ("/compiled" if compiled else "") + ("/fused_adam" if fused else "")
    images, labels = torch.randn(256, 1, 28, 28, device=device), torch.randint(0, 10, (256,), device=device)
    rows, numbers = torch.randn(32, 16, device=device), torch.randn(32, 1, device=device)
    last = torch.channels_last

    def case(model, x, target, loss_of):
        return train_step(model.to(device), x, target, loss_of, fused, compiled)

    yield f"cnn/256{ending}", case(seeds_cnn(), images, labels, ce)
    yield f"cnn/256/channels_last{ending}", case(seeds_cnn().to(memory_format=last), images.to(memory_format=last), labels, ce)
    yield f"simple_net/32{ending}", case(simple_net(), images[:32].flatten(1), labels[:32], ce)
    yield f"tiny/32{ending}", case(tiny(), rows, numbers, mse)


def elementwise_cases():
    x, y = torch.randn(16), torch.randn(16)
    leaf = torch.randn(16, requires_grad=True)
    yield "mul/16", lambda: x * y
    yield "mul/16/grad", lambda: leaf * y
    yield "exp/16", lambda: torch.exp(x)


class Pictures(Dataset):
    """Fashion-MNIST's shape with a transform for each sample: to float, divide by 255, normalise."""

    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        picture = self.images[index].unsqueeze(0).float().div(255)
        return picture.sub(0.2860).div(0.3530), self.labels[index]


def loader_cases(count, workers):
    """Epochs over made pictures; `count` pictures an epoch, persistent workers so that forking is not timed."""
    pixels = torch.randint(0, 256, (count, 28, 28), dtype=torch.uint8)
    labels = torch.randint(0, 10, (count,))
    ready = (pixels.float().div(255).sub(0.2860) / 0.3530).unsqueeze(1)
    for name, data in [("per_sample", Pictures(pixels, labels)), ("tensor", TensorDataset(ready, labels))]:
        loader = DataLoader(data, batch_size=256, shuffle=True, num_workers=workers, persistent_workers=workers > 0)

        def epoch(loader=loader):
            for _ in loader:
                pass

        yield f"loader/{name}/{workers}_workers", epoch


def timed(work, calls, device="cpu"):
    """Seconds of one call: by the host's clock, on a GPU by its own."""
    if device == "cpu":
        start = time.perf_counter()
        for _ in range(calls):
            work()
        return (time.perf_counter() - start) / calls
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    work()  # the GPU is at work, and the host ahead of it, as its clock starts
    begin.record()
    for _ in range(calls):
        work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1000 / calls


def calls_per_sample(work, least_seconds, device):
    """Warms up and finds how many calls make one repetition last long enough."""
    timed(work, 3, device)
    calls = 1
    while timed(work, calls, device) * calls < least_seconds:
        calls *= 2
    return calls


def measure(cases, repetitions, least_seconds, device):
    """Seconds per call of each case: {name: [one number per repetition]}, the cases taking turns."""
    calls = {name: calls_per_sample(work, least_seconds, device) for name, work in cases.items()}
    samples = {name: [] for name in cases}
    for _ in range(repetitions):
        for name, work in cases.items():
            samples[name].append(timed(work, calls[name], device))
    return samples


def summary(name, samples, items):
    low, median, high = statistics.quantiles(samples, n=4)
    result = {"median_s": median, "quartiles_s": [low, high], "samples_s": samples}
    if name in items:
        result["items_per_s"] = items[name] / median
    rate = f"  {result['items_per_s']:12,.0f} images/s" if name in items else ""
    print(f"{name:40} {median * 1e6:12.2f} us  [{low * 1e6:.2f}, {high * 1e6:.2f}]{rate}")
    return result


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1, help="threads PyTorch may use for an operation (default 1)")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--json", metavar="FILE", help="write the results here")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--images", type=int, default=60000, help="pictures in a loader's epoch (default 60000)")
    parser.add_argument("--filter", default="", help="only the cases whose name contains this text")
    parser.add_argument("--quick", action="store_true", help="a check that it runs; its numbers mean nothing")
    args = parser.parse_args()
    if args.repetitions < 9:
        parser.error(f"--repetitions: at least 9 are needed for a median worth quoting, not {args.repetitions}")
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error(f"--device cuda: PyTorch {torch.__version__} finds no GPU that it can use")
    return args


def that_run(cases):
    """The cases whose work can be done: torch.compile needs Triton and a C compiler."""
    for name, work in cases:
        try:
            work()
            yield name, work
        except Exception as error:  # noqa: BLE001  whatever a compiler throws
            print(f"{name}: left out: {str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__}")


def cases_on_gpu():
    return {**dict(training_cases(False, "cuda")), **dict(training_cases(True, "cuda")),
            **dict(that_run(training_cases(True, "cuda", compiled=True)))}


def cases_on_cpu():
    return {**dict(training_cases(False)), **dict(training_cases(True)), **dict(elementwise_cases())}


def main():
    args = parse()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    images = 2000 if args.quick else args.images
    on_cpu = args.device == "cpu"
    loaders = dict(loader_cases(images, workers=2)) if on_cpu else {}
    cases = cases_on_cpu() if on_cpu else cases_on_gpu()
    items = {name: 256 if name.startswith("cnn") else 32 for name in cases if "/16" not in name}
    items |= dict.fromkeys(loaders, images)

    # The loaders have work of their own in other processes, so they are measured apart from the rest.
    repetitions, least = (2, 0.001) if args.quick else (args.repetitions, 0.2)
    wanted = [{n: w for n, w in group.items() if args.filter in n} for group in (cases, loaders)]
    samples = {}
    for group, seconds in zip(wanted, (least, 0.0)):
        samples |= measure(group, repetitions, seconds, args.device)

    print(f"PyTorch {torch.__version__}, {args.threads} thread(s), {repetitions} repetitions")
    results = {name: summary(name, taken, items) for name, taken in samples.items()}
    if args.json:
        run = {
            "peer": f"PyTorch {torch.__version__}",
            "device": args.device if on_cpu else torch.cuda.get_device_name(),
            "threads": args.threads,
            "repetitions": repetitions,
            "quick": args.quick,
            "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
            "cases": results,
        }
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(run, file, indent=1)


if __name__ == "__main__":
    main()
