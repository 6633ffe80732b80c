// A vector whose first N elements live in the object: an op's inputs and a node's edges are almost always
// few.
#pragma once
#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace gradus {

template <class T, int N>
class SmallVector {
 public:
  SmallVector() = default;
  SmallVector(std::initializer_list<T> values) {
    reserve(values.size());
    for (const T& v : values) push_back(v);
  }
  explicit SmallVector(std::span<const T> values) {
    reserve(values.size());
    for (const T& v : values) push_back(v);
  }
  explicit SmallVector(size_t n) {
    reserve(n);
    for (size_t i = 0; i < n; ++i) emplace_back();
  }
  SmallVector(const SmallVector& other) : SmallVector(std::span<const T>(other.begin(), other.size())) {}
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) *this = SmallVector(other);
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) destroy(), take(other);
    return *this;
  }
  ~SmallVector() { destroy(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  operator std::span<const T>() const { return {data_, size_}; }

  void push_back(T value) { emplace_back(std::move(value)); }
  template <class... A>
  T& emplace_back(A&&... a) {
    if (size_ == capacity_) reserve(2 * size_);
    return *std::construct_at(data_ + size_++, std::forward<A>(a)...);
  }
  void clear() {
    std::destroy_n(data_, size_);
    size_ = 0;
  }
  void reserve(size_t n) {
    if (n <= capacity_) return;
    T* bigger = std::allocator<T>().allocate(n);
    std::uninitialized_move_n(data_, size_, bigger);
    const size_t count = size_;
    destroy();
    data_ = bigger, size_ = count, capacity_ = n;
  }

 private:
  T* inline_data() { return std::launder(reinterpret_cast<T*>(storage_)); }
  bool is_inline() const { return data_ == reinterpret_cast<const T*>(storage_); }
  void destroy() {
    std::destroy_n(data_, size_);
    if (!is_inline()) std::allocator<T>().deallocate(data_, capacity_);
    data_ = reinterpret_cast<T*>(storage_), size_ = 0, capacity_ = N;
  }
  void take(SmallVector& other) {
    if (other.is_inline()) {
      std::uninitialized_move_n(other.data_, other.size_, inline_data());
      size_ = other.size_;
      other.clear();
    } else {
      data_ = std::exchange(other.data_, reinterpret_cast<T*>(other.storage_));
      size_ = std::exchange(other.size_, 0);
      capacity_ = std::exchange(other.capacity_, N);
    }
  }

  T* data_ = reinterpret_cast<T*>(storage_);
  size_t size_ = 0, capacity_ = N;
  alignas(T) std::byte storage_[sizeof(T) * N];
};

}  // namespace gradus
