// The caching allocator's bookkeeping: pieces of memory, and a pool of free ones that finds the best fit in
// a few instructions. Knows sizes and links only, nothing of devices.
#pragma once
#include <gradus/runtime/stream.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace gradus::runtime {

class BlockPool;
class DeviceCache;

/// All block sizes are multiples of this.
inline constexpr size_t kBlockUnit = 512;

/// One piece of a segment (a raw allocation). A segment's blocks cover it without gaps.
struct Block {
  std::byte* data = nullptr;
  size_t size = 0;
  size_t used = 0;          // what the live request was rounded to; 0: not live
  Block* before = nullptr;  // neighbours in the segment, by address
  Block* after = nullptr;
  Block* smaller = nullptr;  // neighbours in the list of a pool's bin
  Block* larger = nullptr;
  BlockPool* pool = nullptr;  // where it goes when freed
  DeviceCache* cache = nullptr;
  bool is_free = false;       // in its pool
  int pending_events = 0;     // freed, but other streams may still use it
  std::vector<Stream> users;  // streams given to record_stream()

  bool is_whole_segment() const { return !before && !after; }
};

/// Free blocks in bins by size, each bin a list in order of size.
///
/// A bin is a row (the power of two) and one of 64 columns (the next six bits of the size); one bit mask says
/// which rows have blocks, and one per row which columns. Below 32 KiB a bin holds one size only.
class BlockPool {
 public:
  explicit BlockPool(int64_t stream) : stream(stream) {}

  const int64_t stream;  // whose memory this is

  void insert(Block* block);
  void remove(Block* block);
  /// The smallest block of at least `size` bytes, the last one freed among equals (its memory is the
  /// likeliest to be in the processor's cache); nullptr if there is none.
  Block* best_fit(size_t size) const;
  /// Size of the largest block; 0 if the pool is empty.
  size_t largest() const;
  /// The free blocks that are segments of their own.
  std::vector<Block*> whole_segments() const;

 private:
  static constexpr int kColumns = 64;
  static constexpr int kRows = 51;  // sizes up to 2^64

  struct Bin {
    int row, column;
  };
  static Bin bin_of(size_t size) {
    const uint64_t units = size / kBlockUnit;
    if (units < kColumns) return {0, static_cast<int>(units)};
    const int row = std::bit_width(units) - std::bit_width(uint64_t{kColumns - 1});
    return {row, static_cast<int>(units >> (row - 1)) & (kColumns - 1)};
  }

  uint64_t rows_ = 0;
  uint64_t columns_[kRows] = {};
  Block* first_[kRows][kColumns] = {};
};

/// Block records, used again instead of freed.
class BlockRecords {
 public:
  Block* make();
  void recycle(Block* block);

 private:
  static constexpr size_t kChunk = 256;
  std::vector<std::unique_ptr<Block[]>> chunks_;
  Block* spare_ = nullptr;  // linked by `larger`
};

}  // namespace gradus::runtime
