"""PyTorch's side of ./gradus bench --peer torch: the cases of cases.cpp, on the same numbers, by the protocol of worker.cpp.

    python3 torch_worker.py DEVICE THREADS

Each case is a function of its parameters and a variant, a set of words: channels_last, fused (Adam), compile. It returns the
numbers that the other side must get too, and a function to time.
"""
import json
import os
import sys
import tempfile
import time

import numpy
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

CHECKED_STEPS = 3


def numbers(shape, which, bound=1.0):
    """Numbers in [-bound, bound): element i is a hash of i and `which`, its upper 24 bits as a float32 (numbers.cpp)."""
    count = int(numpy.prod(shape))
    h = numpy.arange(count, dtype=numpy.uint32) + numpy.uint32(which * 0x9E3779B9 % 2**32)
    h = (h ^ (h >> numpy.uint32(16))) * numpy.uint32(0x85EBCA6B)
    h = (h ^ (h >> numpy.uint32(13))) * numpy.uint32(0xC2B2AE35)
    h ^= h >> numpy.uint32(16)
    unit = (h >> numpy.uint32(8)).astype(numpy.float32) * numpy.float32(2.0**-23) - numpy.float32(1)
    return torch.from_numpy((unit * numpy.float32(bound)).reshape(shape))


def labels(count, classes):
    return torch.arange(count) % classes


def size_of(tensor):
    return tensor.detach().cpu().double().abs().sum().item()


class Cases:
    """The cases by name, for one device; `folder` is for files."""

    def __init__(self, device, folder):
        self.device, self.folder = device, folder

    def to_device(self, tensor, variant=()):
        tensor = tensor.to(self.device)
        return tensor.to(memory_format=torch.channels_last) if "channels_last" in variant and tensor.dim() == 4 else tensor

    def trainer(self, model, variant, loss_of):
        """A step of training on (x, target) as a function that returns the loss; and the model."""
        with torch.no_grad():
            for at, p in enumerate(model.parameters()):
                p.copy_(numbers(p.shape, 100 + at, (p.numel() / p.shape[0]) ** -0.5 if p.dim() > 1 else 0.1))
        model = model.to(self.device)
        if "channels_last" in variant:
            model = model.to(memory_format=torch.channels_last)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused="fused" in variant)
        run = torch.compile(model) if "compile" in variant else model

        def step(x, target):
            optimizer.zero_grad()
            loss = loss_of(run(x), target)
            loss.backward()
            optimizer.step()
            return loss

        return step, model

    def train_step(self, model, variant, x, target, loss_of):
        step, model = self.trainer(model, variant, loss_of)
        x, target = self.to_device(x, variant), self.to_device(target)
        model.eval()  # without dropout, whose masks differ
        check = [step(x, target).item() for _ in range(CHECKED_STEPS)]
        model.train()
        return check, lambda: step(x, target)

    def cnn_step(self, variant, batch):
        return self.train_step(cnn(), variant, numbers((batch, 1, 28, 28), 1), labels(batch, 10), functional.cross_entropy)

    def simple_net_step(self, variant, batch):
        model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
        return self.train_step(model, variant, numbers((batch, 784), 1), labels(batch, 10), functional.cross_entropy)

    def small_net_step(self, variant, batch):
        model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
        return self.train_step(model, variant, numbers((batch, 16), 1), numbers((batch, 1), 2), functional.mse_loss)

    def cnn_epoch(self, variant, batch, images):
        data = TensorDataset(numbers((images, 1, 28, 28), 1), labels(images, 10))
        step, model = self.trainer(cnn(), variant, functional.cross_entropy)

        def epoch(shuffle):
            for x, target in DataLoader(data, batch_size=batch, shuffle=shuffle):
                loss = step(self.to_device(x, variant), self.to_device(target))
            return loss

        model.eval()
        check = [epoch(False).item()]
        model.train()
        return check, lambda: epoch(True)

    def matmul(self, _, n, dtype):
        a, b = (numbers((n, n), which).to(getattr(torch, dtype)).to(self.device) for which in (1, 2))
        return [size_of(a @ b)], lambda: a @ b

    def add(self, _, n):
        a, b = (numbers((n,), which).to(self.device) for which in (1, 2))
        return [size_of(a + b)], lambda: a + b

    def relu(self, _, n):
        a = numbers((n,), 1).to(self.device)
        return [size_of(torch.relu(a))], lambda: torch.relu(a)

    def adam(self, variant, n):
        w = numbers((n,), 1).to(self.device).requires_grad_()
        w.grad = numbers((n,), 2).to(self.device)
        optimizer = torch.optim.Adam([w], fused="fused" in variant, foreach="foreach" in variant or None)
        for _ in range(CHECKED_STEPS):
            optimizer.step()
        return [size_of(w)], optimizer.step

    def differentiated(self, leaves, run, gradient=None):
        """An operation forward and backward: a new gradient for each leaf."""
        for leaf in leaves:
            leaf.requires_grad_()

        def call():
            for leaf in leaves:
                leaf.grad = None
            run().backward(gradient)

        call()
        return [size_of(run()), *map(size_of, (leaf.grad for leaf in leaves))], call

    def softmax_cross_entropy(self, variant, rows, classes):
        x, target = self.to_device(numbers((rows, classes), 1, 3)), self.to_device(labels(rows, classes))
        run = torch.compile(functional.cross_entropy) if "compile" in variant else functional.cross_entropy
        return self.differentiated([x], lambda: run(x, target))

    def conv(self, variant, batch):
        x = self.to_device(numbers((batch, 32, 14, 14), 1), variant)
        w = self.to_device(numbers((64, 32, 3, 3), 2, 0.06), variant)
        b = self.to_device(numbers((64,), 3, 0.1))
        gradient = self.to_device(numbers((batch, 64, 14, 14), 4), variant)
        return self.differentiated([x, w, b], lambda: functional.conv2d(x, w, b, padding=1), gradient)

    def batch_norm(self, variant, batch):
        x = self.to_device(numbers((batch, 64, 14, 14), 1), variant)
        w, b = (self.to_device(numbers((64,), which)) for which in (2, 3))
        mean, var = torch.zeros(64, device=self.device), torch.ones(64, device=self.device)
        gradient = self.to_device(numbers((batch, 64, 14, 14), 4), variant)
        return self.differentiated([x, w, b], lambda: functional.batch_norm(x, mean, var, w, b, training=True), gradient)

    def loader(self, _, images, workers, **more):
        data = (TensorDataset(numbers((images, 1, 28, 28), 1), labels(images, 10)) if more["from"] == "tensor"
                else Pictures(images))
        made = DataLoader(data, batch_size=256, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
        check = [0.0, 0.0]
        for x, target in made:
            check = [check[0] + x.double().sum().item(), check[1] + target.double().sum().item()]

        def epoch():
            for _ in made:
                pass

        return check, epoch

    def save(self, _):
        model, file = self.saved()
        total = sum(size_of(tensor) for tensor in torch.load(file).values())
        return [total], lambda: torch.save(model.state_dict(), file)

    def load(self, _):
        check, _ = self.save(())
        _, file = self.saved()
        return check, lambda: torch.load(file)

    def saved(self):
        model = cnn()
        self.trainer(model, (), None)
        file = os.path.join(self.folder, "model.pt")
        torch.save(model.state_dict(), file)
        return model, file

    def allocate(self, _, n):
        def made():
            return torch.empty(n, device=self.device)

        return [float(made().numel())], made


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, 10))


class Pictures(Dataset):
    """Bytes that are made into normalised numbers, a picture at a time."""

    def __init__(self, count):
        self.bytes = ((numbers((count, 1, 28, 28), 1) + 1) * 127).to(torch.uint8)

    def __len__(self):
        return len(self.bytes)

    def __getitem__(self, index):
        return self.bytes[index].float().div(255).sub(0.2860).div(0.3530), index % 10


class Worker:
    def __init__(self, device, folder):
        self.cases, self.made, self.device = Cases(device, folder), {}, device

    def about(self, _):
        return {"name": f"PyTorch {torch.__version__}", "threads": torch.get_num_threads(),
                "onednn": torch.backends.mkldnn.is_available(), "cuda": torch.version.cuda}

    def prepare(self, question):
        if question["case"].startswith("_") or not hasattr(Cases, question["case"]):
            return {"error": "there is no such case"}
        variant = set(question["variant"].split("+"))
        check, call = getattr(self.cases, question["case"])(variant, **question["parameters"])
        self.made[question["id"]] = call
        return {"check": check}

    def time(self, question):
        call = self.made[question["id"]]
        self.synchronize()
        start = time.perf_counter()
        for _ in range(question["calls"]):
            call()
        self.synchronize()
        return {"seconds": time.perf_counter() - start}

    def synchronize(self):
        if self.device != "cpu":
            torch.cuda.synchronize()

    def forget(self, _):
        self.made.clear()
        torch._dynamo.reset()
        return {}


def main(folder):
    device, threads = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(threads)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else prints does not break the protocol
    worker = Worker(device, folder)
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = getattr(worker, question["do"])(question)
        except Exception as error:  # noqa: BLE001  it is told to who asked
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} DEVICE THREADS; ./gradus bench --peer torch runs it")
    with tempfile.TemporaryDirectory(prefix="gradus-peer-") as folder:
        main(folder)
