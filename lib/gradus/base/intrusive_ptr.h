// Shared ownership with the count inside the object: one word a handle, and no second allocation.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace gradus {

/// Base of objects held by Intrusive<T>. Starts at 0 references.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  int32_t use_count() const { return refs_.load(std::memory_order_acquire); }

 protected:
  ~RefCounted() = default;

 private:
  template <class T>
  friend class Intrusive;
  mutable std::atomic<int32_t> refs_{0};
};

/// Shared owner of a T derived from RefCounted. The last one calls release(T*) if it is found beside T, else
/// delete.
template <class T>
class Intrusive {
 public:
  Intrusive() = default;
  Intrusive(std::nullptr_t) {}
  explicit Intrusive(T* object) : p_(object) { retain(); }
  Intrusive(const Intrusive& other) : p_(other.p_) { retain(); }
  Intrusive(Intrusive&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
  Intrusive& operator=(Intrusive other) noexcept {
    std::swap(p_, other.p_);
    return *this;
  }
  ~Intrusive() { drop(); }

  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  friend bool operator==(const Intrusive& a, const Intrusive& b) { return a.p_ == b.p_; }
  void reset() { drop(), p_ = nullptr; }

 private:
  void retain() const {
    if (p_) p_->refs_.fetch_add(1, std::memory_order_relaxed);
  }
  void drop() {
    if (p_ && p_->refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      if constexpr (requires { release(p_); }) {
        release(p_);
      } else {
        delete p_;
      }
    }
  }
  T* p_ = nullptr;
};

}  // namespace gradus
