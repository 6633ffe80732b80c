// The functions of cuBLASLt that the backend calls. The product reads nothing but its descriptors, and what
// NVIDIA's documentation does not allow is refused, so that a wrong descriptor gives a wrong number or an
// error.
#include <cublasLt.h>
#include <cuda_on_host/vendor.h>

#include <algorithm>

using namespace gradus::cuda_on_host;

namespace {

// What lies in the opaque structures.
struct Layout {
  cudaDataType type;
  int32_t batch;
  uint64_t rows, columns;
  int64_t leading, batch_stride;
};
struct Product {
  cublasComputeType_t compute;
  cudaDataType scale;
  cublasOperation_t a, b;
  uint32_t epilogue;
  const void* bias;
};
struct Preference {
  uint64_t workspace;
  uint32_t alignment[4], reductions;  // of A, B, C, D
};
struct Algorithm {
  uint64_t workspace, problem;
  uint32_t alignment[4], bias_alignment;
};
struct Handle {
  int device;
};

template <class T, class Opaque>
T& as(Opaque* opaque) {
  static_assert(sizeof(T) <= sizeof(opaque->data));
  void* memory = opaque->data;
  return *static_cast<T*>(memory);
}
template <class T, class Opaque>
const T& as(const Opaque* opaque) {
  return *reinterpret_cast<const T*>(opaque->data);
}

template <class T>
cublasStatus_t set(T& field, const void* from, size_t bytes) {
  if (!from || bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, from, sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
cublasStatus_t get(const T& field, void* to, size_t bytes, size_t* written) {
  if (!to || bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to, &field, sizeof(T));
  if (written) *written = sizeof(T);
  return CUBLAS_STATUS_SUCCESS;
}

// All of a product; copied into the work that is queued.
struct Problem {
  Product product;
  Layout a, b, c, d;

  uint64_t rows() const { return product.a == CUBLAS_OP_N ? a.rows : a.columns; }
  uint64_t inner() const { return product.a == CUBLAS_OP_N ? a.columns : a.rows; }
  uint64_t columns() const { return product.b == CUBLAS_OP_N ? b.columns : b.rows; }
  bool has_bias() const { return product.epilogue == CUBLASLT_EPILOGUE_BIAS; }

  uint64_t hash() const {
    uint64_t h = 0x9e3779b97f4a7c15u;
    const auto mix = [&h](uint64_t word) { h = (h ^ word) * 0x9fb21c651e98df25u, h ^= h >> 29; };
    for (const Layout* m : {&a, &b, &c, &d})
      for (const uint64_t word :
           {static_cast<uint64_t>(m->type), static_cast<uint64_t>(m->batch), m->rows, m->columns,
            static_cast<uint64_t>(m->leading), static_cast<uint64_t>(m->batch_stride)})
        mix(word);
    for (const uint64_t word :
         {static_cast<uint64_t>(product.compute), static_cast<uint64_t>(product.scale),
          static_cast<uint64_t>(product.a), static_cast<uint64_t>(product.b), uint64_t{product.epilogue}})
      mix(word);
    return h;
  }

  // cuBLASLt wants equal batch counts, matrices that fit, and columns that do not overlap.
  bool is_valid() const {
    const auto fits = [this](const Layout& m) {
      return m.rows > 0 && m.columns > 0 && m.leading >= static_cast<int64_t>(m.rows) && m.batch == d.batch &&
             m.batch_stride >= 0;
    };
    const uint64_t inner_b = product.b == CUBLAS_OP_N ? b.rows : b.columns;
    return fits(a) && fits(b) && fits(c) && fits(d) && d.batch > 0 && inner() == inner_b &&
           d.rows == rows() && d.columns == columns() && c.rows == d.rows && c.columns == d.columns &&
           (d.batch == 1 || d.batch_stride >= d.leading * static_cast<int64_t>(d.columns)) &&
           (!has_bias() || product.bias);
  }

  // The rows of the documentation's table that have one type for all matrices.
  bool is_supported() const {
    if (a.type != b.type || a.type != c.type || a.type != d.type) return false;
    if (product.epilogue != CUBLASLT_EPILOGUE_DEFAULT && !has_bias()) return false;
    if (d.batch > 65535) return false;
    switch (product.compute) {
      case CUBLAS_COMPUTE_32F:
        return product.scale == CUDA_R_32F &&
               (d.type == CUDA_R_32F || d.type == CUDA_R_16F || d.type == CUDA_R_16BF);
      case CUBLAS_COMPUTE_32F_FAST_TF32:
        return product.scale == CUDA_R_32F && d.type == CUDA_R_32F;
      case CUBLAS_COMPUTE_64F:
        return product.scale == CUDA_R_64F && d.type == CUDA_R_64F;
      default:
        return false;
    }
  }
};

Element element(cudaDataType type) {
  return type == CUDA_R_16F    ? Element::f16
         : type == CUDA_R_16BF ? Element::bf16
         : type == CUDA_R_64F  ? Element::f64
                               : Element::f32;
}

Problem problem_of(cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                   cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
  return {as<Product>(product), as<Layout>(a), as<Layout>(b), as<Layout>(c), as<Layout>(d)};
}

bool is_aligned(const void* data, uint32_t alignment) {
  return reinterpret_cast<uintptr_t>(data) % alignment == 0;
}

struct Operands {
  const void *a, *b, *c;
  void *d, *workspace;
  size_t workspace_bytes;
  double alpha, beta;
};

void check_memory(const Problem& p, const Operands& o, int device) {
  const int64_t size = size_of(element(p.d.type));
  const auto require = [&](const Layout& m, const void* data) {
    const int64_t last = (m.batch - 1) * m.batch_stride + static_cast<int64_t>(m.columns - 1) * m.leading +
                         static_cast<int64_t>(m.rows);
    require_device_memory(device, data, last * size);
  };
  require(p.a, o.a), require(p.b, o.b), require(p.c, o.c), require(p.d, o.d);
  if (p.has_bias()) require_device_memory(device, p.product.bias, static_cast<int64_t>(p.rows()) * size);
  if (o.workspace_bytes > 0) {
    require_device_memory(device, o.workspace, static_cast<int64_t>(o.workspace_bytes));
    std::memset(o.workspace, 0xab, 64);
  }
}

void multiply(const Problem& p, const Operands& o) {
  const Element type = element(p.d.type);
  const bool tf32 = p.product.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const auto m = static_cast<int64_t>(p.rows()), n = static_cast<int64_t>(p.columns()),
             k = static_cast<int64_t>(p.inner());
  const auto read = [&](const Layout& layout, cublasOperation_t op, const void* data, int64_t matrix,
                        int64_t i, int64_t j) {
    if (op != CUBLAS_OP_N) std::swap(i, j);
    const double value = load(type, data, matrix * layout.batch_stride + j * layout.leading + i);
    return tf32 ? to_tf32(value) : value;
  };
  for (int64_t matrix = 0; matrix < p.d.batch; ++matrix)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += read(p.a, p.product.a, o.a, matrix, i, l) * read(p.b, p.product.b, o.b, matrix, l, j);
        sum *= o.alpha;
        if (o.beta != 0) sum += o.beta * load(type, o.c, matrix * p.c.batch_stride + j * p.c.leading + i);
        if (p.has_bias()) sum += load(type, p.product.bias, i);
        store(type, o.d, matrix * p.d.batch_stride + j * p.d.leading + i, sum);
      }
}

}  // namespace

const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    default:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
  }
}
const char* cublasLtGetStatusString(cublasStatus_t) { return "in words"; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (const int status = injected_status("cublasLtCreate")) return static_cast<cublasStatus_t>(status);
  *handle = reinterpret_cast<cublasLtHandle_t>(new Handle{current_device});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size,
                                                 cudaDataType type, uint64_t rows, uint64_t columns,
                                                 int64_t leading) {
  if (!layout || size != sizeof *layout) return CUBLAS_STATUS_INVALID_VALUE;
  as<Layout>(layout) = {type, 1, rows, columns, leading, 0};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t what, const void* from,
                                                size_t bytes) {
  if (what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return set(as<Layout>(layout).batch, from, bytes);
  if (what == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
    return set(as<Layout>(layout).batch_stride, from, bytes);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t what, void* to, size_t bytes,
                                                size_t* written) {
  const Layout& l = as<Layout>(layout);
  if (what == CUBLASLT_MATRIX_LAYOUT_TYPE) return get(static_cast<uint32_t>(l.type), to, bytes, written);
  if (what == CUBLASLT_MATRIX_LAYOUT_ROWS) return get(l.rows, to, bytes, written);
  if (what == CUBLASLT_MATRIX_LAYOUT_COLS) return get(l.columns, to, bytes, written);
  if (what == CUBLASLT_MATRIX_LAYOUT_LD) return get(l.leading, to, bytes, written);
  if (what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return get(l.batch, to, bytes, written);
  if (what == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) return get(l.batch_stride, to, bytes, written);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t product, size_t size,
                                               cublasComputeType_t compute, cudaDataType scale) {
  if (!product || size != sizeof *product) return CUBLAS_STATUS_INVALID_VALUE;
  as<Product>(product) = {compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t what, const void* from,
                                              size_t bytes) {
  Product& p = as<Product>(product);
  if (what == CUBLASLT_MATMUL_DESC_TRANSA) return set(p.a, from, bytes);
  if (what == CUBLASLT_MATMUL_DESC_TRANSB) return set(p.b, from, bytes);
  if (what == CUBLASLT_MATMUL_DESC_EPILOGUE) return set(p.epilogue, from, bytes);
  if (what == CUBLASLT_MATMUL_DESC_BIAS_POINTER) return set(p.bias, from, bytes);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t what, void* to, size_t bytes,
                                              size_t* written) {
  const Product& p = as<Product>(product);
  if (what == CUBLASLT_MATMUL_DESC_COMPUTE_TYPE) return get(p.compute, to, bytes, written);
  if (what == CUBLASLT_MATMUL_DESC_SCALE_TYPE) return get(p.scale, to, bytes, written);
  if (what == CUBLASLT_MATMUL_DESC_TRANSA) return get(p.a, to, bytes, written);
  if (what == CUBLASLT_MATMUL_DESC_TRANSB) return get(p.b, to, bytes, written);
  if (what == CUBLASLT_MATMUL_DESC_EPILOGUE) return get(p.epilogue, to, bytes, written);
  if (what == CUBLASLT_MATMUL_DESC_BIAS_POINTER) return get(p.bias, to, bytes, written);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference, size_t size) {
  if (!preference || size != sizeof *preference) return CUBLAS_STATUS_INVALID_VALUE;
  as<Preference>(preference) = {0, {256, 256, 256, 256}, CUBLASLT_REDUCTION_SCHEME_MASK};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t what,
                                                    const void* from, size_t bytes) {
  Preference& p = as<Preference>(preference);
  if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return set(p.workspace, from, bytes);
  if (what == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) return set(p.alignment[0], from, bytes);
  if (what == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES) return set(p.alignment[1], from, bytes);
  if (what == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES) return set(p.alignment[2], from, bytes);
  if (what == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES) return set(p.alignment[3], from, bytes);
  if (what == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) return set(p.reductions, from, bytes);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int* returned) {
  if (const int status = injected_status("cublasLtMatmulAlgoGetHeuristic"))
    return static_cast<cublasStatus_t>(status);
  *returned = 0;
  const Problem p = problem_of(product, a, b, c, d);
  if (!handle || requested < 1 || !p.is_valid()) return CUBLAS_STATUS_INVALID_VALUE;
  if (!p.is_supported()) return CUBLAS_STATUS_NOT_SUPPORTED;
  const Preference& limits = as<Preference>(preference);
  Algorithm algorithm{std::min<uint64_t>(limits.workspace, 8 << 20), p.hash(), {}, 1};
  std::copy_n(limits.alignment, 4, algorithm.alignment);
  if (p.has_bias())  // looks at the pointer, as documented
    while (algorithm.bias_alignment < 256 && is_aligned(p.product.bias, 2 * algorithm.bias_alignment))
      algorithm.bias_alignment *= 2;
  results[0] = {};
  as<Algorithm>(&results[0].algo) = algorithm;
  results[0].workspaceSize = algorithm.workspace;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algo, void* workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
  if (const int status = injected_status("cublasLtMatmul")) return static_cast<cublasStatus_t>(status);
  const Problem p = problem_of(product, a_layout, b_layout, c_layout, d_layout);
  if (!handle || !algo || !p.is_valid()) return CUBLAS_STATUS_INVALID_VALUE;
  const Algorithm& algorithm = as<Algorithm>(algo);
  if (algorithm.problem != p.hash() || algorithm.workspace > workspace_bytes)
    return CUBLAS_STATUS_INVALID_VALUE;
  const void* addresses[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    if (!is_aligned(addresses[i], algorithm.alignment[i])) return CUBLAS_STATUS_INVALID_VALUE;
  if (p.has_bias() && !is_aligned(p.product.bias, algorithm.bias_alignment))
    return CUBLAS_STATUS_INVALID_VALUE;
  const int device = reinterpret_cast<Handle*>(handle)->device;
  if (device != current_device) return CUBLAS_STATUS_INVALID_VALUE;
  const Element scale = element(p.product.scale);
  const Operands operands{
      a, b, c, d, workspace, workspace_bytes, load(scale, alpha, 0), load(scale, beta, 0)};
  const int error = enqueue(stream, [p, operands, device] {
    check_memory(p, operands, device);
    multiply(p, operands);
  });
  return error ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}
