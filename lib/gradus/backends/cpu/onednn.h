// oneDNN behind two ideas: a primitive is made once per problem (a Key) and kept, and running it costs a
// pointer update per operand. What differs between oneDNN 2 and 3 is here and nowhere else.
#pragma once
#include <gradus/runtime/tensor_arg.h>

#include <dnnl.hpp>
#include <memory>
#include <optional>

namespace gradus::cpu {

/// Identifies a primitive: the kind of operation and all that it was made for.
class Key {
 public:
  explicit Key(int64_t kind) { add(kind); }
  Key& add(int64_t value) {
    GRADUS_ASSERT(n_ < kCapacity);
    words_[n_++] = value;
    return *this;
  }
  Key& add(const TensorArg& t) {
    add(static_cast<int64_t>(t.dtype) * 16 + t.dim() + (t.present() ? 1024 : 0));
    for (int d = 0; d < t.dim(); ++d) add(t.sizes[d]).add(t.strides[d]);
    return *this;
  }
  uint64_t hash() const;
  friend bool operator==(const Key& a, const Key& b);

 private:
  static constexpr int kCapacity = 72;
  int64_t words_[kCapacity];
  int n_ = 0;
};

/// A primitive with its operands' descriptors. Operand i of run() is the i-th added.
class Primitive {
 public:
  void set(dnnl::primitive primitive) { primitive_ = std::move(primitive); }
  void add_operand(int dnnl_arg, const dnnl::memory::desc& desc);
  /// An operand in `from` layout at run time that the primitive wants in `to`: reordered before each run.
  void add_reordered_input(int dnnl_arg, const dnnl::memory::desc& from, const dnnl::memory::desc& to);
  /// An output that the primitive makes in `from` layout and the caller wants in `to`: reordered after each
  /// run.
  void add_reordered_output(int dnnl_arg, const dnnl::memory::desc& from, const dnnl::memory::desc& to);
  void run(std::initializer_list<void*> addresses);

 private:
  struct Reorder {
    dnnl::primitive primitive;
    dnnl::memory from, to;
    bool before;
    void run();
  };
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> handles_;  // what the caller's addresses go into, in order
  std::vector<dnnl_exec_arg_t> arguments_;
  std::vector<dnnl::memory> owned_;  // keeps internal buffers alive
  std::vector<Reorder> reorders_;
};

/// The primitive of `key`, made by `make` the first time. Returns nullptr if oneDNN has none for this problem
/// (a dtype that this processor lacks); that answer is kept too. One cache per thread: a primitive's scratch
/// memory is its own.
using MakePrimitive = void (*)(Primitive&, const void* problem);
Primitive* find_primitive(const Key& key, MakePrimitive make, const void* problem);

dnnl::engine& engine();
dnnl::stream& stream();
dnnl::memory::data_type data_type(DType dtype);
/// The operand as it lies in memory.
dnnl::memory::desc describe(const TensorArg& t);
/// The same sizes and dtype, layout chosen by oneDNN.
dnnl::memory::desc any_layout(const TensorArg& t);
dnnl::memory::dims to_dims(const Shape& s);

/// primitive_desc of P from its operation's arguments, in oneDNN 2's and 3's way. `hint` is the forward one,
/// for backward primitives.
template <class P, class... A>
typename P::primitive_desc make_primitive_desc(const A&... a) {
#if DNNL_VERSION_MAJOR >= 3
  return typename P::primitive_desc(engine(), a...);
#else
  return typename P::primitive_desc(typename P::desc(a...), engine());
#endif
}
template <class P, class Hint, class... A>
typename P::primitive_desc make_backward_desc(const Hint& hint, const A&... a) {
#if DNNL_VERSION_MAJOR >= 3
  return typename P::primitive_desc(engine(), a..., hint);
#else
  return typename P::primitive_desc(typename P::desc(a...), engine(), hint);
#endif
}

}  // namespace gradus::cpu
