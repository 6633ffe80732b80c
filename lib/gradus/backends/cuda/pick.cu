// Reading and writing by index (kernels/pick.cuh) on a GPU.
#include <bit>
#include <gradus/backends/cuda/kernel.cuh>

#include "kernels/blocks/words.cuh"
#include "kernels/pick.cuh"
#include "kernels/put_block.cuh"
#include "kernels/radix_sort_block.cuh"

namespace gradus {
namespace cuda {
namespace {

kernels::CheckedIndex checked(const IndexedDim& along, const Stream& stream) {
  return {along.size, along.stride, along.dim, along.negative,
          fault_site(stream.device, along.op, &kernels::pick::describe)};
}

using Loop = elementwise::LoopNest<3>;  // operands: values, x, index, number of the row

int64_t count(const Loop& loop) {
  int64_t product = 1;
  for (int d = 0; d < loop.ndim; ++d) product *= loop.sizes[d];
  return product;
}

// The dimensions of `whole` whose strides (of values, x and index) `belongs` takes.
template <class F>
Loop dims_of(const elementwise::LoopNest<2>& whole, const F& belongs) {
  Loop part;
  for (int d = 0; d < whole.ndim; ++d) {
    if (!belongs(whole.strides[d])) continue;
    part.sizes[part.ndim] = whole.sizes[d];
    for (int o = 0; o < 3; ++o) part.strides[part.ndim][o] = whole.strides[d][o];
    part.strides[part.ndim++][3] = 0;
  }
  if (part.ndim == 0) {
    part.ndim = 1, part.sizes[0] = 1;
    for (int o = 0; o < 4; ++o) part.strides[0][o] = 0;
  }
  return part;
}

// A put taken apart (put_block.cuh). Two values can meet only where x without the index does not differ;
// `meeting` are those dimensions and `apart` all others.
struct PutPlan {
  Loop records, columns, meeting, apart;
  int64_t rows, keys;

  explicit PutPlan(const PutArgs& args) {
    const TensorArg base = kernels::pick::walked(args.x, args.values, args.along);
    const auto whole = elementwise::make_loop<2>(args.values, {&base, &args.index});
    meeting = dims_of(whole, [](const int64_t* strides) { return strides[1] == 0; });
    apart = dims_of(whole, [](const int64_t* strides) { return strides[1] != 0; });
    columns = dims_of(whole, [](const int64_t* strides) { return strides[1] != 0 && strides[2] == 0; });
    records = dims_of(whole, [](const int64_t* strides) { return strides[1] == 0 || strides[2] != 0; });
    rows = 1;
    for (int d = records.ndim - 1; d >= 0; --d) {
      if (records.strides[d][1] == 0) continue;
      records.strides[d][3] = rows;
      rows *= records.sizes[d];
    }
    keys = std::max<int64_t>(1, rows * args.along.size);
  }
  // Sorting costs some twenty launches. It pays where a thread would have many records to walk, and threads
  // are too few to make up for it.
  bool sorts() const {
    constexpr int64_t kFewRecords = 64, kManyRows = 2048;
    return count(meeting) > kFewRecords && rows < kManyRows && keys < int64_t{1} << 32 &&
           kernels::fits(records) && kernels::fits(columns);
  }
};

template <class T>
kernels::PutOperands<T> operands(const PutArgs& args, const Loop& records, const Loop& columns,
                                 const Stream& stream) {
  return {args.values.data<T>(),     args.x.data<T>(),          args.index.data<int64_t>(),
          kernels::Nest<3>(records), kernels::Nest<3>(columns), checked(args.along, stream)};
}

template <class T, class Op>
void put_walk(const PutArgs& args, const PutPlan& plan, const Stream& stream) {
  using kernels::for_each_part, kernels::kMaxOffset;
  for_each_part(plan.apart, kMaxOffset, [&](const Loop& columns, const int64_t* c) {
    for_each_part(plan.meeting, kMaxOffset, [&](const Loop& records, const int64_t* r) {
      auto put = operands<T>(args, records, columns, stream);
      put.values += c[0] + r[0], put.x += c[1] + r[1], put.index += c[2] + r[2];
      run(kernels::PutWalk<T, Op>{put}, stream);
    });
  });
}

// Device memory handed out piece by piece.
class Pieces {
 public:
  template <class T>
  static size_t bytes(int64_t n) {
    return kernels::shared_size<T>(n);
  }
  Pieces(size_t bytes, const Stream& stream) : memory_(bytes, stream), next_(memory_.data<char>()) {}
  template <class T>
  T* take(int64_t n) {
    auto* piece = reinterpret_cast<T*>(next_);
    next_ += bytes<T>(n);
    return piece;
  }

 private:
  Workspace memory_;
  char* next_;
};

struct Sorted {
  const uint32_t *keys, *numbers;
  static size_t bytes(int64_t records) {
    return 4 * Pieces::bytes<uint32_t>(records) + Pieces::bytes<uint32_t>(counts(records));
  }
  static int64_t counts(int64_t records) { return kernels::radix::kDigits * kernels::radix::tiles(records); }
};

// The plan's records by where they go.
Sorted sort_records(const PutArgs& args, const PutPlan& plan, Pieces& memory, const Stream& stream) {
  const int64_t n = count(plan.records), counters = Sorted::counts(n);
  uint32_t *keys = memory.take<uint32_t>(n), *numbers = memory.take<uint32_t>(n);
  uint32_t *next_keys = memory.take<uint32_t>(n), *next_numbers = memory.take<uint32_t>(n);
  uint32_t* counts = memory.take<uint32_t>(counters);
  run(kernels::PutKeys{args.index.data<int64_t>(), kernels::Nest<4>(plan.records),
                       checked(args.along, stream), keys, numbers},
      stream);
  const int bits = std::bit_width(static_cast<uint64_t>(plan.keys) - 1);
  for (int shift = 0; shift < bits; shift += kernels::radix::kBits) {
    const kernels::radix::Digit digit{n, shift};
    run(kernels::SortCount{digit, keys, counts}, stream);
    run(kernels::SortStarts{counts, counters}, stream, kernels::kMaxBlockSize);
    run(kernels::SortMove{digit, keys, numbers, counts, next_keys, next_numbers}, stream);
    std::swap(keys, next_keys), std::swap(numbers, next_numbers);
  }
  return {keys, numbers};
}

template <class W>
void put_move(const PutArgs& args, const Stream& stream) {
  const PutPlan plan(args);
  if (!plan.sorts()) return put_walk<W, kernels::PutMove>(args, plan, stream);
  Pieces memory(Sorted::bytes(count(plan.records)), stream);
  const auto [keys, numbers] = sort_records(args, plan, memory, stream);
  run(kernels::PutLast<W>{operands<W>(args, plan.records, plan.columns, stream), keys, numbers}, stream);
}

template <class T>
void put_add(const PutArgs& args, const Stream& stream) {
  using C = ComputeType<T>;
  const PutPlan plan(args);
  if (!plan.sorts()) return put_walk<T, kernels::PutAdd>(args, plan, stream);
  // A run as long as all is added up in as many steps within chunks as across them.
  const int64_t n = count(plan.records);
  int64_t length = 32;
  while (length * length < n) length *= 2;
  const int64_t sums = (n + length - 1) / length * count(plan.columns);
  Pieces memory(Sorted::bytes(n) + 2 * Pieces::bytes<C>(sums), stream);
  const auto [keys, numbers] = sort_records(args, plan, memory, stream);
  const kernels::PutChunks<T> chunks{operands<T>(args, plan.records, plan.columns, stream),
                                     keys,
                                     numbers,
                                     length,
                                     memory.take<C>(sums),
                                     memory.take<C>(sums)};
  run(kernels::PutRuns<T>{chunks}, stream);
  run(kernels::PutJoin<T>{chunks}, stream);
}

}  // namespace

template <>
struct Launcher<kernels::PutAddKernel> {
  template <class T>
  static void run(const PutArgs& args, const Stream& stream) {
    if (args.values.numel() > 0) put_add<T>(args, stream);
  }
};

}  // namespace cuda

namespace kernels {

void pick_cuda(const PickArgs& args, const Stream& stream) {
  if (args.y.numel() == 0) return;
  const TensorArg base = pick::walked(args.x, args.y, args.along);
  auto whole = elementwise::make_loop<2>(args.y, {&base, &args.index});
  CheckedIndex along = cuda::checked(args.along, stream);
  const size_t word = widen(whole, element_size(args.y.dtype), args.y.address, args.x.address, &along.stride);
  visit_word(word, [&]<class W>(W) {
    for_each_part(whole, kMaxOffset, [&](const auto& loop, const int64_t* start) {
      cuda::run(Pick<W>{args.y.data<W>() + start[0], args.x.data<W>() + start[1],
                        args.index.data<int64_t>() + start[2], Nest<3>(loop), along},
                stream);
    });
  });
}

void put_cuda(const PutArgs& args, const Stream& stream) {
  if (args.values.numel() == 0) return;
  copy::visit_size(element_size(args.x.dtype), [&]<class W>(W) { cuda::put_move<W>(args, stream); });
}

void linear_index_cuda(const LinearIndexArgs& args, const Stream& stream) {
  if (args.y.numel() == 0) return;
  const TensorArg& before = args.before.present() ? args.before : args.index;
  const int64_t scale = args.before.present() ? args.along.size : 0;
  for_each_part(elementwise::make_loop<2>(args.y, {&before, &args.index}), kMaxOffset,
                [&](const auto& loop, const int64_t* start) {
                  cuda::run(LinearIndex{args.y.data<int64_t>() + start[0], before.data<int64_t>() + start[1],
                                        args.index.data<int64_t>() + start[2], Nest<3>(loop),
                                        cuda::checked(args.along, stream), scale},
                            stream);
                });
}

}  // namespace kernels

GRADUS_CUDA_KERNEL(PutArgs, kNumericTypes, kernels::PutAddKernel);

}  // namespace gradus
