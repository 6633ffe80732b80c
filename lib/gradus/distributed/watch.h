// Looks after the other ranks. Internal to distributed/.
#pragma once
#include <gradus/distributed/collective_queue.h>
#include <gradus/distributed/store.h>

#include <condition_variable>
#include <mutex>

namespace gradus::distributed {

/// A thread that asks the store four times a second whether all ranks live, and tells it that this one does;
/// so a dead rank ends the job also where everybody waits for somebody else. Whoever learns first why the job
/// must end leaves that in the store, and all ranks say the same.
class Watch {
 public:
  struct Limits {
    milliseconds timeout;  // of a collective
    milliseconds silence;  // of a rank; 0: none
  };
  Watch(std::shared_ptr<Store> store, int rank, int size, Limits limits)
      : store_(std::move(store)), rank_(rank), size_(size), limits_(limits) {}
  ~Watch() { stop(); }

  /// From now on, collectives of `queue` end when one of the ranks cannot go on.
  void start(CollectiveQueue& queue);
  void stop();
  /// What a collective's exception means: waits for news of a lost rank, which arrive later than the end of a
  /// connection to it. The other ranks are told.
  Failure explain(const std::exception& error);
  /// Tells the others that this rank has no more collectives to do, and waits until they have none either.
  void farewell();

 private:
  using Clock = std::chrono::steady_clock;
  void run(CollectiveQueue& queue);
  std::optional<Failure> look(const CollectiveQueue& queue);
  std::optional<Failure> look_at_ranks();
  std::optional<Failure> look_at_collective(const CollectiveQueue::Position& at);
  std::vector<int> leaving();
  std::string missing(const CollectiveQueue::Position& at);
  void publish(const CollectiveQueue::Position& at);
  Failure report(Failure failure);
  void acknowledge();
  bool all_know();

  const std::shared_ptr<Store> store_;
  const int rank_, size_;
  const Limits limits_;
  std::string published_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Failure> failure_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace gradus::distributed
