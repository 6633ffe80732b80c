"""The operation families, each a function that returns its Vectors."""
from . import ops_layers, ops_pointwise, ops_shaping
from .cases import add_case
from .file import Vectors


def family(cases):
    def make():
        vectors = Vectors()
        cases(lambda *args, **inputs: add_case(vectors, *args, **inputs))
        return vectors

    return make


FAMILIES = {
    "pointwise": family(ops_pointwise.pointwise),
    "reduce": family(ops_pointwise.reduce),
    "matmul": family(ops_layers.matmul),
    "conv_pool": family(ops_layers.conv_pool),
    "layers": family(ops_layers.layers),
    "losses": family(ops_layers.losses),
    "shaping": family(ops_shaping.shaping),
    "indexing": family(ops_shaping.indexing),
}
