"""Matrix products, convolution, pooling, normalisation and losses."""
from .cases import integers, normal, uniform, values

NAN, INF = float("nan"), float("inf")


def matmul(case):
    shapes = {
        "2d": ((5, 7), (7, 3)), "vec_vec": ((6,), (6,)), "mat_vec": ((5, 7), (7,)), "vec_mat": ((7,), (7, 3)),
        "batched": ((3, 4, 5), (3, 5, 2)), "broadcast": ((2, 1, 4, 5), (3, 5, 2)), "batch_2d": ((2, 3, 4, 5), (5, 2)),
        "2d_batch": ((4, 5), (3, 5, 2)), "batch_vec": ((3, 4, 5), (5,)), "vec_batch": ((5,), (3, 5, 2)),
        "one": ((1, 1), (1, 1)), "inner_zero": ((2, 0), (0, 3)), "odd": ((17, 33), (33, 19)),
    }  # fmt: skip
    for name, (a, b) in shapes.items():
        case(f"matmul.{name}", "torch.matmul(a, b)", a=normal(*a), b=normal(*b))
    case("matmul.transposed", "torch.matmul(a.t(), b.t())", a=normal(7, 5), b=normal(3, 7))
    case("linear", "F.linear(x, w, b)", x=normal(4, 5), w=normal(3, 5), b=normal(3))
    case("linear.no_bias", "F.linear(x, w)", x=normal(4, 5), w=normal(3, 5))
    case("linear.3d", "F.linear(x, w, b)", x=normal(2, 4, 5), w=normal(3, 5), b=normal(3))
    case("linear.1d", "F.linear(x, w, b)", x=normal(5), w=normal(3, 5), b=normal(3))


def conv(case, name, options, x, w, bias=True):
    b = {"b": normal(w[0])} if bias else {}
    case(f"conv2d.{name}", f"F.conv2d(x, w{', b' if bias else ''}{options})", x=normal(*x), w=normal(*w), **b)


def conv_pool(case):
    conv(case, "plain", "", (2, 3, 7, 6), (4, 3, 3, 3))
    conv(case, "no_bias", "", (2, 3, 5, 6), (2, 3, 2, 3), bias=False)
    conv(case, "padding", ", padding=1", (2, 2, 5, 7), (3, 2, 3, 3))
    conv(case, "stride", ", stride=2", (2, 2, 8, 7), (3, 2, 3, 3))
    conv(case, "uneven", ", stride=(2, 1), padding=(0, 2), dilation=(1, 2)", (1, 2, 8, 7), (3, 2, 3, 2))
    conv(case, "dilation", ", dilation=2, padding=2", (1, 2, 7, 7), (2, 2, 3, 3))
    conv(case, "groups", ", groups=2, padding=1", (2, 4, 5, 5), (6, 2, 3, 3))
    conv(case, "depthwise", ", groups=3, stride=2", (2, 3, 6, 5), (6, 1, 3, 3))
    conv(case, "one_by_one", "", (2, 5, 4, 3), (3, 5, 1, 1))
    conv(case, "first_layer", ", padding=1", (2, 1, 9, 9), (8, 1, 3, 3))
    conv(case, "whole_image", "", (2, 2, 4, 3), (3, 2, 4, 3))
    case("conv2d.strided_kernel", "F.conv2d(x, w.transpose(2, 3))", x=normal(1, 2, 6, 5), w=normal(3, 2, 2, 3))

    pooled = {"plain": "2", "overlap": "3, stride=2, padding=1", "uneven": "(2, 3), stride=(1, 2), padding=(1, 0)"}
    for name, options in pooled.items():
        case(f"max_pool2d.{name}", f"F.max_pool2d(x, {options}, return_indices=True)", x=normal(2, 3, 7, 8))
        case(f"avg_pool2d.{name}", f"F.avg_pool2d(x, {options})", x=normal(2, 3, 7, 8))
        case(f"avg_pool2d.{name}.inner", f"F.avg_pool2d(x, {options}, count_include_pad=False)", x=normal(2, 3, 7, 8))
    case("max_pool2d.dilation", "F.max_pool2d(x, 2, stride=1, dilation=2)", x=normal(1, 2, 6, 5))
    case("max_pool2d.ceil", "F.max_pool2d(x, 2, ceil_mode=True)", x=normal(1, 2, 5, 7))
    case("avg_pool2d.ceil", "F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True)", x=normal(1, 2, 6, 8))
    special = values([[[[1.0, NAN, -INF, -INF], [5.0, 6.0, -INF, -INF], [2.0, 2.0, 0.0, -0.0], [2.0, 2.0, -1.0, INF]]]])
    case("max_pool2d.special", "F.max_pool2d(x, 2, return_indices=True)", x=special)
    for size in ["1", "(3, 2)", "(5, 4)"]:
        ending = "x".join(c for c in size if c.isdigit())
        case(f"adaptive_avg_pool2d.{ending}", f"F.adaptive_avg_pool2d(x, {size})", x=normal(2, 3, 7, 5))
        case(f"adaptive_max_pool2d.{ending}", f"F.adaptive_max_pool2d(x, {size})", x=normal(2, 3, 7, 5))


def layers(case):
    stats = {"rm": normal(3), "rv": uniform(0.5, 2.0, 3), "w": normal(3), "b": normal(3)}
    fixed = ("rm", "rv")
    # The running statistics after the call are results as well: training changes them.
    train = "F.batch_norm(x, rm, rv, w, b, training=True, momentum=0.1, eps=1e-5), rm, rv"
    case("batch_norm.train", train, fixed, x=normal(5, 3, 4, 2), **stats)
    case("batch_norm.train_2d", train, fixed, x=normal(6, 3), **stats)
    case("batch_norm.momentum", train.replace("0.1", "0.4"), fixed, x=normal(2, 3, 3, 3), **stats)
    case("batch_norm.eval", "F.batch_norm(x, rm, rv, w, b, training=False)", fixed, x=normal(2, 3, 4, 2), **stats)
    case("batch_norm.plain", "F.batch_norm(x, None, None, training=True)", x=normal(5, 3, 2, 2))
    affine = {"w": normal(5), "b": normal(5)}
    case("layer_norm", "F.layer_norm(x, (5,), w, b)", x=normal(4, 3, 5), **affine)
    case("layer_norm.plain", "F.layer_norm(x, (5,))", x=normal(4, 5))
    case("layer_norm.two_dims", "F.layer_norm(x, (3, 5), w, b)", x=normal(4, 3, 5), w=normal(3, 5), b=normal(3, 5))
    case("layer_norm.eps", "F.layer_norm(x, (5,), w, b, eps=0.1)", x=normal(4, 5), **affine)
    huge = values([[1e4, -1e4, 9.999e3], [-INF, 0.0, 1.0], [88.0, 89.0, 90.0]])
    for op in ["softmax", "log_softmax"]:
        for dim in ["0", "1", "-1"]:
            case(f"{op}.{dim}", f"F.{op}(x, dim={dim})", x=normal(3, 5, 2))
        case(f"{op}.huge", f"F.{op}(x, dim=1)", x=huge)
    ids = integers(0, 6, 3, 4)
    case("embedding", "F.embedding(i, w)", i=ids, w=normal(6, 3))
    case("embedding.padding", "F.embedding(i, w, padding_idx=2)", i=ids, w=normal(6, 3))
    case("dropout.off", "F.dropout(x, 0.5, training=False)", x=normal(7))
    case("dropout.zero", "F.dropout(x, 0.0, training=True)", x=normal(7))
    case("dropout.one", "F.dropout(x, 1.0, training=True)", x=normal(7))


def cross_entropy(case):
    logits, target, weight = normal(6, 5), integers(0, 5, 6), uniform(0.5, 2.0, 5)
    some_ignored = values([0, -100, 3, 4, -100, 1])
    for reduction in ["mean", "sum", "none"]:
        tail = f"reduction='{reduction}')"
        case(f"cross_entropy.{reduction}", f"F.cross_entropy(x, t, {tail}", x=logits, t=target)
        case(f"cross_entropy.weight.{reduction}", f"F.cross_entropy(x, t, weight=w, {tail}", ("w",), x=logits, t=target, w=weight)
        case(f"cross_entropy.ignore.{reduction}", f"F.cross_entropy(x, t, {tail}", x=logits, t=some_ignored)
        case(f"cross_entropy.smooth.{reduction}", f"F.cross_entropy(x, t, label_smoothing=0.2, {tail}", x=logits, t=target)
        everything = f"F.cross_entropy(x, t, weight=w, ignore_index=3, label_smoothing=0.1, {tail}"
        case(f"cross_entropy.everything.{reduction}", everything, ("w",), x=logits, t=target, w=weight)
        case(f"nll_loss.{reduction}", f"F.nll_loss(x, t, {tail}", x=logits, t=target)
        case(f"nll_loss.weight.{reduction}", f"F.nll_loss(x, t, weight=w, ignore_index=1, {tail}", ("w",), x=logits, t=target, w=weight)
    case("cross_entropy.all_ignored", "F.cross_entropy(x, t)", x=normal(2, 3), t=values([-100, -100]))
    case("cross_entropy.huge", "F.cross_entropy(x, t)", x=values([[1e4, 0.0, -1e4], [0.0, 500.0, 499.0]]), t=values([0, 2]))
    case("cross_entropy.one_class", "F.cross_entropy(x, t)", x=normal(3, 1), t=values([0, 0, 0]))


def losses(case):
    cross_entropy(case)
    for reduction in ["mean", "sum", "none"]:
        tail = f"reduction='{reduction}')"
        case(f"mse_loss.{reduction}", f"F.mse_loss(x, t, {tail}", x=normal(4, 3), t=normal(4, 3))
        case(f"bce.{reduction}", f"F.binary_cross_entropy_with_logits(x, t, {tail}", ("t",), x=normal(4, 3), t=uniform(0.0, 1.0, 4, 3))
    both = "F.binary_cross_entropy_with_logits(x, t, weight=w, pos_weight=p)"
    case("bce.weights", both, ("t", "w", "p"), x=normal(4, 3), t=uniform(0.0, 1.0, 4, 3), w=uniform(0.5, 2.0, 3), p=uniform(0.5, 2.0, 3))
    case("bce.huge", "F.binary_cross_entropy_with_logits(x, t, reduction='none')", ("t",), x=values([-200.0, 200.0, -200.0, 0.0]), t=values([0.0, 1.0, 1.0, 0.5]))
