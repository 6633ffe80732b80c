#include <gradus/base/error.h>
#include <gradus/distributed/socket.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

namespace gradus::distributed {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const std::string& host, int port) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  GRADUS_CHECK(error == 0, "E-STORE", "cannot find the host '", host, "': ", ::gai_strerror(error),
               hint("is MASTER_ADDR the name or the address of the machine of rank 0?"));
  return {found, &::freeaddrinfo};
}

void set_option(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof value);
}

// connect() of a blocking socket may take minutes where packets are lost: this says for how long.
void limit_connecting(int fd, std::chrono::steady_clock::time_point deadline) {
  const auto left = deadline - std::chrono::steady_clock::now();
  const int ms = static_cast<int>(std::max<int64_t>(1, left / std::chrono::milliseconds(1)));
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, ms);
  const timeval limit{ms / 1000, ms % 1000 * 1000};
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

constexpr uint32_t kLongest = 16 << 20;

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}
Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Socket Socket::listen(int port) {
  Socket socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool six = socket.fd_ >= 0;
  if (!six) socket = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  set_option(socket.fd_, SOL_SOCKET, SO_REUSEADDR, 1);
  if (six) set_option(socket.fd_, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(static_cast<uint16_t>(port));
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  any4.sin_port = any6.sin6_port;
  const auto* address =
      six ? reinterpret_cast<const sockaddr*>(&any6) : reinterpret_cast<const sockaddr*>(&any4);
  const auto size = static_cast<socklen_t>(six ? sizeof any6 : sizeof any4);
  GRADUS_CHECK(::bind(socket.fd_, address, size) == 0 && ::listen(socket.fd_, 1024) == 0, "E-STORE",
               "rank 0 cannot listen on port ", port, ": ", std::strerror(errno),
               hint("another job may use it: set MASTER_PORT to a free one, on all ranks"));
  return socket;
}

Socket Socket::connect(const std::string& host, int port, std::chrono::steady_clock::time_point deadline) {
  const Addresses addresses = resolve(host, port);
  std::string reason = "nobody answered";
  do {
    for (const addrinfo* a = addresses.get(); a; a = a->ai_next) {
      Socket socket(::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol));
      if (socket.fd_ < 0) continue;
      limit_connecting(socket.fd_, deadline);
      if (::connect(socket.fd_, a->ai_addr, a->ai_addrlen) == 0) {
        set_option(socket.fd_, IPPROTO_TCP, TCP_NODELAY, 1);
        return socket;
      }
      reason = std::strerror(errno == EINPROGRESS ? ETIMEDOUT : errno);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } while (std::chrono::steady_clock::now() < deadline);
  GRADUS_FAIL("E-STORE", reason);
}

Socket Socket::accept() const {
  Socket socket(::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.fd_ >= 0) set_option(socket.fd_, IPPROTO_TCP, TCP_NODELAY, 1);
  return socket;
}

std::string Socket::local_address() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
  char name[NI_MAXHOST] = "";
  ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, name, sizeof name, nullptr, 0, NI_NUMERICHOST);
  return name;
}

void Socket::set_timeout(std::chrono::milliseconds timeout) const {
  const timeval limit{timeout.count() / 1000, timeout.count() % 1000 * 1000};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  set_option(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(timeout.count()));
}

void Socket::send(std::string_view message) const {
  const auto length = static_cast<uint32_t>(message.size());
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += message;
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    GRADUS_CHECK(n > 0 || errno == EINTR, "E-STORE", std::strerror(errno));
    sent += static_cast<size_t>(std::max<ssize_t>(n, 0));
  }
}

static void receive_all(int fd, char* to, size_t bytes) {
  for (size_t received = 0; received < bytes;) {
    const ssize_t n = ::recv(fd, to + received, bytes - received, 0);
    GRADUS_CHECK(n != 0, "E-STORE", "the connection was closed");
    GRADUS_CHECK(n > 0 || errno == EINTR, "E-STORE",
                 errno == EAGAIN ? "it does not answer" : std::strerror(errno));
    received += static_cast<size_t>(std::max<ssize_t>(n, 0));
  }
}

std::string Socket::receive() const {
  uint32_t length = 0;
  receive_all(fd_, reinterpret_cast<char*>(&length), sizeof length);
  GRADUS_CHECK(length <= kLongest, "E-STORE", "a message of ", length, " bytes is not one of ours",
               hint("something else uses the port: set MASTER_PORT to a free one, on all ranks"));
  std::string message(length, '\0');
  receive_all(fd_, message.data(), length);
  return message;
}

}  // namespace gradus::distributed
