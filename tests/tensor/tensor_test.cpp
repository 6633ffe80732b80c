// What a tensor is: sizes, strides, views, memory formats, versions.
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/index.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/random.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/view.h>
#include <gradus/tensor/node.h>
#include <gtest/gtest.h>

#include <functional>

namespace gradus {
namespace {

std::vector<int64_t> ints(const Tensor& t) { return t.to_vector<int64_t>(); }

std::string code_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  return "none";
}

TEST(Tensor, an_undefined_one_is_refused_by_every_accessor) {
  const Tensor none;
  const std::vector<std::function<void()>> uses = {[&] { none.sizes(); },
                                                   [&] { none.size(0); },
                                                   [&] { none.strides(); },
                                                   [&] { none.stride(0); },
                                                   [&] { none.dim(); },
                                                   [&] { none.numel(); },
                                                   [&] { none.dtype(); },
                                                   [&] { none.device(); },
                                                   [&] { none.storage_offset(); },
                                                   [&] { none.is_contiguous(); },
                                                   [&] { none.is_dense(); },
                                                   [&] { none.raw_data(); },
                                                   [&] { none.arg(); },
                                                   [&] { none.item(); },
                                                   [&] { none.to_vector<float>(); },
                                                   [&] { none.requires_grad(); },
                                                   [&] { none.is_leaf(); },
                                                   [&] { none.grad_fn(); },
                                                   [&] { none.grad(); },
                                                   [&] { none.backward(); },
                                                   [&] { none.detach(); },
                                                   [&] { none.version(); },
                                                   [&] { none.bump_version(); },
                                                   [&] { none.is_alias_of(none); },
                                                   [&] { zeros({}).is_alias_of(none); },
                                                   [&] { Tensor().requires_grad_(); },
                                                   [&] { zeros({2}).set_data(none); },
                                                   [&] { Tensor().set_data(zeros({2})); }};
  for (size_t i = 0; i < uses.size(); ++i) EXPECT_EQ(code_of(uses[i]), "E-UNDEFINED") << "use " << i;
}

TEST(Tensor, an_undefined_operand_is_named) {
  const Tensor none, x = zeros({2, 2});
  try {
    linear(x, none);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).substr(0, 67),
              "linear: expected weight to be a tensor, got an undefined one\n  hint");
  }
  EXPECT_EQ(linear(x, x, none).sizes(), (Shape{2, 2}));  // an optional one may be left out
}

TEST(Tensor, a_0_dim_tensor_has_no_size_to_read) {
  const Tensor x = zeros({});
  for (int64_t dim : {0, -1, 1}) {
    EXPECT_EQ(code_of([&] { x.size(dim); }), "E-DIM") << dim;
    EXPECT_EQ(code_of([&] { x.stride(dim); }), "E-DIM") << dim;
  }
}

TEST(Tensor, describes_itself) {
  const Tensor x = zeros({2, 3, 4}, kFloat16);
  EXPECT_EQ(x.dim(), 3);
  EXPECT_EQ(x.numel(), 24);
  EXPECT_EQ(x.nbytes(), 48u);
  EXPECT_EQ(x.size(-1), 4);
  EXPECT_EQ(x.strides(), (Shape{12, 4, 1}));
  EXPECT_EQ(x.stride(-2), 4);
  EXPECT_TRUE(x.is_cpu() && x.is_floating_point() && x.is_leaf());
  EXPECT_EQ(x.get_device(), -1);
  EXPECT_EQ(code_of([&] { x.size(3); }), "E-DIM");
  EXPECT_EQ(code_of([&] { x.data<float>(); }), "E-DTYPE");
  EXPECT_FALSE(Tensor().defined());
}

TEST(Tensor, copying_the_handle_shares_all) {
  const Tensor x = zeros({2});
  Tensor y = x;
  y.fill_(3);
  EXPECT_TRUE(y.is_same(x));
  EXPECT_EQ(ints(x), (std::vector<int64_t>{3, 3}));
}

TEST(TensorViews, see_each_others_changes) {
  const Tensor x = arange(12).reshape({3, 4});
  Tensor column = x.select(1, 2);
  EXPECT_EQ(column.storage_offset(), 2);
  EXPECT_EQ(column.strides(), (Shape{4}));
  column.fill_(0);
  EXPECT_EQ(ints(x), (std::vector<int64_t>{0, 1, 0, 3, 4, 5, 0, 7, 8, 9, 0, 11}));
  x.t().slice(0, 1, 4, 2).narrow(1, 0, 1).mul_(-1);
  EXPECT_EQ(ints(x[0]), (std::vector<int64_t>{0, -1, 0, -3}));
}

TEST(TensorViews, strides_tell_contiguous_and_dense) {
  const Tensor x = zeros({2, 3, 4, 5});
  EXPECT_TRUE(x.is_contiguous() && x.is_dense());
  const Tensor permuted = x.permute({0, 2, 3, 1});
  EXPECT_FALSE(permuted.is_contiguous());
  EXPECT_TRUE(permuted.is_dense());
  EXPECT_FALSE(x.slice(3, 0, 4).is_dense());
  EXPECT_FALSE(x.select(0, 0).unsqueeze(0).expand({2, 3, 4, 5}).is_dense());
  EXPECT_TRUE(zeros({1, 3}).t().is_contiguous());  // a dimension of size 1 may have any stride
  EXPECT_TRUE(zeros({0, 3}).t().is_contiguous());
}

TEST(TensorViews, broadcasting_reads_one_element_many_times) {
  const Tensor column = arange(3).unsqueeze(1), row = arange(2);
  EXPECT_EQ(ints(column * 10 + row), (std::vector<int64_t>{0, 1, 10, 11, 20, 21}));
  EXPECT_EQ((zeros({4, 1, 2}) + zeros({3, 1})).sizes(), (Shape{4, 3, 2}));
  EXPECT_EQ((zeros({0, 2}) + zeros({1, 2})).sizes(), (Shape{0, 2}));
  EXPECT_EQ(code_of([] { zeros({2, 3}) + zeros({2, 4}); }), "E-SHAPE");
}

TEST(TensorViews, a_write_through_an_operation_with_itself_reads_first) {
  Tensor m = arange(4).reshape({2, 2});
  m.add_(m.t());
  EXPECT_EQ(ints(m), (std::vector<int64_t>{0, 3, 3, 6}));
}

TEST(ChannelsLast, is_kept_by_elementwise_operations_and_copies) {
  const Tensor x = rand({2, 3, 4, 5}).contiguous(MemoryFormat::channels_last);
  EXPECT_EQ(x.strides(), (Shape{60, 1, 15, 3}));
  EXPECT_TRUE(x.is_contiguous(MemoryFormat::channels_last));
  EXPECT_FALSE(x.is_contiguous());
  EXPECT_EQ((x + x).strides(), x.strides());
  EXPECT_EQ((x * 2.0 + rand({3, 1, 1})).strides(), x.strides());
  EXPECT_EQ(x.clone().strides(), x.strides());
  EXPECT_EQ(x.to(kFloat64).strides(), x.strides());
  EXPECT_EQ(empty_like(x).strides(), x.strides());
  EXPECT_EQ(x.contiguous().strides(), (Shape{60, 20, 5, 1}));
}

TEST(Versions, every_change_counts_and_views_and_detach_share_the_counter) {
  Tensor x = zeros({4});
  const Tensor view = x.slice(0, 1, 3), detached = x.detach();
  uint32_t before = x.version();
  auto expect_bump = [&](const char* what) {
    EXPECT_GT(x.version(), before) << what;
    EXPECT_EQ(view.version(), x.version());
    EXPECT_EQ(detached.version(), x.version());
    before = x.version();
  };
  x.add_(1);
  expect_bump("add_");
  x.mul_(x);
  expect_bump("mul_");
  x.fill_(2);
  expect_bump("fill_");
  x.copy_(ones({4}));
  expect_bump("copy_");
  Tensor(view).add_(1);
  expect_bump("a view");
  Tensor(detached).zero_();
  expect_bump("a detached tensor");
  normal_(x);
  expect_bump("normal_");
  x.index_put_({0}, 1);
  expect_bump("index_put_");
  EXPECT_EQ(x.clone().version(), 0u);
}

TEST(Versions, a_saved_tensor_that_was_changed_is_an_error_with_both_versions) {
  Tensor x = ones({2, 3}).requires_grad_();
  Tensor y = x * 2.0;
  const Tensor z = y * y;
  y.add_(1);
  try {
    sum(z).backward();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-INPLACE");
    EXPECT_EQ(
        std::string(e.what()),
        "MulBackward: one of the variables needed for gradient computation has been modified by an inplace "
        "operation: the input of shape [2, 3] is at version 1, expected version 0\n"
        "  hint: use the out-of-place operation, or clone() the tensor before changing it");
  }
}

TEST(Versions, a_view_of_a_result_in_a_graph_cannot_be_changed) {
  Tensor x = ones({3}).requires_grad_();
  Tensor y = x * 2.0;
  EXPECT_EQ(code_of([&] { y[0].fill_(1); }), "E-INPLACE");
  EXPECT_EQ(y.detach().to_vector<float>(), (std::vector<float>{2, 2, 2}));
  Tensor plain = zeros({3});
  EXPECT_EQ(code_of([&] { plain[0].copy_(x[0]); }), "E-INPLACE");
}

TEST(Versions, in_place_on_a_result_keeps_its_history) {
  Tensor x = ones({2}).requires_grad_();
  Tensor y = x * 2.0;
  y.add_(x).mul_(3);
  sum(y).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{9, 9}));
}

TEST(Detach, shares_data_and_has_no_history) {
  Tensor x = ones({2}).requires_grad_();
  const Tensor y = (x * 2.0).detach();
  EXPECT_FALSE(y.requires_grad());
  EXPECT_TRUE(y.is_leaf());
  EXPECT_TRUE(x.detach().is_alias_of(x));
}

TEST(FromBlob, an_address_that_is_null_is_refused) {
  EXPECT_EQ(code_of([] { from_blob(nullptr, {2}, kFloat32); }), "E-ARG");
  EXPECT_EQ(from_blob(nullptr, {0}, kFloat32).numel(), 0);
}

TEST(EmptyStrided, strides_must_fill_the_shape) {
  EXPECT_EQ(empty_strided({2, 3}, {1, 2}, kFloat32, {}).strides(), (Shape{1, 2}));
  for (const Shape& strides : {Shape{100, 1}, Shape{-3, 1}, Shape{0, 1}, Shape{1}})
    EXPECT_EQ(code_of([&] { empty_strided({2, 3}, strides, kFloat32, {}); }), "E-STRIDE");
}

TEST(FromBlob, uses_the_callers_memory_and_gives_it_back_with_the_last_view) {
  float numbers[] = {1, 2, 3, 4};
  int freed = 0;
  {
    Tensor view;
    {
      const Tensor x = from_blob(numbers, {2, 2}, kFloat32, [&](void* p) { freed += p == numbers; });
      view = x.t();
    }
    EXPECT_EQ(freed, 0);
    view.add_(1);
  }
  EXPECT_EQ(freed, 1);
  EXPECT_EQ(numbers[3], 5);
}

}  // namespace
}  // namespace gradus
