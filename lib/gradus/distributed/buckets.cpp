#include <gradus/distributed/buckets.h>
#include <gradus/distributed/distributed.h>
#include <gradus/tensor/grad_mode.h>
#include <gradus/tensor/views.h>

#include <map>

namespace gradus::distributed {

std::vector<std::vector<size_t>> plan_buckets(const std::vector<Tensor>& tensors, size_t first_limit,
                                              size_t limit) {
  struct Open {
    std::vector<size_t> members;
    size_t bytes = 0, limit;
  };
  std::map<std::pair<DType, std::string>, Open> open;
  std::vector<std::vector<size_t>> full;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::pair kind(tensors[i].dtype(), to_string(tensors[i].device()));
    Open& bucket = open.try_emplace(kind, Open{{}, 0, first_limit}).first->second;
    bucket.members.push_back(i);
    bucket.bytes += tensors[i].nbytes();
    if (bucket.bytes < bucket.limit) continue;
    full.push_back(std::move(bucket.members));
    bucket = {{}, 0, limit};
  }
  for (auto& [kind, bucket] : open)
    if (!bucket.members.empty()) full.push_back(std::move(bucket.members));
  return full;
}

Bucket make_bucket(const std::vector<Tensor>& tensors) {
  int64_t total = 0;
  for (const Tensor& tensor : tensors) total += tensor.numel();
  Bucket bucket{empty({total}, tensors[0].dtype(), tensors[0].device()), {}};
  int64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    const Shape strides = empty_like(tensor).strides();
    bucket.views.push_back(gradus::detail::make_view(bucket.flat, tensor.sizes(), strides, offset));
    offset += tensor.numel();
  }
  return bucket;
}

void broadcast_coalesced(const std::vector<Tensor>& tensors, int src) {
  constexpr size_t kLimit = size_t{25} << 20;
  const NoGradGuard no_grad;
  for (const auto& members : plan_buckets(tensors, kLimit, kLimit)) {
    std::vector<Tensor> some;
    for (const size_t i : members) some.push_back(tensors[i].detach());
    Bucket bucket = make_bucket(some);
    for (size_t i = 0; i < some.size(); ++i) bucket.views[i].copy_(some[i]);
    broadcast(bucket.flat, src);
    if (get_rank() == src) continue;
    for (size_t i = 0; i < some.size(); ++i) some[i].copy_(bucket.views[i]);
  }
}

}  // namespace gradus::distributed
