#include <gradus/distributed/signature.h>

#include <algorithm>
#include <cstring>

namespace gradus::distributed {

const char* to_string(Collective collective) {
  constexpr const char* names[] = {"all_reduce", "broadcast", "all_gather", "reduce_scatter",
                                   "scatter",    "gather",    "barrier"};
  return names[static_cast<int>(collective)];
}

Signature signature_of(Collective collective, const Tensor& tensor, ReduceOp op, int root) {
  Signature made;
  made.collective = collective;
  made.op = op;
  made.root = root;
  if (!tensor.defined()) return made;
  made.dtype = static_cast<uint8_t>(tensor.dtype());
  made.dims = static_cast<uint8_t>(tensor.dim());
  std::copy(tensor.sizes().begin(), tensor.sizes().end(), made.sizes.begin());
  return made;
}

std::string to_string(const Signature& s) {
  const bool reduces = s.collective == Collective::all_reduce || s.collective == Collective::reduce_scatter;
  std::string text = to_string(s.collective);
  if (reduces) text += str(" ", to_string(s.op));
  if (s.root >= 0) text += str(" root ", s.root);
  if (s.collective != Collective::barrier) {
    text += str(" ", to_string(static_cast<DType>(s.dtype)), " [");
    for (size_t d = 0; d < std::min<size_t>(s.dims, kMaxDims); ++d) text += str(d ? ", " : "", s.sizes[d]);
    text += "]";
  }
  return text + str(" (#", s.number, ")");
}

std::optional<std::string> difference(const std::vector<Signature>& by_rank) {
  for (size_t rank = 1; rank < by_rank.size(); ++rank)
    if (std::memcmp(&by_rank[0], &by_rank[rank], sizeof(Signature)) != 0)
      return str("the ranks do not call the same collective: rank 0 calls ", by_rank[0], ", rank ", rank,
                 " calls ", by_rank[rank]);
  return {};
}

}  // namespace gradus::distributed
