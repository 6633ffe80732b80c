// Collectives over TCP with Gloo: of tensors of the cpu, and through copies on the cpu of all others.
#pragma once
#include <gradus/distributed/backend.h>
#include <gradus/distributed/store.h>

#include <memory>
#include <string>

namespace gradus::distributed {

/// Connects each rank to each through `store`; `address` is where the others find this machine, or the name
/// of its network interface where GLOO_SOCKET_IFNAME is set. Throws E-RENDEZVOUS.
std::unique_ptr<Backend> gloo_backend(Store& store, int rank, int size, const std::string& address,
                                      milliseconds timeout);

}  // namespace gradus::distributed
