// How a kernel says that its data are wrong: an index out of range, a label that is no class. On a GPU the
// kernel leaves a record in memory that the host can read, and stops, which ends all work of the process on
// that device; the host then says which operation, index and bound (backends/cuda/errors.cpp).
//
// A body checks before it reads or writes. report() does not return.
#pragma once
#include <gradus/base/macros.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace gradus::kernels {

/// What is written where the host reads it: the first fault wins.
struct DeviceFault {
  static constexpr int kValues = 4;
  int taken = 0;    // 1 as soon as a thread has claimed the record
  int written = 0;  // 1 when all of it is there
  const char* op = nullptr;
  std::string (*describe)(const char* op, const int64_t* values) = nullptr;
  int64_t values[kValues] = {};
};

/// What ends a kernel that runs on the CPU.
struct DeviceTrap {};

/// A body's way to report. `describe` is a host function, which makes the text; a GPU only carries it.
struct FaultSite {
  DeviceFault* record;
  const char* op;
  std::string (*describe)(const char* op, const int64_t* values);

  GRADUS_HD void report(int64_t a, int64_t b = 0, int64_t c = 0, int64_t d = 0) const {
    if (claim()) {
      record->op = op, record->describe = describe;
      record->values[0] = a, record->values[1] = b, record->values[2] = c, record->values[3] = d;
#ifdef __CUDA_ARCH__
      __threadfence_system();
      atomicExch_system(&record->written, 1);
      __threadfence_system();
#else
      std::atomic_ref(record->written).store(1);
#endif
    }
#ifdef __CUDA_ARCH__
    wait_for_record();
    __trap();
#else
    throw DeviceTrap();
#endif
  }

 private:
#ifdef __CUDA_ARCH__
  // A trap ends the whole grid, also a thread that is about to write the record: those that come second wait
  // for it, but not for ever.
  __device__ void wait_for_record() const {
    const volatile int* const written = &record->written;
    for (int microseconds = 0; *written == 0 && microseconds < 100'000; ++microseconds) __nanosleep(1000);
  }
#endif
  GRADUS_HD bool claim() const {
#ifdef __CUDA_ARCH__
    return atomicCAS_system(&record->taken, 0, 1) == 0;
#else
    return std::atomic_ref(record->taken).exchange(1) == 0;
#endif
  }
};

}  // namespace gradus::kernels
