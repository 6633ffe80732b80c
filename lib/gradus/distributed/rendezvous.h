// How the ranks of a job find each other. Internal to distributed/.
#pragma once
#include <gradus/distributed/store.h>

#include <memory>
#include <string>

namespace gradus::distributed {

struct Meeting {
  std::string init_method;  // "env://", "tcp://host:port" or "file:///folder"
  int rank = -1, world_size = -1;
  milliseconds timeout, silence;
};

/// The store of the job, with all ranks in it.
struct Met {
  std::shared_ptr<Store> store;
  std::string address;  // where others find this machine
};

/// Waits until all ranks are there. Throws E-RENDEZVOUS naming those that are missing at the timeout, for a
/// rank that is taken, and where ranks disagree about their number; what the store throws.
Met meet(const Meeting& meeting);

}  // namespace gradus::distributed
