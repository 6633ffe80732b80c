// Texts that PyTorch printed are in tests/golden; here are the parts that are ours, and a few by hand.
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/view.h>
#include <gtest/gtest.h>

#include <locale>
#include <sstream>

namespace gradus {
namespace {

TEST(Printing, plain_values) {
  EXPECT_EQ(to_string(tensor({{1.0, 2.0}, {3.0, 4.0}})), "tensor([[1., 2.],\n        [3., 4.]])");
  EXPECT_EQ(to_string(tensor({1.0, -0.25})), "tensor([ 1.0000, -0.2500])");
  EXPECT_EQ(to_string(tensor({true, false})), "tensor([ True, False])");
  EXPECT_EQ(to_string(zeros({0, 3})), "tensor([], size=(0, 3))");
  EXPECT_EQ(to_string(tensor(7)), "tensor(7)");
  EXPECT_EQ(to_string(Tensor()), "tensor(undefined)");
}

TEST(Printing, suffixes) {
  Tensor x = tensor({1.0}).requires_grad_();
  EXPECT_EQ(to_string(x), "tensor([1.], requires_grad=True)");
  EXPECT_EQ(to_string(x + x), "tensor([2.], grad_fn=<AddBackward>)");
  EXPECT_EQ(to_string(tensor({1.0}, {.dtype = kFloat64})), "tensor([1.], dtype=torch.float64)");
}

TEST(Printing, any_strides) {
  const Tensor x = arange(6).reshape({2, 3});
  EXPECT_EQ(to_string(x.t()), "tensor([[0, 3],\n        [1, 4],\n        [2, 5]])");
  EXPECT_EQ(to_string(x.slice(1, 0, 3, 2)), "tensor([[0, 2],\n        [3, 5]])");
  EXPECT_EQ(to_string(tensor(5).expand({2})), "tensor([5, 5])");
}

TEST(Printing, a_long_suffix_takes_a_line_of_its_own) {
  EXPECT_EQ(to_string(full({19}, 1.0, {.dtype = kFloat64})),
            "tensor([1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.,\n"
            "        1.], dtype=torch.float64)");
  EXPECT_EQ(to_string(full({17}, 1.0, {.dtype = kFloat64})),
            "tensor([1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.],\n"
            "       dtype=torch.float64)");
}

struct GroupingComma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Printing, does_not_depend_on_the_locale) {
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new GroupingComma));
  std::ostringstream out;
  out << tensor({1234.5, 1.0}) << tensor({1234567});
  const std::string sizes = to_string(zeros({0, 1234}));
  std::locale::global(before);
  EXPECT_EQ(out.str(), "tensor([1.2345e+03, 1.0000e+00])tensor([1234567])");
  EXPECT_EQ(sizes, "tensor([], size=(0, 1234))");
}

}  // namespace
}  // namespace gradus
