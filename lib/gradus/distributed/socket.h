// Messages over TCP. Internal to distributed/.
#pragma once
#include <chrono>
#include <string>
#include <string_view>

namespace gradus::distributed {

/// An open socket, closed at the end. Calls throw E-STORE with the system's reason.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;

  /// Waits for connections to `port` of every address of this machine.
  static Socket listen(int port);
  /// Tries until somebody answers; throws E-STORE with the last reason at `deadline`, and at once for a host
  /// that nobody knows.
  static Socket connect(const std::string& host, int port, std::chrono::steady_clock::time_point deadline);
  Socket accept() const;

  int fd() const { return fd_; }
  /// The numeric address of this end: where others of the peer's network find this machine.
  std::string local_address() const;
  /// send() and receive() throw where the other end takes or says nothing for so long.
  void set_timeout(std::chrono::milliseconds timeout) const;
  void send(std::string_view message) const;
  /// The next message; throws for one longer than any of ours.
  std::string receive() const;

 private:
  int fd_ = -1;
};

}  // namespace gradus::distributed
