// A store that rank 0 serves to all others.
#pragma once
#include <gradus/distributed/socket.h>
#include <gradus/distributed/store.h>

#include <memory>
#include <mutex>

namespace gradus::distributed {

class TcpStoreServer;

/// One connection a rank; the server runs on a thread of rank 0's process and sees when a connection ends.
class TcpStore : public Store {
 public:
  /// With `serve`, the server too. Throws E-STORE for a port in use, a host that nobody knows, and one that
  /// does not answer within the timeout. Later calls give up after `patience` (0: never) without an answer.
  TcpStore(std::string host, int port, bool serve, milliseconds timeout, milliseconds patience);
  ~TcpStore() override;

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> try_get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  void join(int rank) override;
  void leave() override;
  std::vector<LostRank> lost(milliseconds silence) override;
  std::string where() const override { return where_; }

  /// The address of this machine in the network in which the server is.
  std::string local_address() const { return socket_.local_address(); }

 private:
  void connect(const std::string& host, int port, std::chrono::steady_clock::time_point deadline);
  std::string ask(const std::string& request);

  std::string where_;
  std::unique_ptr<TcpStoreServer> server_;
  std::mutex mutex_;  // a question and its answer
  Socket socket_;
};

}  // namespace gradus::distributed
