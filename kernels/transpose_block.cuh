// Matrix transpose through a tile of shared memory, so that both the reads and the writes run along rows.
#pragma once
#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/nest.cuh>

namespace gradus::kernels {

/// A copy in which x is contiguous along one dimension and y along another: NCHW to NHWC and back,
/// .t().contiguous(). A block for each tile of the two; other dimensions only say where the matrices begin.
/// W: an integer of the elements' size.
template <class W>
class Transpose {
 public:
  static constexpr const char* kName = "transpose";

  /// Does a tile have enough rows and columns? Beside a dimension of three (channels) nearly all of it is
  /// empty.
  static bool pays(const elementwise::LoopNest<1>& loop, int x_dim) {
    return loop.sizes[loop.ndim - 1] >= kTile / 2 && loop.sizes[x_dim] >= kTile / 2;
  }

  /// The copy `loop`, which fits(), whose innermost dimension is y's contiguous one, and x_dim is x's.
  Transpose(elementwise::LoopNest<1> loop, int x_dim, W* y, const W* x) : x_(x), y_(y) {
    const int y_dim = loop.ndim - 1;
    rows_ = static_cast<uint32_t>(loop.sizes[y_dim]), cols_ = static_cast<uint32_t>(loop.sizes[x_dim]);
    x_stride_ = static_cast<uint32_t>(loop.strides[y_dim][1]);
    y_stride_ = static_cast<uint32_t>(loop.strides[x_dim][0]);
    down_ = Divisor(blocks(rows_)), across_ = Divisor(blocks(cols_));
    loop.sizes[y_dim] = loop.sizes[x_dim] = 1;
    matrices_ = Nest<2>(loop);
  }

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int) const { return int64_t{matrices_.count} * down_.value() * across_.value(); }
  size_t shared_bytes(int) const { return shared_size<W>(kTile * kPitch); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    W* tile = block.template shared<W>(kTile * kPitch);
    const auto group = static_cast<uint32_t>(block.group_index());
    const uint32_t strip = across_.divide(group), col = (group - strip * across_.value()) * kTile;
    uint32_t matrix[1] = {down_.divide(strip)}, at[1][2];
    const uint32_t row = (strip - matrix[0] * down_.value()) * kTile;
    matrices_.locate(matrix, at);
    const W* x = x_ + (at[0][1] + row * x_stride_ + col);
    W* y = y_ + (at[0][0] + col * y_stride_ + row);
    for_each_cell(
        block, rows_ - row, cols_ - col, [&](uint32_t i, uint32_t j) { return x[i * x_stride_ + j]; },
        [&](uint32_t i, uint32_t j, W v) { tile[i * kPitch + j] = v; });
    block.sync();
    for_each_cell(
        block, cols_ - col, rows_ - row, [&](uint32_t j, uint32_t i) { return tile[i * kPitch + j]; },
        [&](uint32_t j, uint32_t i, W v) { y[j * y_stride_ + i] = v; });
  }

 private:
  // A row of 32 elements or 64: at least 64 bytes. Rows of the tile are a 4-byte word longer, so that a
  // column spans all banks of the shared memory.
  static constexpr uint32_t kTile = sizeof(W) < 4 ? 64 : 32,
                            kPitch = kTile + (sizeof(W) < 4 ? 4 / sizeof(W) : 1);
  static constexpr uint32_t kCells = kTile * kTile, kAtOnce = sizeof(W) < 4 ? 8 : 4;

  static uint32_t blocks(uint32_t n) { return (n + kTile - 1) / kTile; }

  // write(i, j, read(i, j)) for i < rows, j < cols within a tile; neighbouring threads have neighbouring j.
  // kAtOnce reads of a thread are under way before it writes.
  template <Block B, class Read, class Write>
  static GRADUS_HD void for_each_cell(const B& block, uint32_t rows, uint32_t cols, const Read& read,
                                      const Write& write) {
    const auto size = static_cast<uint32_t>(block.size());
    for (auto first = static_cast<uint32_t>(block.thread_rank()); first < kCells; first += kAtOnce * size) {
      W held[kAtOnce];
      GRADUS_UNROLL
      for (uint32_t u = 0; u < kAtOnce; ++u) {
        const uint32_t cell = first + u * size, i = cell / kTile, j = cell % kTile;
        held[u] = cell < kCells && i < rows && j < cols ? read(i, j) : W{};
      }
      GRADUS_UNROLL
      for (uint32_t u = 0; u < kAtOnce; ++u) {
        const uint32_t cell = first + u * size, i = cell / kTile, j = cell % kTile;
        if (cell < kCells && i < rows && j < cols) write(i, j, held[u]);
      }
    }
  }

  const W* x_;
  W* y_;
  uint32_t rows_, cols_;          // of a matrix: x's rows are along y's innermost dimension
  uint32_t x_stride_, y_stride_;  // from row to row in x, from column to column in y
  Divisor down_, across_;         // tiles
  Nest<2> matrices_;
};

}  // namespace gradus::kernels
