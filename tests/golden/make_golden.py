#!/usr/bin/env python3
"""Makes the golden vectors of tests/golden: what PyTorch computes, for the C++ tests to compare with.

    python3 -m venv venv && venv/bin/pip install torch numpy
    venv/bin/python tests/golden/make_golden.py --out tests/golden/data

The outputs are committed: neither the build nor the tests need PyTorch. The script is deterministic (one thread, a
seed per case taken from the case's name, keys sorted in the files), so the same PyTorch writes the same bytes, and a
new case leaves the others alone. Each file's metadata holds the PyTorch version that made it.

The files (all safetensors):
    pointwise, reduce, matmul, conv_pool, layers, losses, shaping, indexing     operations: vectors/cases.py
    types       promotion tables, integer division, conversions between dtypes: vectors/types.py
    printing    tensors and, in the metadata, their text:                       vectors/printing.py
    optim       20 steps of each optimizer, schedules, clipping:                vectors/optim.py
    amp         autocast's result dtypes, GradScaler, accumulation:             vectors/amp.py
    models      5 steps of whole networks from weights given by a formula:      vectors/models.py
"""
import argparse
import pathlib

import torch

from vectors import amp, models, ops, optim, printing, types

MAKERS = {**ops.FAMILIES, "types": types.make, "printing": printing.make, "optim": optim.make, "models": models.make,
          "amp": amp.make}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "data")
    parser.add_argument("--only", choices=sorted(MAKERS), help="write one file only")
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    print(f"PyTorch {torch.__version__}")
    args.out.mkdir(parents=True, exist_ok=True)
    for name, make in MAKERS.items():
        if args.only in (None, name):
            make().save(args.out / f"{name}.safetensors")


if __name__ == "__main__":
    main()
