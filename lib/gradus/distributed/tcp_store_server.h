// The serving end of TcpStore. Internal to distributed/.
#pragma once
#include <gradus/distributed/socket.h>
#include <gradus/distributed/store.h>

#include <atomic>
#include <map>
#include <thread>

namespace gradus::distributed {

/// Answers on a thread of its own until it is destroyed, which waits a little for the ranks that have left to
/// close their connections.
///
/// A request is an operation, a key and a value, each but the last ended by a zero byte:
/// hello ("welcome", or "" once a rank has left: a job that begins must not meet one that ends), set, get
/// (the answer begins with '+', or is "" where there is no value), add, join, leave and lost (one "rank why"
/// for each, each ended by a zero byte).
class TcpStoreServer {
 public:
  /// Throws E-STORE where the port is in use.
  explicit TcpStoreServer(int port);
  ~TcpStoreServer();

 private:
  using Clock = std::chrono::steady_clock;
  struct Client {
    Socket socket;
    int rank = -1;
    Clock::time_point heard;
  };

  void run();
  void serve(Client& client);
  std::string answer(Client& client, const std::string& request);
  std::string lost(milliseconds silence, int asking) const;

  Socket listener_;
  std::vector<Client> clients_;
  std::map<std::string, std::string> values_;
  std::vector<LostRank> gone_;
  bool ending_ = false;
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace gradus::distributed
