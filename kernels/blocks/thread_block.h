// ThreadBlock runs a kernel body with a std::thread for each CUDA thread, so that tests on a machine without
// a GPU, and ThreadSanitizer, see what a GPU would do: interleaving, races, threads that do not meet at a
// sync.
#pragma once
#include <kernels/blocks/barrier.h>

#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <kernels/blocks/launch.cuh>
#include <memory>
#include <thread>
#include <vector>

namespace gradus::kernels {

namespace detail {

struct Warp {
  explicit Warp(int lanes) : barrier(lanes), slot(static_cast<size_t>(lanes)) {}
  struct alignas(16) Slot {
    std::byte bytes[32];
  };
  Barrier barrier;
  std::vector<Slot> slot;
};

// The threads of one block and what they share.
struct Team {
  Team(int threads, size_t shared_bytes)
      : size(threads),
        barrier(threads),
        shared(fresh_shared_memory(shared_bytes)),
        shared_bytes(shared_bytes),
        syncs(static_cast<size_t>(threads)),
        shuffles(static_cast<size_t>(threads)) {
    for (int first = 0; first < threads; first += kWarpSize)
      warps.push_back(std::make_unique<Warp>(std::min(kWarpSize, threads - first)));
  }
  Warp& warp_of(int rank) { return *warps[static_cast<size_t>(rank / kWarpSize)]; }

  int size;
  Barrier barrier;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<std::byte> shared;
  size_t shared_bytes;
  std::vector<long> syncs, shuffles;  // how often each thread has called
};

}  // namespace detail

/// One thread's view of its block.
class ThreadBlock {
 public:
  ThreadBlock(detail::Team& team, int rank, int64_t group) : team_(&team), rank_(rank), group_(group) {}
  int thread_rank() const { return rank_; }
  int size() const { return team_->size; }
  int warp_size() const { return std::min(team_->size, kWarpSize); }
  int64_t group_index() const { return group_; }
  void sync() const {
    ++team_->syncs[static_cast<size_t>(rank_)];
    team_->barrier.wait();
  }
  template <class T>
  T shuffle_xor(T value, int mask) const {
    static_assert(sizeof(T) <= sizeof(detail::Warp::Slot));
    ++team_->shuffles[static_cast<size_t>(rank_)];
    detail::Warp& warp = team_->warp_of(rank_);
    const int lane = rank_ % kWarpSize;
    std::memcpy(warp.slot[static_cast<size_t>(lane)].bytes, &value, sizeof(T));
    warp.barrier.wait();
    T other;
    std::memcpy(&other, warp.slot.at(static_cast<size_t>(lane ^ mask)).bytes, sizeof(T));
    warp.barrier.wait();
    return other;
  }
  /// What each lane of a whole warp passes in: for the CPU versions of instructions of a warp.
  template <class T>
  std::array<T, kWarpSize> warp_gather(const T& value) const {
    static_assert(sizeof(T) <= sizeof(detail::Warp::Slot));
    ++team_->shuffles[static_cast<size_t>(rank_)];
    detail::Warp& warp = team_->warp_of(rank_);
    std::memcpy(warp.slot[static_cast<size_t>(rank_ % kWarpSize)].bytes, &value, sizeof(T));
    warp.barrier.wait();
    std::array<T, kWarpSize> all;
    for (size_t lane = 0; lane < all.size(); ++lane)
      std::memcpy(&all[lane], warp.slot.at(lane).bytes, sizeof(T));
    warp.barrier.wait();
    return all;
  }
  /// Throws E-SHARED-MEMORY where the body takes more than its shared_bytes() promised.
  template <class T>
  T* shared(int64_t n) {
    auto* start = reinterpret_cast<T*>(team_->shared.data() + used_);
    used_ += shared_size<T>(n);
    GRADUS_CHECK(used_ <= team_->shared_bytes, "E-SHARED-MEMORY", "shared: the kernel takes ", used_,
                 " bytes and declared ", team_->shared_bytes, hint("add them to its shared_bytes()"));
    return start;
  }

 private:
  detail::Team* team_;
  int rank_;
  int64_t group_;
  size_t used_ = 0;
};

namespace detail {

inline void check_convergence(const char* name, const char* what, int64_t group,
                              const std::vector<long>& counts, size_t step) {
  for (size_t first = 0; first < counts.size(); first += step) {
    for (size_t t = first; t < std::min(first + step, counts.size()); ++t) {
      GRADUS_CHECK(counts[t] == counts[first], "E-DIVERGENCE", name, ": the threads of block ", group,
                   " did not stay together: thread ", first, " ", what, " ", counts[first], " times, thread ",
                   t, " ", counts[t], " times", hint("let every thread reach each sync() and each shuffle"));
    }
  }
}

// Not a template: a test program has hundreds of bodies.
inline void run_block(const char* name, const std::function<void(ThreadBlock&)>& body, int block_size,
                      size_t shared_bytes, int64_t group) {
  Team team(block_size, shared_bytes);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(block_size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < block_size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        ThreadBlock block(team, rank, group);
        body(block);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
      team.barrier.drop();  // a thread that leaves early must not hang the others
      team.warp_of(rank).barrier.drop();
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
  check_convergence(name, "synced", group, team.syncs, team.syncs.size());
  check_convergence(name, "shuffled", group, team.shuffles, kWarpSize);
}

}  // namespace detail

/// Runs every block, one after another, each with `block_size` threads. Throws E-BLOCK-SIZE for a size the
/// body does not support, and E-DIVERGENCE, naming two threads and their counts, where not all threads
/// reached a sync or shuffle.
template <Kernel Body>
void run_threads(const Body& body, int block_size) {
  check_block_size<Body>(block_size);
  const size_t shared = body.shared_bytes(block_size);
  for (int64_t group = 0, groups = body.groups(block_size); group < groups; ++group)
    detail::run_block(
        Body::kName, [&body](ThreadBlock& block) { body(block); }, block_size, shared, group);
}

}  // namespace gradus::kernels
