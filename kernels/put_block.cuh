// Writing and adding by index on blocks of threads. Where an index occurs twice, values follow one another in
// the order of their places, as on the host, without atomics: either one thread has all values of an element
// (PutWalk), or values are sorted by where they go (PutKeys and radix_sort_block.cuh) and runs of equal keys
// are written (PutLast) or added (PutRuns and PutJoin).
//
// A nest of values is taken apart: a *record* is what one index says (or, in gather's way, one of each row),
// its *columns* are the elements that it moves. Operands are values, x and index.
#pragma once
#include <kernels/pick_block.cuh>

namespace gradus::kernels {

/// The records and columns of one put, and where each lies.
template <class T>
struct PutOperands {
  const T* values;
  T* x;
  const int64_t* index;
  Nest<3> records, columns;
  CheckedIndex along;

  /// How values and x lie.
  struct Place {
    int64_t value, x;
  };
  GRADUS_HD Place column(uint32_t c) const {
    uint32_t at[1][3];
    columns.locate({c}, at);
    return {at[0][0], at[0][1]};
  }
  /// Of record r. Its index was checked before.
  GRADUS_HD Place record(uint32_t r) const {
    uint32_t at[1][3];
    records.locate({r}, at);
    const int64_t i = index[at[0][2]];
    return {at[0][0], at[0][1] + (i < 0 ? i + along.size : i) * along.stride};
  }
};

/// x = v
struct PutMove {
  template <class T>
  GRADUS_HD static void apply(T& x, const T& v) {
    x = v;
  }
};
/// x = x + v
struct PutAdd {
  template <class T>
  GRADUS_HD static void apply(T& x, const T& v) {
    using C = ComputeType<T>;
    x = static_cast<T>(static_cast<C>(static_cast<C>(x) + static_cast<C>(v)));
  }
};

/// A thread for each column walks all records in order: for few records or many columns. Here columns are all
/// that no two of which can meet, so the index may vary along them.
template <class T, class Op>
struct PutWalk {
  static constexpr const char* kName = "put";
  PutOperands<T> put;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(put.columns.count, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t c = element(block);
    if (c >= put.columns.count) return;
    uint32_t column[1][3], record[1][3];
    put.columns.locate({static_cast<uint32_t>(c)}, column);
    for (uint32_t r = 0; r < put.records.count; ++r) {
      put.records.locate({r}, record);
      const int64_t place = put.along.at(put.index[column[0][2] + record[0][2]]);
      if (place < 0) return;
      Op::apply(put.x[column[0][1] + record[0][1] + place * put.along.stride],
                put.values[column[0][0] + record[0][0]]);
    }
  }
};

/// keys[r] = where record r goes, from 0 up; numbers[r] = r. Checks the indices. The nest has a fourth
/// operand: the number of the row that a record is of.
struct PutKeys {
  static constexpr const char* kName = "put_keys";
  const int64_t* index;
  Nest<4> records;
  CheckedIndex along;
  uint32_t *keys, *numbers;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(records.count, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t r = element(block);
    if (r >= records.count) return;
    uint32_t at[1][4];
    records.locate({static_cast<uint32_t>(r)}, at);
    const int64_t place = along.at(index[at[0][2]]);
    keys[r] = place < 0 ? 0 : static_cast<uint32_t>(at[0][3] * along.size + place);
    numbers[r] = static_cast<uint32_t>(r);
  }
};

/// The last record of each key writes its columns.
template <class T>
struct PutLast {
  static constexpr const char* kName = "put";
  PutOperands<T> put;
  const uint32_t *keys, *numbers;  // sorted

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const {
    return blocks_for(int64_t{put.records.count} * put.columns.count, block_size);
  }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t i = element(block), r = i / put.columns.count;
    if (r >= put.records.count) return;
    if (r + 1 < put.records.count && keys[r] == keys[r + 1]) return;
    const auto column = put.column(static_cast<uint32_t>(i - r * put.columns.count));
    const auto record = put.record(numbers[r]);
    put.x[record.x + column.x] = put.values[record.value + column.value];
  }
};

/// What PutRuns leaves to PutJoin: sorted records are cut into chunks, and a run of equal keys may pass an
/// edge.
template <class T>
struct PutChunks {
  using C = ComputeType<T>;
  PutOperands<T> put;
  const uint32_t *keys, *numbers;  // sorted
  int64_t length;                  // records of a chunk
  C *heads, *tails;  // [chunks, columns]: sums of the run that comes in, and of the one that goes on

  GRADUS_HD int64_t chunks() const { return (put.records.count + length - 1) / length; }
  /// Does a run go on from record r to the next one?
  GRADUS_HD bool goes_on(int64_t r) const {
    return r >= 0 && r + 1 < put.records.count && keys[r] == keys[r + 1];
  }
  GRADUS_HD int64_t end(int64_t chunk) const {
    const int64_t end = (chunk + 1) * length;
    return end < put.records.count ? end : put.records.count;
  }
};

/// A thread for each chunk and column adds the runs of its chunk up: those that begin here to x.
template <class T>
struct PutRuns {
  static constexpr const char* kName = "put_add";
  using C = ComputeType<T>;
  PutChunks<T> all;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const {
    return blocks_for(all.chunks() * all.put.columns.count, block_size);
  }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t i = element(block), chunk = i / all.put.columns.count;
    if (chunk >= all.chunks()) return;
    const auto column = all.put.column(static_cast<uint32_t>(i - chunk * all.put.columns.count));
    const int64_t begin = chunk * all.length, end = all.end(chunk);
    bool inside = all.goes_on(begin - 1), fresh = !inside;  // of a run that came in; at the start of a run
    C sum = 0;
    for (int64_t r = begin; r < end; ++r) {
      const auto record = all.put.record(all.numbers[r]);
      T& x = all.put.x[record.x + column.x];
      if (fresh) sum = static_cast<C>(x);
      sum = static_cast<C>(sum + static_cast<C>(all.put.values[record.value + column.value]));
      fresh = !all.goes_on(r);
      if (inside && (fresh || r + 1 == end)) {
        all.heads[i] = sum;
      } else if (fresh) {
        x = static_cast<T>(sum);
      } else if (r + 1 == end) {
        all.tails[i] = sum;
      }
      inside = inside && !fresh;
    }
  }
};

/// A thread for each chunk and column: the run that begins in the chunk and goes on, put together.
template <class T>
struct PutJoin {
  static constexpr const char* kName = "put_add";
  using C = ComputeType<T>;
  PutChunks<T> all;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const {
    return blocks_for(all.chunks() * all.put.columns.count, block_size);
  }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t columns = all.put.columns.count, i = element(block), chunk = i / columns;
    if (chunk >= all.chunks()) return;
    const int64_t last = all.end(chunk) - 1;
    if (!all.goes_on(last)) return;
    const int64_t before = chunk * all.length - 1;
    if (before >= 0 && all.keys[before] == all.keys[last]) return;  // it began earlier
    C sum = all.tails[i];
    int64_t next = chunk;
    do {
      ++next;
      sum = static_cast<C>(sum + all.heads[i + (next - chunk) * columns]);
    } while (all.keys[all.end(next) - 1] == all.keys[last] && all.goes_on(all.end(next) - 1));
    const auto column = all.put.column(static_cast<uint32_t>(i - chunk * columns));
    all.put.x[all.put.record(all.numbers[last]).x + column.x] = static_cast<T>(sum);
  }
};

}  // namespace gradus::kernels
