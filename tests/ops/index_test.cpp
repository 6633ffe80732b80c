#include <gradus/ops/factories.h>
#include <gradus/ops/index.h>
#include <gradus/ops/random.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/view.h>
#include <gradus/tensor/node.h>

#include "shaping.h"

namespace gradus::optest {
namespace {

int64_t whole(double v) { return static_cast<int64_t>(v); }

RefArray gathered(const RefArray& x, const RefArray& index, int dim) {
  return build(index.sizes, [&](const Shape& i) { return x.at(with(i, dim, whole(index.at(i)))); });
}

// x[…, index, …] along dim, index 1-D
RefArray selected(const RefArray& x, const RefArray& index, int dim) {
  return build(with(x.sizes, dim, index.numel()),
               [&](const Shape& i) { return x.at(with(i, dim, whole(index[i[dim]]))); });
}

RefArray scattered(RefArray x, const RefArray& index, const RefArray& src, int dim, bool add) {
  build(index.sizes, [&](const Shape& i) {
    double& target = x.at(with(i, dim, whole(index.at(i))));
    return target = src.at(i) + (add ? target : 0);
  });
  return x;
}

GRADUS_OP_CASES(
    index,
    OpCase{.name = "index_select",
           .shapes = {{{3, 4}, {5}}, {{2, 3, 2, 2}, {4}}, {{2, 3}, {0}}, {{0, 3}, {2}}, {{1, 3}, {1}}},
           .inputs = {{normal()}, {integers(0, 3)}},
           .forward = [](const Tensors& x) { return index_select(x[0], 1, x[1]); },
           .reference = [](const RefArrays& x) { return selected(x[0], x[1], 1); },
           .tolerance = 0},
    OpCase{.name = "index_select_last_int32",
           .shapes = {{{2, 3, 2, 3}, {4}}, {{3}, {2}}},
           .inputs = {{normal()}, {integers(0, 3, kInt32)}},
           .forward = [](const Tensors& x) { return index_select(x[0], -1, x[1]); },
           .reference = [](const RefArrays& x) { return selected(x[0], x[1], x[0].sizes.size() - 1); },
           .tolerance = 0},
    OpCase{.name = "gather",
           .shapes = {{{3, 4}, {2, 4}}, {{3, 3, 2, 2}, {4, 2, 2, 1}}, {{3, 1}, {0, 1}}, {{3}, {5}}},
           .inputs = {{normal()}, {integers(0, 3)}},
           .forward = [](const Tensors& x) { return gather(x[0], 0, x[1]); },
           .reference = [](const RefArrays& x) { return gathered(x[0], x[1], 0); },
           .tolerance = 0},
    OpCase{.name = "take_along_dim",
           .shapes = {{{2, 3}, {1, 2}}, {{1, 3}, {4, 2}}},
           .inputs = {{normal()}, {integers(0, 3)}},
           .forward = [](const Tensors& x) { return take_along_dim(x[0], x[1], 1); },
           .reference =
               [](const RefArrays& x) {
                 const int64_t rows = std::max(x[0].sizes[0], x[1].sizes[0]);
                 return build({rows, x[1].sizes[1]}, [&](const Shape& i) {
                   const int64_t k = whole(x[1].at({i[0] % x[1].sizes[0], i[1]}));
                   return x[0].at({i[0] % x[0].sizes[0], k});
                 });
               },
           .tolerance = 0},
    OpCase{.name = "scatter",  // one value a target: which of several is written has no derivative
           .shapes = {{{3, 4}, {1, 4}, {2, 4}}, {{3, 2, 2, 2}, {1, 2, 1, 2}, {1, 2, 2, 2}}},
           .inputs = {{normal()}, {integers(0, 3)}, {normal()}},
           .forward = [](const Tensors& x) { return scatter(x[0], 0, x[1], x[2]); },
           .reference = [](const RefArrays& x) { return scattered(x[0], x[1], x[2], 0, false); },
           .tolerance = 0},
    OpCase{.name = "scatter_add",
           .shapes = {{{2, 3}, {2, 5}, {2, 5}},
                      {{2, 3, 2, 2}, {2, 4, 1, 2}, {2, 4, 2, 2}},
                      {{2, 3}, {0, 5}, {2, 5}}},
           .inputs = {{normal()}, {integers(0, 3)}, {normal()}},
           .forward = [](const Tensors& x) { return scatter_add(x[0], 1, x[1], x[2]); },
           .reference = [](const RefArrays& x) { return scattered(x[0], x[1], x[2], 1, true); }},
    OpCase{.name = "index_add",
           .shapes = {{{2, 3}, {5}, {2, 5}}, {{2, 3}, {0}, {2, 0}}},
           .inputs = {{normal()}, {integers(0, 3)}, {normal()}},
           .forward = [](const Tensors& x) { return index_add(x[0], 1, x[1], x[2]); },
           .reference =
               [](RefArrays x) {
                 for (int64_t r = 0; r < x[0].sizes[0]; ++r)
                   for (int64_t k = 0; k < x[1].numel(); ++k) x[0].at({r, whole(x[1][k])}) += x[2].at({r, k});
                 return x[0];
               }},
    OpCase{.name = "embedding",
           .shapes = {{{3, 4}, {2, 5}}, {{3, 1}, {}}, {{3, 2}, {0}}, {{3, 0}, {2}}},
           .inputs = {{normal()}, {integers(0, 3)}},
           .forward = [](const Tensors& x) { return embedding(x[0], x[1]); },
           .reference =
               [](const RefArrays& x) {
                 Shape sizes = x[1].sizes;
                 sizes.push_back(x[0].sizes[1]);
                 return build(sizes, [&](Shape i) {
                   const int64_t column = i.back();
                   i.erase(i.size() - 1);
                   return x[0].at({whole(x[1].at(i)), column});
                 });
               },
           .tolerance = 0},
    OpCase{.name = "index_tensor",
           .shapes = {{{3, 4}, {2, 2}}, {{3, 2, 2, 2}, {3}}},
           .inputs = {{normal()}, {integers(-3, 3)}},
           .forward = [](const Tensors& x) { return x[0].index({x[1]}); },
           .reference =
               [](const RefArrays& x) {
                 Shape sizes = x[1].sizes;
                 for (int d = 1; d < x[0].sizes.size(); ++d) sizes.push_back(x[0].sizes[d]);
                 const int k = x[1].sizes.size();
                 return build(sizes, [&](const Shape& i) {
                   Shape at, from;
                   for (int d = 0; d < i.size(); ++d) (d < k ? at : from).push_back(i[d]);
                   from.insert(0, (whole(x[1].at(at)) + 3) % 3);
                   return x[0].at(from);
                 });
               },
           .tolerance = 0},
    OpCase{.name = "index_two_tensors_around_a_slice",  // the picked dimension moves to the front
           .shapes = {{{3, 2, 3}, {4}, {2, 1}}},
           .inputs = {{normal()}, {integers(-3, 3)}, {integers(0, 3)}},
           .forward =
               [](const Tensors& x) {
                 return x[0].index({x[1], Slice(), x[2]});
               },
           .reference =
               [](const RefArrays& x) {
                 return build({2, 4, 2}, [&](const Shape& i) {
                   return x[0].at({(whole(x[1][i[1]]) + 3) % 3, i[2], whole(x[2][i[0]])});
                 });
               },
           .tolerance = 0},
    OpCase{.name = "index_put_accumulate",
           .shapes = {{{3, 2}, {4}, {4, 2}}, {{3, 2}, {4}, {2}}},
           .inputs = {{normal()}, {integers(0, 3)}, {normal()}},
           .forward =
               [](const Tensors& x) {
                 Tensor y = x[0] * 1.0;
                 return y.index_put_({x[1]}, x[2], true);
               },
           .reference =
               [](RefArrays x) {
                 for (int64_t k = 0; k < 4; ++k)
                   for (int64_t c = 0; c < 2; ++c)
                     x[0].at({whole(x[1][k]), c}) += x[2].sizes.size() == 1 ? x[2][c] : x[2].at({k, c});
                 return x[0];
               }});

std::vector<int64_t> ints(const Tensor& t) { return t.to_vector<int64_t>(); }

TEST(Index, brackets_as_in_python) {
  const Tensor x = arange(24).reshape({2, 3, 4});
  EXPECT_EQ(ints(x.index({1, 2, 3})), (std::vector<int64_t>{23}));
  EXPECT_EQ(ints(x.index({"...", -1})), (std::vector<int64_t>{3, 7, 11, 15, 19, 23}));
  EXPECT_EQ(x.index({None, Ellipsis, Slice(1, 3), None}).sizes(), (Shape{1, 2, 3, 2, 1}));
  EXPECT_EQ(ints(x.index({0, Slice(None, None, 2), Slice(-1)})), (std::vector<int64_t>{3, 11}));
  EXPECT_EQ(ints(x.index({1, tensor({2, 0}), Slice(None, 2)})), (std::vector<int64_t>{20, 21, 12, 13}));
  EXPECT_EQ(ints(x.index({tensor({0, 1}), tensor({-1, 0}), tensor({1, 1})})), (std::vector<int64_t>{9, 13}));
  EXPECT_EQ(x.index({Slice(), tensor({{0, 1}, {2, 2}}), 0}).sizes(), (Shape{2, 2, 2}));
  EXPECT_TRUE(x.index({0, Slice(1, 2)}).is_alias_of(x));
  EXPECT_FALSE(x.index({tensor({0})}).is_alias_of(x));
}

TEST(Index, masks_select_what_is_true) {
  const Tensor x = arange(6).reshape({2, 3});
  const Tensor mask = tensor({{true, false, false}, {false, true, true}});
  EXPECT_EQ(ints(x.index({mask})), (std::vector<int64_t>{0, 4, 5}));
  EXPECT_EQ(ints(masked_select(x, mask)), (std::vector<int64_t>{0, 4, 5}));
  EXPECT_EQ(ints(masked_select(x, tensor({true, false, true}))), (std::vector<int64_t>{0, 2, 3, 5}));
  EXPECT_EQ(ints(x.index({tensor({false, true}), Slice(1)})), (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(x.index({zeros({2, 3}, kBool)}).sizes(), (Shape{0}));
  EXPECT_EQ(ints(nonzero(tensor({{0.0, 2.0}, {-1.0, 0.0}}))), (std::vector<int64_t>{0, 1, 1, 0}));
  EXPECT_EQ(nonzero(scalar_tensor(3)).sizes(), (Shape{1, 0}));
}

TEST(Index, put_writes_where_it_is_told) {
  Tensor x = zeros({2, 3}, kInt64);
  x.index_put_({0}, 5);
  x.index_put_({1, Slice(1)}, tensor({7, 8}));
  EXPECT_EQ(ints(x), (std::vector<int64_t>{5, 5, 5, 0, 7, 8}));
  x.index_put_({tensor({1, -2}), tensor({0, 2})}, tensor({1, 2}));
  EXPECT_EQ(ints(x), (std::vector<int64_t>{5, 5, 2, 1, 7, 8}));
  x.index_put_({tensor({{true, false, false}, {false, false, true}})}, -1);
  EXPECT_EQ(ints(x), (std::vector<int64_t>{-1, 5, 2, 1, 7, -1}));
}

TEST(Index, put_counts_an_index_that_occurs_twice) {
  Tensor x = zeros({3}, kInt64);
  x.index_put_({tensor({2, 0, 2})}, tensor({1, 2, 3}), true);
  EXPECT_EQ(ints(x), (std::vector<int64_t>{2, 0, 4}));
  x.index_put_({tensor({2, 0, 2})}, tensor({1, 2, 3}));
  EXPECT_EQ(ints(x), (std::vector<int64_t>{2, 0, 3}));  // the last one stays
}

TEST(Index, put_into_dimensions_that_do_not_lie_together) {
  Tensor x = zeros({2, 2, 3}, kInt64);
  x.index_put_({tensor({0, 1}), Slice(), tensor({2, 0})}, tensor({{1, 2}, {3, 4}}));
  EXPECT_EQ(ints(x), (std::vector<int64_t>{0, 0, 1, 0, 0, 2, 3, 0, 0, 4, 0, 0}));
  Tensor t = zeros({2, 3}, kInt64);
  Tensor view = t.t();
  view.index_put_({tensor({2, 0}), tensor({1, 0})}, tensor({5, 6}));
  EXPECT_EQ(ints(t), (std::vector<int64_t>{6, 0, 0, 0, 0, 5}));
}

TEST(Index, what_is_put_may_be_the_tensor_itself) {
  Tensor x = tensor({1, 2, 3});
  x.index_put_({tensor({2, 0, 1})}, x);
  EXPECT_EQ(ints(x), (std::vector<int64_t>{2, 3, 1}));
  Tensor places = tensor({1, 2, 0});
  places.index_put_({places}, 7);  // places[1] = 7 must not be read as an index
  EXPECT_EQ(ints(places), (std::vector<int64_t>{7, 7, 7}));
}

TEST(Index, put_bumps_the_version_and_keeps_history) {
  Tensor w = ones({2}).requires_grad_();
  Tensor y = w * 3.0;
  const uint32_t before = y.version();
  y.index_put_({tensor({0})}, w.index({Slice(1)}) * 5.0);
  EXPECT_GT(y.version(), before);
  sum(y).backward();
  EXPECT_EQ(w.grad().to_vector<float>(), (std::vector<float>{0, 8}));
}

TEST(Index, AG_01_assignment_to_an_element_of_a_leaf_is_refused_before_the_data_changes) {
  Tensor x = ones({3}).requires_grad_();
  for (const auto& assign : std::vector<std::function<void()>>{
           [&] { x.index_put_({0}, 5); }, [&] { x.index_put_({tensor({0})}, 5); },
           [&] { x.select(0, 0).fill_(5); }, [&] { x.slice(0, 0, 1).add_(1); }, [&] { x.add_(1); }}) {
    try {
      assign();
      ADD_FAILURE() << "was not refused";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "E-INPLACE");
    }
    EXPECT_EQ(x.detach().to_vector<float>(), (std::vector<float>{1, 1, 1}));
  }
  Tensor view;
  {
    NoGradGuard no_grad;
    view = x.slice(0, 0, 2);
  }
  EXPECT_THROW(view.index_put_({tensor({0})}, 5), Error);
  {
    NoGradGuard no_grad;
    x.add_(1);
  }
  EXPECT_EQ(x.detach().to_vector<float>(), (std::vector<float>{2, 2, 2}));
  EXPECT_TRUE(x.is_leaf() && x.requires_grad());
}

template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code() + " " + e.what();
  }
  return "no error";
}

TEST(Index, out_of_range_names_operation_index_and_bound) {
  const Tensor x = zeros({2, 3});
  EXPECT_EQ(error_of([&] {
              index_select(x, 1, tensor({0, 3}));
            }),
            "E-INDEX index_select: index 3 is out of bounds for dimension 1 with size 3");
  EXPECT_EQ(error_of([&] { index_select(x, 0, tensor({-1})); }),
            "E-INDEX index_select: index -1 is out of bounds for dimension 0 with size 2");
  EXPECT_EQ(error_of([&] {
              gather(x, 0, tensor({{0, 1, 2}}));
            }),
            "E-INDEX gather: index 2 is out of bounds for dimension 0 with size 2");
  EXPECT_EQ(error_of([&] {
              x.index({"...", tensor({-4})});
            }),
            "E-INDEX index: index -4 is out of bounds for dimension 1 with size 3");
  EXPECT_EQ(error_of([&] {
              x.index({tensor({0}), tensor({5})});
            }),
            "E-INDEX index: index 5 is out of bounds for dimension 1 with size 3");
  EXPECT_EQ(error_of([&] { embedding(x, tensor({7})); }),
            "E-INDEX embedding: index 7 is out of bounds for dimension 0 with size 2");
  EXPECT_EQ(error_of([&] {
              one_hot(tensor({0, 5}), 5);
            }),
            "E-INDEX one_hot: index 5 is out of bounds for dimension 1 with size 5");
  Tensor y = zeros({3});
  EXPECT_EQ(error_of([&] {
              y.index_put_({tensor({0, 3})}, 1);
            }),
            "E-INDEX index_put: index 3 is out of bounds for dimension 0 with size 3");
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{0, 0, 0}));
}

TEST(Index, wrong_arguments_are_refused) {
  const Tensor x = zeros({2, 3});
  EXPECT_EQ(error_of([&] { index_select(x, 0, tensor({0.5})); }).substr(0, 59),
            "E-DTYPE index_select: expected an index of int64, got float");
  EXPECT_EQ(error_of([&] { gather(x, 0, tensor({0})); }).substr(0, 15), "E-SHAPE gather:");
  EXPECT_EQ(error_of([&] {
              x.index({0, 0, 0});
            }),
            "E-INDEX index: too many indices for tensor of dimension 2: 3");
  EXPECT_EQ(error_of([&] {
              x.index({"...", "..."});
            }),
            "E-INDEX index: an index can only have a single ellipsis");
  EXPECT_EQ(error_of([&] { x.index({tensor({true})}); }),
            "E-INDEX index: the shape of the mask [1] at index 0 does not match the shape of the indexed "
            "tensor [2, 3] "
            "at index 0");
  EXPECT_EQ(error_of([&] { scatter(x, 0, tensor({{0}}), tensor({{1}})); }),
            "E-DTYPE scatter: expected src of dtype float32, got int64");
  EXPECT_EQ(error_of([&] { one_hot(zeros({0}, kInt64)); }).substr(0, 11), "E-ARG one_h");
}

TEST(Index, one_hot) {
  EXPECT_EQ(ints(one_hot(tensor({2, 0}))), (std::vector<int64_t>{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(one_hot(zeros({2, 3}, kInt64), 4).sizes(), (Shape{2, 3, 4}));
  EXPECT_EQ(one_hot(zeros({0}, kInt64), 4).sizes(), (Shape{0, 4}));
}

TEST(Index, the_padding_row_of_an_embedding_gets_no_gradient) {
  Tensor weight = ones({4, 2}).requires_grad_();
  sum(embedding(weight, tensor({1, 3, 1, 0}), -1)).backward();
  EXPECT_EQ(weight.grad().to_vector<float>(), (std::vector<float>{1, 1, 2, 2, 0, 0, 0, 0}));
}

TEST(Index, half_gradients_of_rows_that_occur_often_are_summed_in_float) {
  Tensor weight = ones({1, 1}, kBFloat16).requires_grad_();
  sum(embedding(weight, zeros({1000}, kInt64)).to(kFloat32)).backward();
  EXPECT_EQ(weight.grad().to_vector<float>(),
            (std::vector<float>{1000}));  // in bfloat16 it would stop at 256
}

TEST(Index, large_scatter_add_is_the_same_every_time) {
  const Tensor index = randint(50, {2000});
  const Tensor source = randn({2000, 64});
  const Tensor once = index_add(zeros({50, 64}), 0, index, source);
  const Tensor column = scatter_add(zeros({50, 64}), 0, index.unsqueeze(1).expand({2000, 64}), source);
  EXPECT_EQ(once.to_vector<float>(), index_add(zeros({50, 64}), 0, index, source).to_vector<float>());
  EXPECT_EQ(once.to_vector<float>(), column.to_vector<float>());
  // Rows whose index is expanded from one number meet in one place.
  const Tensor same = scalar_tensor(3).expand({400000});
  const Tensor rows = ones({400000, 8});
  for (int repeat = 0; repeat < 10; ++repeat)
    EXPECT_EQ(index_add(zeros({5, 8}), 0, same, rows)[3].to_vector<float>(), std::vector<float>(8, 400000));
}

}  // namespace
}  // namespace gradus::optest
