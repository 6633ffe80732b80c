#include <gradus/base/error.h>
#include <gradus/distributed/file_store.h>
#include <gradus/distributed/rendezvous.h>
#include <gradus/distributed/tcp_store.h>

#include <charconv>
#include <thread>

namespace gradus::distributed {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::string_view kFile = "file://", kTcp = "tcp://";

Met open_tcp(const Meeting& meeting, std::string_view place) {
  const size_t colon = place.rfind(':');
  int port = 0;
  if (colon != place.npos) std::from_chars(place.data() + colon + 1, place.data() + place.size(), port);
  GRADUS_CHECK(colon != place.npos && colon > 0 && port > 0 && port < 65536, "E-RENDEZVOUS",
               "init_process_group: expected tcp://host:port, got ", meeting.init_method);
  auto store = std::make_shared<TcpStore>(std::string(place.substr(0, colon)), port, meeting.rank == 0,
                                          meeting.timeout, meeting.silence);
  return {store, store->local_address()};
}

Met open_store(const Meeting& meeting) {
  const std::string_view method = meeting.init_method;
  if (method.starts_with(kFile))
    return {std::make_shared<FileStore>(std::string(method.substr(kFile.size()))), "127.0.0.1"};
  if (method.starts_with(kTcp)) return open_tcp(meeting, method.substr(kTcp.size()));
  GRADUS_FAIL("E-RENDEZVOUS", "init_process_group: init_method '", method, "' is unknown",
              hint("\"env://\", \"tcp://host:port\" and \"file:///folder\" are"));
}

std::string joined_key(int rank) { return "joined/" + std::to_string(rank); }

void sign_in(Store& store, const Meeting& m) {
  GRADUS_CHECK(store.add("joining/" + std::to_string(m.rank), 1) == 1, "E-RENDEZVOUS",
               "init_process_group: there is a rank ", m.rank, " at ", store.where(), " already",
               hint("two processes have this RANK, or a store that was used before is used again"));
  if (store.add("deciders", 1) == 1) store.set("world_size", str(m.world_size));
  const std::string size = store.get("world_size", m.timeout);
  GRADUS_CHECK(size == str(m.world_size), "E-RENDEZVOUS", "init_process_group: rank ", m.rank,
               " was told that there are ", m.world_size, " ranks, another one that there are ", size,
               hint("set the same WORLD_SIZE on all ranks"));
  store.join(m.rank);
  store.set(joined_key(m.rank), "");
}

void refuse_to_wait(Store& store, const Meeting& m, const std::string& problem) {
  store.set("rendezvous failed", problem);
  GRADUS_FAIL("E-RENDEZVOUS", "init_process_group: ", problem,
              hint("were all ranks started, with this MASTER_ADDR and MASTER_PORT (", store.where(),
                   "; this is rank ", m.rank, ")?"));
}

// The ranks, from `first` on, that have not joined.
std::string missing(Store& store, const Meeting& m) {
  std::string text;
  int count = 0;
  for (int rank = 0; rank < m.world_size; ++rank)
    if (!store.try_get(joined_key(rank))) text += str(count++ ? ", " : "", rank);
  return str(m.world_size - count, " of ", m.world_size, " ranks joined within ", m.timeout.count() / 1000.0,
             " s; missing: ", text);
}

// While it waits, it asks for lost ranks: that tells them, too, that this one lives.
void wait_for_all(Store& store, const Meeting& m) {
  const auto end = Clock::now() + m.timeout;
  auto next_look = Clock::now();
  for (int rank = 0; rank < m.world_size;) {
    if (store.try_get(joined_key(rank))) {
      ++rank;
      continue;
    }
    if (const auto problem = store.try_get("rendezvous failed")) refuse_to_wait(store, m, *problem);
    if (Clock::now() >= end) refuse_to_wait(store, m, missing(store, m));
    if (Clock::now() >= next_look) {
      for (const LostRank& lost : store.lost(m.silence))
        refuse_to_wait(store, m, str("rank ", lost.rank, " ", lost.why, " before all had joined"));
      next_look = Clock::now() + milliseconds(250);
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
}

}  // namespace

Met meet(const Meeting& meeting) {
  Met met = open_store(meeting);
  sign_in(*met.store, meeting);
  wait_for_all(*met.store, meeting);
  return met;
}

}  // namespace gradus::distributed
