// Joining tensors on blocks of threads: one launch for a batch of inputs.
#pragma once
#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/nest.cuh>

#include "kernels/blocks/words.cuh"
#include "kernels/cat.cuh"

namespace gradus::kernels {

/// Copies rows of words of type W; a block has kChunk words of one input.
template <class W>
struct Cat {
  static constexpr const char* kName = "cat";
  static constexpr int64_t kChunk = 1024;
  static constexpr int kEach = 4;  // words of a thread that are on their way at once
  struct Piece {
    const W* x;
    W* y;
    int64_t group;  // its first block
    uint32_t count, x_row, y_row;
    Divisor row;
  };
  Piece pieces[TensorListArg::kCapacity];
  int n = 0;
  int64_t next_group = 0;

  void push_back(const elementwise::LoopNest<1>& loop, const CopyArgs& copy) {
    const int inner = loop.ndim - 1;  // 1: rows; 0: one row
    const auto length = static_cast<uint32_t>(loop.sizes[inner]);
    const auto rows = inner == 0 ? 1 : static_cast<uint32_t>(loop.sizes[0]);
    pieces[n++] = {copy.x.data<W>(),
                   copy.y.data<W>(),
                   next_group,
                   length * rows,
                   inner == 0 ? 0 : static_cast<uint32_t>(loop.strides[0][1]),
                   inner == 0 ? 0 : static_cast<uint32_t>(loop.strides[0][0]),
                   Divisor(length)};
    next_group += (int64_t{length} * rows + kChunk - 1) / kChunk;
  }

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int) const { return next_group; }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    int at = 0;
    while (at + 1 < n && pieces[at + 1].group <= block.group_index()) ++at;
    const Piece& piece = pieces[at];
    const auto begin = static_cast<uint32_t>((block.group_index() - piece.group) * kChunk);
    const uint32_t end = piece.count - begin < kChunk ? piece.count : begin + static_cast<uint32_t>(kChunk);
    const auto step = static_cast<uint32_t>(block.size());
    for (uint32_t i = begin + static_cast<uint32_t>(block.thread_rank()); i < end; i += kEach * step) {
      W word[kEach];
      uint32_t to[kEach];
      GRADUS_UNROLL
      for (uint32_t j = 0; j < kEach; ++j) {
        const uint32_t k = i + j * step < end ? i + j * step : i;  // past the end the first once more
        const uint32_t row = piece.row.divide(k), column = k - row * piece.row.value();
        to[j] = row * piece.y_row + column;
        word[j] = piece.x[row * piece.x_row + column];
      }
      GRADUS_UNROLL
      for (uint32_t j = 0; j < kEach; ++j)
        if (i + j * step < end) piece.y[to[j]] = word[j];
    }
  }
};

/// Calls run(body) for the inputs that are rows of neighbours, all at once, and copy(CopyArgs) for each of
/// the others.
template <class Run, class Copy>
void run_cat(const CatArgs& args, const Run& run, const Copy& copy) {
  struct Input {
    elementwise::LoopNest<1> loop;
    CopyArgs copy;
  } inputs[TensorListArg::kCapacity];
  int n = 0;
  const size_t size = element_size(args.y.dtype);
  size_t word = sizeof(Word16);
  for_each_input(args, [&](const CopyArgs& part) {
    if (part.x.numel() == 0) return;
    auto loop = elementwise::make_loop<1>(part.y, {&part.x});
    const auto& inner = loop.strides[loop.ndim - 1];
    if (loop.ndim > 2 || inner[0] != 1 || inner[1] != 1 || !fits(loop)) return copy(part);
    inputs[n++] = {loop, part};
    word = std::min(word, widen(loop, size, part.y.address, part.x.address));
  });
  if (n == 0) return;
  visit_word(word, [&]<class W>(W) {
    Cat<W> body;
    for (Input* input = inputs; input < inputs + n; ++input) {
      widen(input->loop, size, input->copy.y.address, input->copy.x.address, nullptr, word);
      body.push_back(input->loop, input->copy);
    }
    run(body);
  });
}

}  // namespace gradus::kernels
