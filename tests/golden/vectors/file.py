"""A set of named tensors and texts, written as a safetensors file.

Written by hand in a few lines, because the safetensors package writes its metadata in a random order: the same
vectors must give the same bytes.
"""
import json
import struct

import torch

DTYPES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip


def raw_bytes(tensor):
    """The elements in row-major order; bfloat16, which numpy lacks, as its bits."""
    tensor = tensor.detach().contiguous()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.int16)
    return tensor.numpy().tobytes()


class Vectors:
    def __init__(self):
        self.tensors = {}
        self.metadata = {"torch": torch.__version__}

    def add(self, name, tensor):
        assert name not in self.tensors, f"{name}: two tensors of this name"
        self.tensors[name] = tensor.detach().clone()

    def note(self, name, text):
        assert name not in self.metadata, f"{name}: two texts of this name"
        self.metadata[name] = text

    def save(self, path):
        # Wide dtypes first, so that every tensor begins at a multiple of its element size.
        names = sorted(self.tensors, key=lambda n: (-self.tensors[n].element_size(), n))
        header, chunks, offset = {"__metadata__": dict(sorted(self.metadata.items()))}, [], 0
        for name in names:
            tensor = self.tensors[name]
            data = raw_bytes(tensor)
            header[name] = {
                "dtype": DTYPES[tensor.dtype],
                "shape": list(tensor.shape),
                "data_offsets": [offset, offset + len(data)],
            }
            chunks.append(data)
            offset += len(data)
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(chunks))
        print(f"{path.name}: {len(names)} tensors, {path.stat().st_size} bytes")
