#include <gradus/base/error.h>
#include <gradus/distributed/tcp_store_server.h>
#include <poll.h>

#include <algorithm>
#include <charconv>

namespace gradus::distributed {
namespace {

constexpr milliseconds kTick{100};
constexpr milliseconds kFarewell{2000};  // for those who left to close their end
constexpr milliseconds kStalled{2000};   // a client stops in the middle of a request: it is given up

int64_t number(const std::string& text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Takes what comes before the next zero byte off the front.
std::string next(std::string& text) {
  const size_t end = std::min(text.find('\0'), text.size());
  std::string part = text.substr(0, end);
  text.erase(0, end + 1);
  return part;
}

}  // namespace

TcpStoreServer::TcpStoreServer(int port) : listener_(Socket::listen(port)) {
  thread_ = std::thread([this] { run(); });
}

TcpStoreServer::~TcpStoreServer() {
  closing_ = true;
  thread_.join();
}

void TcpStoreServer::run() {
  Clock::time_point end = Clock::time_point::max();
  while (Clock::now() < end && !(closing_ && clients_.empty())) {
    if (closing_ && end == Clock::time_point::max()) end = Clock::now() + kFarewell;
    std::vector<pollfd> sockets{{listener_.fd(), POLLIN, 0}};
    for (const Client& client : clients_) sockets.push_back({client.socket.fd(), POLLIN, 0});
    if (::poll(sockets.data(), sockets.size(), static_cast<int>(kTick.count())) <= 0) continue;
    for (size_t i = sockets.size() - 1; i >= 1; --i) {
      if (!sockets[i].revents) continue;
      try {
        serve(clients_[i - 1]);
      } catch (const Error&) {  // closed, or no rank of ours
        if (clients_[i - 1].rank >= 0)
          gone_.push_back({clients_[i - 1].rank, "has ended without destroy_process_group()"});
        clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i - 1));
      }
    }
    if (!sockets[0].revents) continue;
    Socket socket = listener_.accept();
    if (socket.fd() < 0) continue;
    socket.set_timeout(kStalled);
    clients_.push_back({std::move(socket), -1, Clock::now()});
  }
}

void TcpStoreServer::serve(Client& client) {
  const std::string request = client.socket.receive();
  client.heard = Clock::now();
  client.socket.send(answer(client, request));
}

std::string TcpStoreServer::answer(Client& client, const std::string& request) {
  std::string rest = request;
  const std::string operation = next(rest), key = next(rest);
  if (operation == "hello") return ending_ ? "" : "welcome";
  if (operation == "set") return values_[key] = rest, "";
  if (operation == "get") {
    const auto found = values_.find(key);
    return found == values_.end() ? "" : "+" + found->second;
  }
  if (operation == "add") return values_[key] = str(number(values_[key]) + number(rest));
  if (operation == "join") return client.rank = static_cast<int>(number(key)), "";
  if (operation == "leave") return client.rank = -1, ending_ = true, "";
  if (operation == "lost") return lost(milliseconds(number(key)), client.rank);
  GRADUS_FAIL("E-STORE", "a message that is not one of ours");
}

std::string TcpStoreServer::lost(milliseconds silence, int asking) const {
  std::string text;
  for (const LostRank& rank : gone_) text += str(rank.rank, " ", rank.why) + '\0';
  for (const Client& client : clients_)
    if (silence.count() > 0 && client.rank >= 0 && client.rank != asking &&
        Clock::now() - client.heard > silence)
      text += str(client.rank, " has not answered for ", silence.count() / 1000.0, " s") + '\0';
  return text;
}

}  // namespace gradus::distributed
