// What a launch needs of the backend: CUDA's handle of a stream, and a reader of its errors.
#pragma once
#include <gradus/runtime/stream.h>

#include <cstddef>
#include <string>

#include "kernels/blocks/device_fault.cuh"

namespace gradus::cuda {

/// The cudaStream_t of a stream, whose device becomes CUDA's current one on this thread. Throws E-STREAM for
/// a stream that there is not.
void* handle_of(const Stream& stream);

/// Throws if `error`, a cudaError_t, is one; `name` is of the kernel that was launched.
void check_launch(int error, const char* name, Device device);

/// Where kernels on `device` report faults.
kernels::FaultSite fault_site(Device device, const char* op,
                              std::string (*describe)(const char* op, const int64_t* values));

/// Device memory for the work that is queued on `stream` next: handed back as this goes out of scope, which
/// is right in stream order.
class Workspace {
 public:
  Workspace(size_t bytes, const Stream& stream);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  template <class T = void>
  T* data() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_;
  void* block_;
};

}  // namespace gradus::cuda
