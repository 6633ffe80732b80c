#include <gmock/gmock.h>
#include <gradus/autograd/backward.h>
#include <gradus/autograd/gradcheck.h>
#include <gradus/tensor/node.h>
#include <gradus/tensor/views.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "op_values.h"

namespace gradus::optest {
namespace {

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 0x1p-10;
    case DType::bfloat16:
      return 0x1p-7;
    case DType::float32:
      return 0x1p-23;
    case DType::float64:
      return 0x1p-52;
    default:
      return 0;
  }
}

bool close(double got, double want, double tolerance) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return want == got;
  return std::fabs(got - want) <= tolerance * std::max(1.0, std::fabs(want));
}

class Checker {
 public:
  Checker(const OpCase& c, Device device) : c_(c), device_(device) {}

  std::vector<std::string> run() {
    const int64_t nodes = Node::live_count();
    for (const auto& shapes : c_.shapes) {
      shapes_ = &shapes;
      guarded("forward", [&] { check_forward(); });
      guarded("layouts", [&] { check_layouts(); });
      if (!has_gradient()) {
        guarded("gradient", [&] { check_no_gradient(); });
        continue;
      }
      guarded("gradient", [&] { check_gradient(); });
      guarded("gradient", [&] { check_gradient_dtypes(); });
      guarded("second derivative", [&] { check_second_derivative(); });
      guarded("gradient layouts", [&] { check_gradient_layouts(); });
    }
    if (Node::live_count() != nodes)
      failures_.push_back(str(c_.name, " [nodes]: ", Node::live_count() - nodes, " of them are left"));
    return std::move(failures_);
  }

 private:
  template <class F>
  void guarded(const char* what, const F& check) {
    try {
      check();
    } catch (const std::exception& e) {
      fail(what, str("threw ", e.what()));
    }
  }

  void fail(const std::string& what, const std::string& text) {
    std::string sizes;
    for (const Shape& s : *shapes_) sizes += str(sizes.empty() ? "" : ", ", s);
    failures_.push_back(str(c_.name, " [", what, "] at ", sizes, " on ", device_, ": ", text));
  }

  DType dtype_of_input(size_t k, DType dtype) const {
    const DType own = c_.inputs[k].values.dtype;
    return gradus::is_floating_point(own) ? dtype : own;
  }
  bool differentiable(size_t k) const {
    return c_.inputs[k].differentiable && gradus::is_floating_point(c_.inputs[k].values.dtype);
  }
  bool has_gradient() const {
    for (size_t k = 0; k < c_.inputs.size(); ++k)
      if (differentiable(k)) return true;
    return false;
  }

  Tensors inputs(DType dtype, MakeLayout layout, bool grad) const {
    Tensors x;
    for (size_t k = 0; k < c_.inputs.size(); ++k) {
      const Shape& sizes = (*shapes_)[k];
      const RefArray values = draw(c_.inputs[k].values, sizes, c_.name, k);
      x.push_back(make_tensor(values, dtype_of_input(k, dtype), layout(sizes), device_));
      if (grad && differentiable(k)) x.back().requires_grad_();
    }
    return x;
  }

  // The reference of what the tensors hold after rounding to their dtype.
  RefArray expected(const Tensors& x) const {
    RefArrays values;
    for (const Tensor& t : x) values.push_back(values_of(t));
    return c_.reference(values);
  }

  bool compare(const std::string& what, const RefArray& got, const RefArray& want, double tolerance) {
    if (got.sizes != want.sizes) {
      fail(what, str("shape ", got.sizes, ", expected ", want.sizes));
      return false;
    }
    for (int64_t i = 0; i < got.numel(); ++i) {
      if (close(got[i], want[i], tolerance)) continue;
      fail(what, str("element ", i, " is ", got[i], ", expected ", want[i]));
      return false;
    }
    return true;
  }

  void check_forward() {
    for (int d = 0; d < kDTypeCount; ++d) {
      const DType dtype = static_cast<DType>(d);
      if (!c_.dtypes.has(dtype)) continue;
      const Tensors x = inputs(dtype, contiguous_layout, false);
      compare(str("forward ", to_string(dtype)), values_of(c_.forward(x)), expected(x),
              c_.tolerance * epsilon(dtype));
    }
  }

  std::vector<MakeLayout> layouts() const {
    std::vector<MakeLayout> list{transposed_layout, sliced_layout};
    bool any_4d = false;
    for (const Shape& s : *shapes_) any_4d = any_4d || s.size() == 4;
    if (any_4d && c_.channels_last) list.push_back(channels_last_layout);
    return list;
  }

  DType layout_dtype() const { return c_.dtypes.has(kFloat32) ? kFloat32 : kInt64; }

  void check_layouts() {
    const DType dtype = layout_dtype();
    for (MakeLayout layout : layouts()) {
      const Tensors x = inputs(dtype, layout, false);
      compare(str("forward, ", layout({}).name), values_of(c_.forward(x)), expected(x),
              c_.tolerance * epsilon(dtype));
    }
  }

  void check_no_gradient() {
    Tensors x = inputs(layout_dtype(), contiguous_layout, false);
    for (Tensor& t : x)
      if (t.is_floating_point()) t.requires_grad_();
    if (c_.forward(x).requires_grad()) fail("gradient", "the result requires grad though no input gets one");
  }

  void check_gradient() { autograd::gradcheck(c_.forward, inputs(kFloat64, contiguous_layout, true)); }

  RefArrays gradients(const Tensors& x, MakeLayout cotangent_layout, bool create_graph = false) {
    Tensors wanted;
    for (const Tensor& t : x)
      if (t.requires_grad()) wanted.push_back(t);
    const Tensor y = c_.forward(x);
    const RefArray cotangent = cotangent_layout == expanded_layout
                                   ? RefArray(y.sizes(), 0.75)
                                   : draw(uniform(-1, 1), y.sizes(), c_.name, 99);
    const Tensor gy = make_tensor(cotangent, y.dtype(), cotangent_layout(y.sizes()), device_);
    const Tensors grads = autograd::grad({y}, wanted, {gy}, create_graph, create_graph, true);
    RefArrays values;
    for (size_t k = 0; k < grads.size(); ++k) {
      if (!grads[k].defined()) {
        values.emplace_back(wanted[k].sizes());
        continue;
      }
      if (grads[k].dtype() != wanted[k].dtype())
        fail("gradient", str("its dtype is ", to_string(grads[k].dtype()), ", the input's ",
                             to_string(wanted[k].dtype())));
      values.push_back(values_of(grads[k]));
    }
    return values;
  }

  // What double gives on the numbers that the tensors of another dtype hold.
  RefArrays gradients_in_double(const Tensors& x, MakeLayout cotangent_layout) {
    Tensors precise;
    for (const Tensor& t : x) {
      const DType dtype = t.is_floating_point() ? kFloat64 : t.dtype();
      precise.push_back(tensor_of(values_of(t), dtype, device_));
      if (t.requires_grad()) precise.back().requires_grad_();
    }
    return gradients(precise, cotangent_layout);
  }

  void compare_gradients(const std::string& what, const Tensors& x, MakeLayout cotangent_layout,
                         DType dtype) {
    const RefArrays got = gradients(x, cotangent_layout);
    const RefArrays want =
        gradients_in_double(x, cotangent_layout == expanded_layout ? expanded_layout : contiguous_layout);
    for (size_t k = 0; k < got.size(); ++k)
      compare(str(what, ", input ", k), got[k], want[k], c_.gradient_tolerance * epsilon(dtype));
  }

  void check_gradient_dtypes() {
    for (DType dtype : {kFloat16, kBFloat16, kFloat32})
      if (c_.dtypes.has(dtype))
        compare_gradients(str("gradient ", to_string(dtype)), inputs(dtype, contiguous_layout, true),
                          contiguous_layout, dtype);
  }

  void check_gradient_layouts() {
    const DType dtype = layout_dtype();
    for (MakeLayout layout : layouts())
      compare_gradients(str("gradient, ", layout({}).name), inputs(dtype, layout, true), contiguous_layout,
                        dtype);
    for (MakeLayout layout : {transposed_layout, sliced_layout, expanded_layout})
      compare_gradients(str("gradient, incoming one ", layout({}).name),
                        inputs(dtype, contiguous_layout, true), layout, dtype);
  }

  void check_second_derivative() {
    const Tensors x = inputs(kFloat64, contiguous_layout, true);
    if (c_.twice_differentiable) {
      autograd::gradgradcheck(c_.forward, x);
      // A recorded pass may take another road to the same numbers.
      const RefArrays got = gradients(x, contiguous_layout, true), want = gradients(x, contiguous_layout);
      for (size_t k = 0; k < got.size(); ++k)
        compare(str("gradient with create_graph, input ", k), got[k], want[k],
                c_.gradient_tolerance * epsilon(kFloat64));
      return;
    }
    try {
      autograd::gradgradcheck(c_.forward, x);
      fail("second derivative", "create_graph was not refused");
    } catch (const Error& e) {
      if (e.code() != "E-DOUBLE-BACKWARD") fail("second derivative", str("threw ", e.what()));
    }
  }

  const OpCase& c_;
  Device device_;
  const std::vector<Shape>* shapes_ = nullptr;
  std::vector<std::string> failures_;
};

}  // namespace

std::vector<std::string> failures(const OpCase& c, Device device) { return Checker(c, device).run(); }

std::vector<std::vector<Shape>> pointwise_shapes(int n) {
  const size_t count = static_cast<size_t>(n);
  std::vector<std::vector<Shape>> shapes;
  for (const Shape& s : {Shape{3, 4}, Shape{2, 3, 2, 2}, Shape{}, Shape{0, 3}, Shape{1, 3, 1}})
    shapes.emplace_back(count, s);
  if (n > 1) {
    shapes.emplace_back(count, Shape{2, 3}).back() = {3};
    shapes.emplace_back(count, Shape{3, 1}).back() = {2, 1, 2};
    shapes.emplace_back(count, Shape{1, 2}).front() = {0, 1};
  }
  return shapes;
}

void PrintTo(const Run& run, std::ostream* out) { *out << run.op.name << " on " << to_string(run.device); }

std::vector<Run> on_every_device(const std::vector<OpCase>& cases) {
  std::vector<Run> runs;
  for (DeviceType type : {DeviceType::cpu, DeviceType::sim, DeviceType::cuda})
    if (device_count(type) > 0)
      for (const OpCase& c : cases) runs.push_back({c, Device(type)});
  return runs;
}

std::string run_name(const ::testing::TestParamInfo<Run>& info) {
  std::string name = info.param.op.name + "_" + to_string(info.param.device.type());
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

TEST_P(OpTest, agrees_with_its_reference) {
  EXPECT_THAT(failures(GetParam().op, GetParam().device), ::testing::IsEmpty());
}
// Other test programs may link this file and have no case.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OpTest);

}  // namespace gradus::optest
