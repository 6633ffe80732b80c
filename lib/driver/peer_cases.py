"""What ./gradus bench --peer torch measures: the cases, PyTorch's ways to do each, and the speed that we set out to reach.

A case's rival is the fastest of PyTorch's ways on the machine at hand. Bounds are how many times as fast as the rival Gradus
shall be, with one thread and with all.
"""
import typing

TRAINING = ("eager", "fused", "compile", "compile+fused")
IMAGES = ("eager", "channels_last", "channels_last+fused", "channels_last+compile", "channels_last+compile+fused")
EPOCHS = ("eager", "channels_last", "channels_last+fused", "channels_last+compile+fused")
LAYOUTS = ("eager", "channels_last")


class Case(typing.NamedTuple):
    name: str
    parameters: dict
    variants: tuple = ("eager",)
    bounds: tuple = (None, None)  # with one thread, with all
    tolerance: float = 1e-4  # of the checked numbers, relative
    quick: bool = True  # part of --quick
    needs: str = ""  # arithmetic without which one call takes minutes: "bfloat16"

    @property
    def title(self):
        """As Google Benchmark would name it: 'matmul/n:64/dtype:float32'."""
        return "/".join([self.name, *(f"{key}:{value}" for key, value in self.parameters.items())])


def products():
    for dtype, tolerance in (("float32", 1e-4), ("bfloat16", 1e-3)):
        for n in (64, 128, 256, 512, 1024, 2048, 4096):
            bounds = (1, 1) if n >= 256 else (None, None)
            needs = "bfloat16" if dtype == "bfloat16" and n > 256 else ""
            yield Case("matmul", {"n": n, "dtype": dtype}, bounds=bounds, tolerance=tolerance, quick=n in (64, 512), needs=needs)


def by_elements():
    for name, variants in (("add", ("eager",)), ("relu", ("eager",)), ("adam", ("eager", "foreach", "fused"))):
        for n in (16, 10**3, 10**4, 10**5, 10**6, 10**7):
            bound = 1 if name == "adam" else {16: 2, 10**7: 1.3}.get(n)
            yield Case(name, {"n": n}, variants, (bound, bound), quick=n in (16, 10**6))


def loaders():
    for kind, bound in (("pictures", 8), ("tensor", 3)):
        for workers in (0, 2, 4):
            yield Case("loader", {"from": kind, "workers": workers, "images": 10000}, bounds=(bound, bound), quick=workers == 0)


CASES = [
    Case("cnn_step", {"batch": 64}, IMAGES, quick=False),
    Case("cnn_step", {"batch": 256}, IMAGES, (1.2, 1.6)),
    Case("cnn_epoch", {"batch": 64, "images": 1280}, EPOCHS, tolerance=1e-2, quick=False),
    Case("cnn_epoch", {"batch": 256, "images": 1280}, EPOCHS, tolerance=1e-2, quick=False),
    Case("simple_net_step", {"batch": 32}, TRAINING, (1.3, 2)),
    Case("simple_net_step", {"batch": 256}, TRAINING, (1.1, 1.3)),
    Case("small_net_step", {"batch": 32}, TRAINING, (15, 15)),
    *products(),
    *by_elements(),
    Case("softmax_cross_entropy", {"rows": 256, "classes": 10}, ("eager", "compile"), (4, 4)),
    Case("softmax_cross_entropy", {"rows": 4096, "classes": 1000}, ("eager", "compile"), (1, 1), quick=False),
    Case("conv", {"batch": 64}, LAYOUTS),
    Case("batch_norm", {"batch": 64}, LAYOUTS, (1.1, 1.1)),
    *loaders(),
    Case("save", {}),
    Case("load", {}),
    *(Case("allocate", {"n": n}, quick=n == 1000) for n in (1000, 10**6, 10**7)),
]


def chosen(names, quick):
    """Those of the families that were asked for; all without names."""
    return [case for case in CASES if (not names or case.name in names) and (case.quick or not quick)]


def variants(case, quick):
    """A brief pass does not wait for torch.compile."""
    return [variant for variant in case.variants if not (quick and "compile" in variant)]
