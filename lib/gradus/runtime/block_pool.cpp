#include <gradus/runtime/block_pool.h>

#include <algorithm>

namespace gradus::runtime {
namespace {

constexpr uint64_t bit(int i) { return uint64_t{1} << i; }
constexpr uint64_t bits_above(int i) { return ~uint64_t{1} << i; }

}  // namespace

void BlockPool::insert(Block* block) {
  const Bin bin = bin_of(block->size);
  Block** first = &first_[bin.row][bin.column];
  Block *smaller = nullptr, *larger = *first;
  while (larger && larger->size < block->size) {
    smaller = larger;
    larger = larger->larger;
  }
  block->smaller = smaller;
  block->larger = larger;
  (smaller ? smaller->larger : *first) = block;
  if (larger) larger->smaller = block;
  columns_[bin.row] |= bit(bin.column);
  rows_ |= bit(bin.row);
  block->is_free = true;
}

void BlockPool::remove(Block* block) {
  const Bin bin = bin_of(block->size);
  Block** first = &first_[bin.row][bin.column];
  (block->smaller ? block->smaller->larger : *first) = block->larger;
  if (block->larger) block->larger->smaller = block->smaller;
  if (!*first) columns_[bin.row] &= ~bit(bin.column);
  if (!columns_[bin.row]) rows_ &= ~bit(bin.row);
  block->is_free = false;
}

Block* BlockPool::best_fit(size_t size) const {
  const Bin bin = bin_of(size);
  for (Block* b = first_[bin.row][bin.column]; b; b = b->larger)
    if (b->size >= size) return b;
  if (const uint64_t columns = columns_[bin.row] & bits_above(bin.column))
    return first_[bin.row][std::countr_zero(columns)];
  const uint64_t rows = rows_ & bits_above(bin.row);
  if (!rows) return nullptr;
  const int row = std::countr_zero(rows);
  return first_[row][std::countr_zero(columns_[row])];
}

size_t BlockPool::largest() const {
  if (!rows_) return 0;
  const int row = std::bit_width(rows_) - 1, column = std::bit_width(columns_[row]) - 1;
  const Block* block = first_[row][column];
  while (block->larger) block = block->larger;
  return block->size;
}

std::vector<Block*> BlockPool::whole_segments() const {
  std::vector<Block*> found;
  for (const auto& row : first_)
    for (Block* first : row)
      for (Block* b = first; b; b = b->larger)
        if (b->is_whole_segment()) found.push_back(b);
  return found;
}

Block* BlockRecords::make() {
  if (!spare_) {
    chunks_.push_back(std::make_unique<Block[]>(kChunk));
    for (size_t i = 0; i < kChunk; ++i) recycle(&chunks_.back()[i]);
  }
  Block* block = spare_;
  spare_ = block->larger;
  block->before = block->after = block->smaller = block->larger = nullptr;
  return block;
}

void BlockRecords::recycle(Block* block) {
  block->larger = spare_;
  spare_ = block;
}

}  // namespace gradus::runtime
