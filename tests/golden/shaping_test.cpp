// Joining, splitting, moving and picking elements: exact, so the gradients are too, up to the order of sums.
#include <gradus/ops/cat.h>
#include <gradus/ops/index.h>
#include <gradus/ops/view.h>

#include "golden.h"

namespace gradus::golden {
namespace {

const std::vector<OpCase> kShaping = {
    GOLDEN("cat", cat({in.a, in.b, in.c}, 0)),
    GOLDEN("cat.last", cat({in.a, in.b}, -1)),
    GOLDEN("cat.empty", cat({in.a, in.b}, 0)),
    GOLDEN("stack.0", stack({in.a, in.b}, 0)),
    GOLDEN("stack.1", stack({in.a, in.b}, 1)),
    GOLDEN("stack.-1", stack({in.a, in.b}, -1)),
    GOLDEN("chunk", chunk(in.x, 3, 0)),
    GOLDEN("chunk.fewer", chunk(in.x, 4, 1)),
    GOLDEN("split", split(in.x, 3, 1)),
    GOLDEN("split.sizes", split(in.x, {1, 4, 2}, 0)),
    GOLDEN("flatten", flatten(in.x, 1)),
    GOLDEN("flatten.middle", flatten(in.x, 1, 2)),
    GOLDEN("reshape", in.x.reshape({4, -1})),
    GOLDEN("reshape.transposed", in.x.transpose(0, 1).reshape({2, 6})),
    GOLDEN("transpose", transpose(in.x, 0, -1)),
    GOLDEN("permute", permute(in.x, {2, 0, 1})),
    GOLDEN("expand", in.x.expand({2, -1, 4})),
    GOLDEN("squeeze", squeeze(in.x)),
    GOLDEN("squeeze.dim", squeeze(in.x, 2)),
    GOLDEN("unsqueeze", unsqueeze(in.x, 1)),
    GOLDEN("narrow", narrow(in.x, 1, 2, 3)),
    GOLDEN("select", select(in.x, 1, -2)),
    GOLDEN("pad", pad(in.x, {1, 2}, 0.5)),
    GOLDEN("pad.two_dims", pad(in.x, {1, 0, 2, 1})),
    GOLDEN("pad.negative", pad(in.x, {-1, 2})),
};

const std::vector<OpCase> kIndexing = {
    GOLDEN("gather.0", gather(in.x, 0, in.i)),
    GOLDEN("gather.1", gather(in.x, 1, in.i)),
    GOLDEN("index_select", index_select(in.x, 1, in.i)),
    GOLDEN("index_select.none", index_select(in.x, 0, in.i)),
    GOLDEN("one_hot", one_hot(in.i, 5)),
    GOLDEN("one_hot.inferred", one_hot(in.i)),
    GOLDEN("index.integer", in.x.index({-1})),
    GOLDEN("index.slice", in.x.index({Slice(1, 4)})),
    GOLDEN("index.step", in.x.index({Slice(), Slice(1, None, 2)})),
    GOLDEN("index.past_end", in.x.index({Slice(2, 100), Slice(-2)})),
    GOLDEN("index.empty", in.x.index({Slice(3, 1)})),
    GOLDEN("index.none", in.x.index({Slice(), None})),
    GOLDEN("index.ellipsis", in.x.index({"...", 1})),
    GOLDEN("index.tensor", in.x.index({in.i})),
    GOLDEN("index.tensor_2d", in.x.index({in.i})),
    GOLDEN("index.two_tensors", in.x.index({in.i, in.j})),
    GOLDEN("index.mask", in.x.index({in.m})),
    GOLDEN("index.row_mask", in.x.index({in.m})),
};

TEST(GoldenOps, shaping) { check_family("shaping", kShaping, {1e-15, 4e-7}); }
TEST(GoldenOps, indexing) { check_family("indexing", kIndexing, {1e-15, 4e-7}); }

}  // namespace
}  // namespace gradus::golden
