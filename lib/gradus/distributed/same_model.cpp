#include <gradus/distributed/distributed.h>
#include <gradus/distributed/same_model.h>
#include <gradus/ops/factories.h>

#include <algorithm>
#include <cstring>

namespace gradus::distributed {
namespace {

std::vector<std::string> lines_of(const nn::Module& module) {
  std::vector<std::string> lines;
  const auto add = [&](const auto& named, const char* kind) {
    for (const auto& [name, tensor] : named)
      lines.push_back(str(kind, " ", name, " ", to_string(tensor.dtype()), " ", tensor.sizes(),
                          tensor.requires_grad() ? "" : ", not trained"));
  };
  add(module.named_parameters(), "parameter");
  add(module.named_buffers(), "buffer");
  return lines;
}

// Every rank's text, which may differ in length.
std::vector<std::string> all_gather_text(const std::string& text) {
  const int size = get_world_size();
  const Tensor length = full({1}, static_cast<int64_t>(text.size()), {.dtype = kInt64});
  const Tensor lengths = zeros({size}, {.dtype = kInt64});
  all_gather_into_tensor(lengths, length);
  const int64_t* const n = lengths.data<int64_t>();
  const int64_t longest = *std::max_element(n, n + size);
  const Tensor mine = zeros({longest}, {.dtype = kUInt8}), all = zeros({size, longest}, {.dtype = kUInt8});
  std::memcpy(mine.raw_data(), text.data(), text.size());
  all_gather_into_tensor(all, mine);
  std::vector<std::string> texts;
  for (int rank = 0; rank < size; ++rank)
    texts.emplace_back(static_cast<const char*>(all.raw_data()) + rank * longest,
                       static_cast<size_t>(n[rank]));
  return texts;
}

std::string line(const std::string& text, size_t at) { return text.substr(at, text.find('\n', at) - at); }

void refuse(const std::string& first, const std::string& other, size_t rank) {
  size_t at =
      std::mismatch(first.begin(), first.begin() + std::min(first.size(), other.size()), other.begin())
          .first -
      first.begin();
  at = at == 0 ? 0 : first.rfind('\n', at - 1) + 1;
  const auto what = [&](const std::string& text) {
    return at < text.size() ? line(text, at) : "nothing more";
  };
  GRADUS_FAIL("E-DDP", "DistributedDataParallel: the ranks have different models: rank 0 has ", what(first),
              ", rank ", rank, " has ", what(other),
              hint("make the same layers, in the same order and of the same sizes, on all ranks"));
}

}  // namespace

void check_same_model(const nn::Module& module) {
  std::string text;
  for (const std::string& line : lines_of(module)) text += line + '\n';
  const auto all = all_gather_text(text);
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0]) refuse(all[0], all[rank], rank);
}

}  // namespace gradus::distributed
