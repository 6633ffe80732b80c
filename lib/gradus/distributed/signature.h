// What a rank is about to do, to be compared with what the others are. Internal to distributed/.
#pragma once
#include <gradus/distributed/backend.h>

#include <array>
#include <optional>
#include <string>
#include <type_traits>

namespace gradus::distributed {

enum class Collective : uint8_t {
  all_reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  scatter,
  gather,
  barrier
};

const char* to_string(Collective collective);

/// Of fixed size, so that ranks can send it whatever they do. Without padding: it is compared as bytes.
struct Signature {
  int64_t number = 0;  ///< how many collectives this rank began before
  Collective collective{};
  ReduceOp op{};
  uint8_t dtype = 0, dims = 0;
  int32_t root = -1;
  std::array<int64_t, kMaxDims> sizes{};
};
static_assert(std::has_unique_object_representations_v<Signature>);

/// Of a collective on `tensor`, whose shape and dtype must be the same on all ranks; undefined: a barrier.
Signature signature_of(Collective collective, const Tensor& tensor, ReduceOp op, int root);

/// "all_reduce sum float32 [100] (#3)"
std::string to_string(const Signature& signature);

/// What is wrong with the ranks' signatures; none where all are the same.
std::optional<std::string> difference(const std::vector<Signature>& by_rank);

}  // namespace gradus::distributed
