"""Tensors and how PyTorch prints them; the text of tensor `x` is the metadata entry `x`."""
import torch

from .file import Vectors

INF, NAN = float("inf"), float("nan")


def floats():
    yield "vector", torch.tensor([1.0, 2.5, -3.25])
    yield "whole", torch.tensor([1.0, 2.0, 30.0])
    yield "zero_dim", torch.tensor(3.5)
    yield "zero_dim_whole", torch.tensor(3.0)
    yield "matrix", torch.tensor([[0.1, -20.25], [300.5, 4.0]])
    yield "cube", torch.arange(12.0).reshape(2, 3, 2) / 8
    yield "negative_zero", torch.tensor([-0.0, 0.0])
    yield "rounded", torch.tensor([0.123456, 0.99999, 1.00005])
    yield "long_vector", torch.arange(30.0) / 4
    yield "wide_matrix", torch.arange(60.0).reshape(2, 30) / 4
    yield "with_nan", torch.tensor([1.5, NAN, 2.0])
    yield "with_inf", torch.tensor([1.0, INF, -INF, 2.5])
    yield "only_special", torch.tensor([INF, NAN, -INF])
    yield "whole_with_inf", torch.tensor([1.0, INF])
    yield "scientific_small", torch.tensor([1e-5, 1.0])
    yield "scientific_large", torch.tensor([1e9, 1.5])
    yield "scientific_whole", torch.tensor([1e9, 1.0])
    yield "scientific_wide", torch.tensor([1e-3, 2000.5])
    yield "scientific_nan", torch.tensor([1e-10, NAN])
    yield "scientific_extreme", torch.tensor([1.17549435e-38, 3.4028235e38])
    yield "just_plain", torch.tensor([1e-4, 0.05])
    yield "large_whole", torch.tensor([12345678.0, 1.0])
    yield "float64", torch.tensor([1.0, 0.1], dtype=torch.float64)
    yield "float16", torch.tensor([1.0, 0.1], dtype=torch.float16)
    yield "bfloat16", torch.tensor([1.0, 0.1], dtype=torch.bfloat16)


def others():
    yield "int64", torch.tensor([1, -20, 300])
    yield "int64_matrix", torch.tensor([[1, 2], [-30, 4]])
    yield "int32", torch.tensor([7, 8], dtype=torch.int32)
    yield "uint8", torch.tensor([0, 255], dtype=torch.uint8)
    yield "int_zero_dim", torch.tensor(42)
    yield "int_extreme", torch.tensor([2**63 - 1, -(2**63)])
    yield "bool", torch.tensor([True, False])
    yield "bool_zero_dim", torch.tensor(False)
    yield "bool_matrix", torch.tensor([[True, False], [False, True]])
    yield "empty", torch.empty(0)
    yield "empty_int", torch.empty(0, dtype=torch.int64)
    yield "empty_matrix", torch.empty(2, 0)
    yield "empty_first", torch.empty(0, 3)
    yield "long_int", torch.arange(100)


def summarised():
    yield "exactly_1000", torch.arange(1000)
    yield "summary_1001", torch.arange(1001)
    yield "summary_float", torch.arange(1200.0) / 2
    yield "summary_matrix", torch.arange(2000).reshape(2, 1000)
    yield "summary_tall", torch.arange(2000).reshape(1000, 2)
    yield "summary_square", torch.arange(1600.0).reshape(40, 40) / 10
    yield "summary_cube", torch.arange(4096, dtype=torch.int32).reshape(16, 16, 16)


def make():
    vectors = Vectors()
    for source in (floats, others, summarised):
        for name, tensor in source():
            vectors.add(name, tensor)
            vectors.note(name, repr(tensor))
    leaf = torch.tensor([1.0, 2.5], requires_grad=True)
    vectors.add("requires_grad", leaf)
    vectors.note("requires_grad", repr(leaf))
    return vectors
