"""Joining, splitting, moving and picking elements."""
from .cases import booleans, integers, normal, values


def shaping(case):
    three = {"a": normal(2, 3), "b": normal(4, 3), "c": normal(1, 3)}
    case("cat", "torch.cat([a, b, c], dim=0)", **three)
    case("cat.last", "torch.cat([a, b], dim=-1)", a=normal(2, 3, 1), b=normal(2, 3, 4))
    case("cat.empty", "torch.cat([a, b], dim=0)", a=normal(0, 3), b=normal(2, 3))
    for dim in ["0", "1", "-1"]:
        case(f"stack.{dim}", f"torch.stack([a, b], dim={dim})", a=normal(2, 3), b=normal(2, 3))
    case("chunk", "torch.chunk(x, 3, dim=0)", x=normal(7, 2))
    case("chunk.fewer", "torch.chunk(x, 4, dim=1)", x=normal(2, 5))
    case("split", "torch.split(x, 3, dim=1)", x=normal(2, 7))
    case("split.sizes", "torch.split(x, [1, 4, 2], dim=0)", x=normal(7, 2))
    case("flatten", "torch.flatten(x, 1)", x=normal(2, 3, 4))
    case("flatten.middle", "torch.flatten(x, 1, 2)", x=normal(2, 3, 2, 2))
    case("reshape", "x.reshape(4, -1)", x=normal(2, 3, 4))
    case("reshape.transposed", "x.transpose(0, 1).reshape(2, 6)", x=normal(4, 3))
    case("transpose", "torch.transpose(x, 0, -1)", x=normal(2, 3, 4))
    case("permute", "torch.permute(x, (2, 0, 1))", x=normal(2, 3, 4))
    case("expand", "x.expand(2, -1, 4)", x=normal(3, 1))
    case("squeeze", "torch.squeeze(x)", x=normal(1, 3, 1, 2))
    case("squeeze.dim", "torch.squeeze(x, 2)", x=normal(1, 3, 1, 2))
    case("unsqueeze", "torch.unsqueeze(x, 1)", x=normal(3, 2))
    case("narrow", "torch.narrow(x, 1, 2, 3)", x=normal(2, 6))
    case("select", "torch.select(x, 1, -2)", x=normal(2, 4, 3))
    case("pad", "F.pad(x, (1, 2), value=0.5)", x=normal(2, 3))
    case("pad.two_dims", "F.pad(x, (1, 0, 2, 1))", x=normal(2, 3, 2))
    case("pad.negative", "F.pad(x, (-1, 2))", x=normal(2, 4))


def indexing(case):
    case("gather.0", "torch.gather(x, 0, i)", x=normal(4, 3), i=integers(0, 4, 5, 3))
    case("gather.1", "torch.gather(x, 1, i)", x=normal(4, 3), i=integers(0, 3, 4, 2))
    case("index_select", "torch.index_select(x, 1, i)", x=normal(3, 5), i=values([4, 0, 0, 2]))
    case("index_select.none", "torch.index_select(x, 0, i)", x=normal(3, 5), i=integers(0, 3, 0))
    case("one_hot", "F.one_hot(i, 5)", i=integers(0, 5, 2, 3))
    case("one_hot.inferred", "F.one_hot(i)", i=values([2, 0, 3]))
    case("index.integer", "x[-1]", x=normal(3, 4))
    case("index.slice", "x[1:4]", x=normal(6, 2))
    case("index.step", "x[:, 1::2]", x=normal(3, 6))
    case("index.past_end", "x[2:100, -2:]", x=normal(4, 5))
    case("index.empty", "x[3:1]", x=normal(5, 2))
    case("index.none", "x[:, None]", x=normal(3, 2))
    case("index.ellipsis", "x[..., 1]", x=normal(2, 3, 4))
    case("index.tensor", "x[i]", x=normal(4, 3), i=values([3, -1, 0, 0]))
    case("index.tensor_2d", "x[i]", x=normal(4, 3), i=integers(0, 4, 2, 2))
    case("index.two_tensors", "x[i, j]", x=normal(4, 3), i=values([0, 1, 3]), j=values([2, 0, -1]))
    case("index.mask", "x[m]", x=normal(4, 3), m=booleans(4, 3))
    case("index.row_mask", "x[m]", x=normal(4, 3), m=values([True, False, False, True]))
