#include <gradus/base/error.h>
#include <gradus/distributed/tcp_store.h>
#include <gradus/distributed/tcp_store_server.h>

#include <charconv>
#include <thread>

namespace gradus::distributed {

static std::string request(std::string_view operation, std::string_view key = "",
                           std::string_view value = "") {
  return std::string(operation) + '\0' + std::string(key) + '\0' + std::string(value);
}

TcpStore::TcpStore(std::string host, int port, bool serve, milliseconds timeout, milliseconds patience)
    : where_(str("tcp://", host, ":", port)) {
  if (serve) server_ = std::make_unique<TcpStoreServer>(port);
  try {
    connect(host, port, std::chrono::steady_clock::now() + timeout);
  } catch (const Error& error) {
    GRADUS_FAIL("E-STORE", where_, ": ", error.what(), " (rank 0 was looked for for at most ",
                timeout.count() / 1000.0, " s)",
                hint("are MASTER_ADDR and MASTER_PORT those of rank 0, and was rank 0 started?"));
  }
  patience.count() > 0 ? socket_.set_timeout(patience) : socket_.set_timeout(milliseconds(0));
}

// Until rank 0 is there, the port may be that of the job before, which is about to end.
void TcpStore::connect(const std::string& host, int port, std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    socket_ = Socket::connect(host, port, deadline);
    socket_.set_timeout(milliseconds(1000));
    try {
      socket_.send(request("hello"));
      if (socket_.receive() == "welcome") return;
    } catch (const Error&) {
      if (std::chrono::steady_clock::now() > deadline) throw;
    }
    GRADUS_CHECK(std::chrono::steady_clock::now() < deadline, "E-STORE", "somebody else's job ends there");
    std::this_thread::sleep_for(milliseconds(50));
  }
}

TcpStore::~TcpStore() = default;  // first the connection, then the server, which waits for that

std::string TcpStore::ask(const std::string& request) {
  const std::lock_guard lock(mutex_);
  try {
    socket_.send(request);
    return socket_.receive();
  } catch (const Error& error) {
    socket_ = Socket();  // or a late answer would be taken for that of the next question
    GRADUS_FAIL("E-STORE", "rank 0, which serves ", where_, ", cannot be reached: ", error.what());
  }
}

void TcpStore::set(const std::string& key, const std::string& value) { ask(request("set", key, value)); }

std::optional<std::string> TcpStore::try_get(const std::string& key) {
  const std::string answer = ask(request("get", key));
  return answer.empty() ? std::nullopt : std::optional(answer.substr(1));
}

int64_t TcpStore::add(const std::string& key, int64_t amount) {
  const std::string answer = ask(request("add", key, str(amount)));
  int64_t sum = 0;
  std::from_chars(answer.data(), answer.data() + answer.size(), sum);
  return sum;
}

void TcpStore::join(int rank) { ask(request("join", str(rank))); }
void TcpStore::leave() { ask(request("leave")); }

std::vector<LostRank> TcpStore::lost(milliseconds silence) {
  const std::string answer = ask(request("lost", str(silence.count())));
  std::vector<LostRank> all;
  for (size_t at = 0; at < answer.size();) {
    const size_t space = answer.find(' ', at), end = answer.find('\0', at);
    int rank = -1;
    std::from_chars(answer.data() + at, answer.data() + space, rank);
    all.push_back({rank, answer.substr(space + 1, end - space - 1)});
    at = end + 1;
  }
  return all;
}

}  // namespace gradus::distributed
