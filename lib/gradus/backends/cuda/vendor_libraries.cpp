#include <gradus/backends/cuda/errors.h>
#include <gradus/backends/cuda/vendor_libraries.h>
#include <gradus/base/error.h>
#include <gradus/runtime/diagnosis.h>
#include <gradus/runtime/shared_library.h>

namespace gradus::cuda {
namespace {

void require(const std::optional<Finding>& finding) {
  if (finding) GRADUS_FAIL(finding->code.c_str(), finding->cause, hint(finding->remedy));
}

// The one table's functions, in a library that is there.
class Loader {
 public:
  Loader(const LibraryFacts& found, const char* version_code)
      : found_(found), code_(version_code), library_({found.path}) {}

  template <class F>
  void operator()(F*& pointer, const char* name) const {
    pointer = library_.function<F>(name);
    GRADUS_CHECK(pointer, code_, found_.name, " ", found_.version, " at ", found_.path, " has no function ",
                 name, hint("install a newer ", found_.name, " (./gradus setup --cuda does)"));
  }

 private:
  const LibraryFacts& found_;
  const char* code_;
  runtime::SharedLibrary library_;
};

// The libraries' own errors for "the GPU did not do it", which often is the fault of something queued
// earlier.
void check_earlier_work(Device device) { GRADUS_CUDA(device, cudaGetLastError()); }

}  // namespace

#define GRADUS_LOAD(name) load(functions.name, #name);

CublasLt load_cublaslt(const LibraryFacts& found) {
  require(diagnose_cublas(found, CublasLt::kMajor));
  CublasLt functions;
  const Loader load(found, "E-CUBLAS-VERSION");
  GRADUS_CUBLASLT_FUNCTIONS(GRADUS_LOAD)
  return functions;
}

Cudnn load_cudnn(const LibraryFacts& found) {
  require(diagnose_cudnn(found, Cudnn::kMajor));
  Cudnn functions;
  const Loader load(found, "E-CUDNN-VERSION");
  GRADUS_CUDNN_FUNCTIONS(GRADUS_LOAD)
  return functions;
}

#ifdef GRADUS_CUDA_ON_HOST  // the libraries of tests/cuda_on_host/, which are linked
#define GRADUS_LINKED(name) functions.name = &::name;

const CublasLt& cublaslt() {
  static const CublasLt library = [] {
    CublasLt functions;
    GRADUS_CUBLASLT_FUNCTIONS(GRADUS_LINKED)
    return functions;
  }();
  return library;
}
const Cudnn& cudnn() {
  static const Cudnn library = [] {
    Cudnn functions;
    GRADUS_CUDNN_FUNCTIONS(GRADUS_LINKED)
    return functions;
  }();
  return library;
}
#else
const CublasLt& cublaslt() {
  static const CublasLt library = load_cublaslt(find_cublas(CublasLt::kMajor));
  return library;
}
const Cudnn& cudnn() {
  static const Cudnn library = load_cudnn(find_cudnn(Cudnn::kMajor));
  return library;
}
#endif

void check(const CublasLt& library, cublasStatus_t status, const char* call, Device device) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  check_earlier_work(device);
  GRADUS_FAIL("E-CUBLAS", call, ": ", library.cublasLtGetStatusName(status), " on ", device, ": ",
              library.cublasLtGetStatusString(status), hint("CUBLASLT_LOG_LEVEL=5 makes cuBLASLt say more"));
}

void check(const Cudnn& library, cudnnStatus_t status, const char* call, Device device) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  check_earlier_work(device);
  char words[512] = {};
  library.cudnnGetLastErrorString(words, sizeof words - 1);
  GRADUS_FAIL("E-CUDNN", call, ": ", library.cudnnGetErrorString(status), " on ", device,
              words[0] ? ": " : "", words,
              hint("CUDNN_LOGLEVEL_DBG=2 CUDNN_LOGDEST_DBG=stderr make cuDNN say more"));
}

}  // namespace gradus::cuda
