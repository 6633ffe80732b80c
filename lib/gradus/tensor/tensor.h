// The tensor: a handle to {storage, sizes, strides, offset, dtype, autograd state}. Copying the handle shares
// all. Methods are a closed set that forwards to the free functions of gradus/ops; those hold the
// documentation.
#pragma once
#include <gradus/base/dtype.h>
#include <gradus/base/intrusive_ptr.h>
#include <gradus/base/scalar.h>
#include <gradus/base/shape.h>
#include <gradus/base/small_vector.h>
#include <gradus/runtime/device.h>
#include <gradus/runtime/sim.h>
#include <gradus/runtime/tensor_arg.h>
#include <gradus/tensor/storage.h>

#include <functional>
#include <initializer_list>
#include <optional>
#include <vector>

namespace gradus {

class Node;
class Tensor;
class TensorIndex;
struct Stream;

/// Memory order of a dense tensor. channels_last is meant for 4-D (N, C, H, W) and is just strides.
enum class MemoryFormat : uint8_t { contiguous, channels_last };

using TensorList = SmallVector<Tensor, 4>;

namespace detail {

// What a Tensor points to. Autograd fields are empty for the many tensors that need none.
struct TensorImpl : RefCounted {
  TensorImpl();
  ~TensorImpl();

  Intrusive<Storage> storage;
  Shape sizes, strides;
  int64_t offset = 0;  // in elements
  DType dtype = DType::float32;
  bool contiguous = true;
  bool requires_grad = false;  // a leaf that wants a gradient; a non-leaf has grad_fn
  bool inference = false;
  uint32_t output_nr = 0;     // which output of grad_fn this is
  uint32_t view_version = 0;  // the storage's version when this view was made
  Intrusive<Node> grad_fn;
  Intrusive<Node> leaf;              // the AccumulateGrad of a leaf that requires grad: holds its .grad
  Intrusive<TensorImpl> base;        // of a view: the tensor it looks into
  std::shared_ptr<Tensor> retained;  // .grad of a non-leaf after retain_grad()
};

// Throws E-UNDEFINED. Every accessor does so rather than read through an empty handle.
[[noreturn]] void fail_undefined(const char* accessor);

// wrap_dim() for reading a size: here a 0-dim tensor has none.
inline int existing_dim(int64_t dim, int ndim, const char* op) {
  GRADUS_CHECK(ndim > 0, "E-DIM", op, ": dimension specified as ", dim, " but tensor has no dimensions",
               hint("numel() of a 0-dim tensor is 1; item() gives its value"));
  return wrap_dim(dim, ndim, op);
}

}  // namespace detail

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Intrusive<detail::TensorImpl> impl) : impl_(std::move(impl)) {}

  // What it is
  bool defined() const { return static_cast<bool>(impl_); }
  const Shape& sizes() const { return self().sizes; }
  int64_t size(int64_t dim) const { return sizes()[detail::existing_dim(dim, this->dim(), "size")]; }
  const Shape& strides() const { return self().strides; }
  int64_t stride(int64_t dim) const { return strides()[detail::existing_dim(dim, this->dim(), "stride")]; }
  int dim() const { return self().sizes.size(); }
  int64_t numel() const { return self().sizes.numel(); }
  int64_t storage_offset() const { return self().offset; }
  DType dtype() const { return self().dtype; }
  bool is_floating_point() const { return gradus::is_floating_point(dtype()); }
  Device device() const { return self().storage->device(); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_cpu() const { return device().is_cpu(); }
  /// The device's index; -1 for a cpu tensor, as in PyTorch.
  int get_device() const { return is_cpu() ? -1 : device().index(); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * element_size(dtype()); }
  bool is_contiguous(MemoryFormat format = MemoryFormat::contiguous) const;
  /// True when the elements fill one piece of memory without gaps or overlap, in any order.
  bool is_dense() const;
  /// channels_last if it is 4-D and dense in that order and not row-major, else contiguous.
  MemoryFormat suggest_memory_format() const;
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }
  bool is_alias_of(const Tensor& other) const { return self().storage == other.self().storage; }

  // Its data
  /// Address of the first element; throws unless T is the dtype's C++ type. Only host memory may be
  /// dereferenced.
  template <class T>
  T* data() const {
    GRADUS_CHECK(dtype_of<T>() == dtype(), "E-DTYPE", "data: expected ", to_string(dtype_of<T>()),
                 ", got a tensor of ", to_string(dtype()), hint("convert it with .to(dtype)"));
    if (device().is_sim()) [[unlikely]]
      sim::detail::note_host_pointer(arg());
    return static_cast<T*>(raw_data());
  }
  void* raw_data() const {
    return static_cast<char*>(self().storage->data()) +
           self().offset * static_cast<int64_t>(element_size(dtype()));
  }
  TensorArg arg() const {
    return {raw_data(), self().storage->id(), self().sizes, self().strides, self().dtype};
  }
  /// The only element as a T; waits for the device. Throws E-SHAPE unless numel() == 1.
  template <class T>
  T item() const {
    return item().to<T>();
  }
  Scalar item() const;
  /// All elements in row-major order, converted to T; copies from the device if needed.
  template <class T>
  std::vector<T> to_vector() const;

  // Autograd
  bool requires_grad() const { return self().requires_grad || self().grad_fn; }
  /// Throws E-REQUIRES-GRAD for integer and bool tensors and for non-leaves.
  Tensor& requires_grad_(bool on = true);
  bool is_leaf() const { return !self().grad_fn; }
  const Intrusive<Node>& grad_fn() const { return self().grad_fn; }
  /// The accumulated gradient; undefined until backward() has reached this tensor.
  const Tensor& grad() const;
  void set_grad(Tensor grad);
  /// Keeps the gradient of a non-leaf too.
  void retain_grad();
  /// Calls `hook(grad)` when this tensor's gradient is known; a defined result replaces it.
  void register_hook(std::function<Tensor(const Tensor&)> hook);
  /// Calls `hook(grad)` after this leaf's .grad was updated.
  void register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook);
  /// Computes the gradients of all leaves this was made from. `gradient` may be left out for one element.
  void backward(const Tensor& gradient = {}, bool retain_graph = false, bool create_graph = false) const;
  /// Makes this tensor, and every handle to it, hold `other`'s data, dtype and device; its autograd state
  /// stays. What module.to() does to parameters. Sizes must be equal.
  void set_data(const Tensor& other);
  /// Shares the data and the version counter; has no history.
  Tensor detach() const;
  /// Forgets how this tensor was made: it, and every handle to it, becomes a leaf that requires no grad.
  /// Throws E-INPLACE for a view.
  Tensor& detach_();
  uint32_t version() const { return self().storage->version(); }
  void bump_version() const { self().storage->bump_version(); }

  // Elsewhere, otherwise laid out (gradus/ops/copy.h, gradus/ops/transfer.h, gradus/ops/view.h)
  Tensor to(Device device, bool non_blocking = false) const;
  Tensor to(DType dtype) const;
  Tensor to(MemoryFormat format) const { return contiguous(format); }
  Tensor cpu() const;
  Tensor cuda() const;
  Tensor contiguous(MemoryFormat format = MemoryFormat::contiguous) const;
  Tensor clone() const;
  Tensor& copy_(const Tensor& source, bool non_blocking = false);
  bool is_pinned(std::optional<Device> device = {}) const;
  Tensor pin_memory(std::optional<Device> device = {}) const;
  void record_stream(const Stream& stream) const;
  Tensor view(const Shape& sizes) const;
  Tensor view_as(const Tensor& other) const { return view(other.sizes()); }
  Tensor reshape(const Shape& sizes) const;
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1) const;
  Tensor transpose(int64_t dim0, int64_t dim1) const;
  Tensor t() const;
  Tensor permute(const Shape& dims) const;
  Tensor expand(const Shape& sizes) const;
  Tensor expand_as(const Tensor& other) const { return expand(other.sizes()); }
  Tensor squeeze() const;
  Tensor squeeze(int64_t dim) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const;
  Tensor select(int64_t dim, int64_t index) const;
  Tensor slice(int64_t dim, int64_t start, int64_t end, int64_t step = 1) const;
  /// Index `i` of the first dimension, as x[i].
  Tensor operator[](int64_t i) const { return select(0, i); }
  Tensor index_select(int64_t dim, const Tensor& index) const;
  Tensor gather(int64_t dim, const Tensor& index) const;
  /// x[…] and x[…] = values: x.index({0, Slice(1, 5), None, "...", tensor}); see gradus/ops/index.h.
  Tensor index(std::initializer_list<TensorIndex> indices) const;
  Tensor& index_put_(std::initializer_list<TensorIndex> indices, const Tensor& values,
                     bool accumulate = false);
  Tensor& index_put_(std::initializer_list<TensorIndex> indices, Scalar value);
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0) const;
  std::vector<Tensor> split(int64_t split_size, int64_t dim = 0) const;

  // Arithmetic (gradus/ops/arithmetic.h, unary.h)
  Tensor add(const Tensor& other) const;
  Tensor sub(const Tensor& other) const;
  Tensor mul(const Tensor& other) const;
  Tensor div(const Tensor& other) const;
  Tensor pow(Scalar exponent) const;
  Tensor neg() const;
  Tensor abs() const;
  Tensor exp() const;
  Tensor log() const;
  Tensor sqrt() const;
  Tensor tanh() const;
  Tensor sigmoid() const;
  Tensor relu() const;
  Tensor clamp(std::optional<Scalar> min, std::optional<Scalar> max = {}) const;
  Tensor eq(const Tensor& other) const;
  Tensor masked_fill(const Tensor& mask, Scalar value) const;

  // In place; each bumps the version and throws E-INPLACE where that would spoil a gradient
  Tensor& add_(const Tensor& other);
  Tensor& add_(Scalar other);
  Tensor& sub_(const Tensor& other);
  Tensor& sub_(Scalar other);
  Tensor& mul_(const Tensor& other);
  Tensor& mul_(Scalar other);
  Tensor& div_(const Tensor& other);
  Tensor& div_(Scalar other);
  Tensor& fill_(Scalar value);
  Tensor& zero_() { return fill_(0); }
  Tensor& relu_();
  Tensor& sqrt_();
  Tensor& clamp_(std::optional<Scalar> min, std::optional<Scalar> max = {});

  // Reductions (gradus/ops/reduce.h) and products (matmul.h)
  Tensor sum() const;
  Tensor sum(const Shape& dims, bool keepdim = false) const;
  Tensor mean() const;
  Tensor mean(const Shape& dims, bool keepdim = false) const;
  Tensor max() const;
  Tensor min() const;
  Tensor argmax() const;
  Tensor argmax(int64_t dim, bool keepdim = false) const;
  Tensor norm(double p = 2) const;
  Tensor matmul(const Tensor& other) const;
  Tensor softmax(int64_t dim) const;
  Tensor log_softmax(int64_t dim) const;

  // Made like this one: same dtype and device unless given
  Tensor new_empty(const Shape& sizes) const;
  Tensor new_zeros(const Shape& sizes) const;
  Tensor new_ones(const Shape& sizes) const;
  Tensor new_full(const Shape& sizes, Scalar value) const;

  detail::TensorImpl* impl() const { return impl_.get(); }
  const Intrusive<detail::TensorImpl>& handle() const { return impl_; }

 private:
  // The caller's name is that of the accessor, unless it is given.
  detail::TensorImpl& self(const char* accessor = __builtin_FUNCTION()) const {
    if (!impl_) [[unlikely]]
      detail::fail_undefined(accessor);
    return *impl_;
  }

  Intrusive<detail::TensorImpl> impl_;
};

/// As PyTorch prints it: values in brackets, scientific where needed, long dimensions summarised.
std::string to_string(const Tensor& tensor);
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

// Operators; each is the free function of the same meaning in gradus/ops/arithmetic.h.
Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator+(const Tensor& a, Scalar b);
Tensor operator-(const Tensor& a, Scalar b);
Tensor operator*(const Tensor& a, Scalar b);
Tensor operator/(const Tensor& a, Scalar b);
Tensor operator+(Scalar a, const Tensor& b);
Tensor operator-(Scalar a, const Tensor& b);
Tensor operator*(Scalar a, const Tensor& b);
Tensor operator/(Scalar a, const Tensor& b);
Tensor operator-(const Tensor& a);
Tensor operator==(const Tensor& a, const Tensor& b);
Tensor operator!=(const Tensor& a, const Tensor& b);
Tensor operator<(const Tensor& a, const Tensor& b);
Tensor operator<=(const Tensor& a, const Tensor& b);
Tensor operator>(const Tensor& a, const Tensor& b);
Tensor operator>=(const Tensor& a, const Tensor& b);
Tensor operator==(const Tensor& a, Scalar b);
Tensor operator!=(const Tensor& a, Scalar b);
Tensor operator<(const Tensor& a, Scalar b);
Tensor operator<=(const Tensor& a, Scalar b);
Tensor operator>(const Tensor& a, Scalar b);
Tensor operator>=(const Tensor& a, Scalar b);

extern template std::vector<float> Tensor::to_vector<float>() const;
extern template std::vector<double> Tensor::to_vector<double>() const;
extern template std::vector<int64_t> Tensor::to_vector<int64_t>() const;

}  // namespace gradus
