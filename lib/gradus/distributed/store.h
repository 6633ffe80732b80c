// Where the processes of a job meet: named values that all of them see, and a list of those that are gone.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gradus::distributed {

using std::chrono::milliseconds;

/// A rank that joined a store and did not leave it, but cannot be reached any more.
struct LostRank {
  int rank;
  std::string why;  ///< "has ended without destroy_process_group()", "has not answered for 10 s"
};

/// Values by name. Any thread may call any member; every call throws E-STORE where the store cannot be
/// reached.
class Store {
 public:
  virtual ~Store() = default;

  virtual void set(const std::string& key, const std::string& value) = 0;
  /// The value; none where nobody has set it yet.
  virtual std::optional<std::string> try_get(const std::string& key) = 0;
  /// Adds to a number, 0 at first, and returns the sum. Two processes that add 1 never get the same number.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;

  /// This process is `rank` from now on: others are told when it is gone.
  virtual void join(int rank) = 0;
  /// It goes on purpose.
  virtual void leave() = 0;
  /// Tells that this process lives, and returns who has not left and is gone, or has not called this for
  /// longer than `silence` (0: however long).
  virtual std::vector<LostRank> lost(milliseconds silence) = 0;

  /// Where it is, for messages: "file:///tmp/x", "tcp://host:29500".
  virtual std::string where() const = 0;

  /// The value of `key` as soon as there is one; throws E-TIMEOUT naming the key if there is none in time.
  std::string get(const std::string& key, milliseconds timeout);
  /// True when all keys are there; false if they are not within the timeout.
  bool wait(const std::vector<std::string>& keys, milliseconds timeout);
};

}  // namespace gradus::distributed
