// Device memory that is reused instead of returned, in the manner of PyTorch's CUDACachingAllocator. With
// GRADUS_NO_MEMORY_CACHING=1 in the environment nothing is kept (PyTorch: PYTORCH_NO_CUDA_MEMORY_CACHING),
// which is slow, and lets compute-sanitizer see each tensor's end.
#pragma once
#include <gradus/runtime/device.h>
#include <gradus/runtime/stream.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace gradus::runtime {

struct Block;  // one piece of a segment; opaque to users

/// A live allocation: hand it back with free_memory().
struct Allocation {
  void* data = nullptr;  ///< aligned to 512 bytes; nullptr for 0 bytes
  Block* block = nullptr;
};

/// At least `bytes` on `stream`'s device, reusable on that stream at once after free_memory().
/// Throws E-OUT-OF-MEMORY after emptying the cache and trying again.
Allocation allocate_memory(size_t bytes, const Stream& stream);
void free_memory(const Allocation& allocation) noexcept;
/// True for host memory that came from allocate_pinned() (pinned.h).
bool is_pinned(const Allocation& allocation);
/// Keeps a freed block from being reused before `stream` has passed the point it is at when the block is
/// freed. Throws E-DEVICE-MISMATCH for a stream of another device (pinned memory: of another type).
void record_stream(const Allocation& allocation, const Stream& stream);

}  // namespace gradus::runtime

namespace gradus {

/// Figures of one device's cache, in bytes; the maxima count since the last reset.
struct MemoryStats {
  int64_t allocated = 0, max_allocated = 0;  ///< held by live tensors (rounded to 512 B)
  int64_t reserved = 0, max_reserved = 0;    ///< taken from the device
  int64_t largest_free_block = 0;
  int64_t segments = 0;                      ///< raw allocations held
  int64_t allocation_count = 0;              ///< live blocks
  int64_t cache_hits = 0, cache_misses = 0;  ///< requests served without and with a raw allocation
  int64_t retries = 0;                       ///< times the cache was emptied because the device was full
  int64_t ooms = 0;                          ///< errors thrown
};

MemoryStats memory_stats(Device device = {});
int64_t memory_allocated(Device device = {});
int64_t memory_reserved(Device device = {});
int64_t max_memory_allocated(Device device = {});
int64_t max_memory_reserved(Device device = {});
void reset_peak_memory_stats(Device device = {});
/// Gives wholly unused segments back to the device; live tensors stay.
void empty_cache(Device device = {});
/// The figures of memory_stats() as a line of text.
std::string memory_summary(Device device = {});

}  // namespace gradus
