#include <gradus/backends/cpu/onednn.h>
#include <gradus/base/parallel.h>
#include <gradus/runtime/environment.h>

#include <array>
#include <cstring>

namespace gradus::cpu {

uint64_t Key::hash() const {
  uint64_t h = 0x9e3779b97f4a7c15u;
  for (int i = 0; i < n_; ++i) h = (h ^ static_cast<uint64_t>(words_[i])) * 0x9fb21c651e98df25u, h ^= h >> 29;
  return h;
}

bool operator==(const Key& a, const Key& b) {
  return a.n_ == b.n_ && std::memcmp(a.words_, b.words_, sizeof(int64_t) * a.n_) == 0;
}

dnnl::engine& engine() {
  static auto* e = new dnnl::engine(dnnl::engine::kind::cpu, 0);  // never destroyed: threads may still use it
  return *e;
}

dnnl::stream& stream() {
  thread_local dnnl::stream s(engine());
  return s;
}

dnnl::memory::data_type data_type(DType dtype) {
  using type = dnnl::memory::data_type;
  switch (dtype) {
    case DType::float32:
      return type::f32;
    case DType::bfloat16:
      return type::bf16;
    case DType::float16:
      return type::f16;
    case DType::int32:
      return type::s32;
    case DType::uint8:
      return type::u8;
    default:
      GRADUS_FAIL("E-INTERNAL", "internal: oneDNN has no ", to_string(dtype));
  }
}

dnnl::memory::dims to_dims(const Shape& s) { return dnnl::memory::dims(s.begin(), s.end()); }
dnnl::memory::desc describe(const TensorArg& t) {
  return dnnl::memory::desc(to_dims(t.sizes), data_type(t.dtype), to_dims(t.strides));
}
dnnl::memory::desc any_layout(const TensorArg& t) {
  return dnnl::memory::desc(to_dims(t.sizes), data_type(t.dtype), dnnl::memory::format_tag::any);
}

void Primitive::add_operand(int dnnl_arg, const dnnl::memory::desc& desc) {
  handles_.emplace_back(desc, engine(), static_cast<void*>(DNNL_MEMORY_NONE));
  arguments_.push_back({dnnl_arg, handles_.back().get()});
}

void Primitive::add_reordered_input(int dnnl_arg, const dnnl::memory::desc& from,
                                    const dnnl::memory::desc& to) {
  if (from == to) return add_operand(dnnl_arg, from);
  handles_.emplace_back(from, engine(), static_cast<void*>(DNNL_MEMORY_NONE));
  owned_.emplace_back(to, engine());
  reorders_.push_back({dnnl::reorder(handles_.back(), owned_.back()), handles_.back(), owned_.back(), true});
  arguments_.push_back({dnnl_arg, owned_.back().get()});
}

void Primitive::add_reordered_output(int dnnl_arg, const dnnl::memory::desc& from,
                                     const dnnl::memory::desc& to) {
  if (from == to) return add_operand(dnnl_arg, from);
  handles_.emplace_back(to, engine(), static_cast<void*>(DNNL_MEMORY_NONE));
  owned_.emplace_back(from, engine());
  reorders_.push_back({dnnl::reorder(owned_.back(), handles_.back()), owned_.back(), handles_.back(), false});
  arguments_.push_back({dnnl_arg, owned_.back().get()});
}

static void execute(const dnnl::primitive& primitive, const dnnl_exec_arg_t* arguments, int count) {
  const dnnl_status_t status = dnnl_primitive_execute(primitive.get(), stream().get(), count, arguments);
  GRADUS_ASSERT(status == dnnl_success, "oneDNN status ", static_cast<int>(status));
}

void Primitive::Reorder::run() {
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}};
  execute(primitive, arguments, 2);
}

void Primitive::run(std::initializer_list<void*> addresses) {
  size_t i = 0;
  for (void* address : addresses) dnnl_memory_set_data_handle(handles_[i++].get(), address);
  for (Reorder& r : reorders_)
    if (r.before) r.run();
  execute(primitive_, arguments_.data(), static_cast<int>(arguments_.size()));
  for (Reorder& r : reorders_)
    if (!r.before) r.run();
}

Primitive* find_primitive(const Key& key, MakePrimitive make, const void* problem) {
  struct Entry {
    std::optional<Key> key;
    std::unique_ptr<Primitive> primitive;
  };
  constexpr size_t kEntries = 512;
  thread_local auto cache = std::make_unique<std::array<Entry, kEntries>>();
  Key full = key;
  full.add(get_num_threads());
  Entry& entry = (*cache)[full.hash() % kEntries];
  if (!entry.key || !(*entry.key == full)) {
    entry = {};
    auto primitive = std::make_unique<Primitive>();
    try {
      make(*primitive, problem);
      entry.primitive = std::move(primitive);
    } catch (const dnnl::error& error) {
      GRADUS_ASSERT(error.status == dnnl_unimplemented, "oneDNN: ", error.what());
    }
    entry.key = full;
  }
  return entry.primitive.get();
}

}  // namespace gradus::cpu

std::string gradus::runtime::onednn_version() {
  const dnnl_version_t* version = dnnl::version();
  return str(version->major, ".", version->minor, ".", version->patch);
}
