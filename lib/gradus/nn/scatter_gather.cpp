#include <gradus/nn/scatter_gather.h>
#include <gradus/ops/cat.h>
#include <gradus/ops/view.h>

namespace gradus::nn::parallel {

std::vector<Tensor> scatter(const Tensor& x, std::span<const Device> devices, int64_t dim) {
  GRADUS_CHECK(!devices.empty(), "E-ARG", "scatter: expected at least one device, got none");
  GRADUS_CHECK(x.dim() > 0, "E-DIM", "scatter: a 0-dim tensor cannot be cut",
               hint("give the batch a first dimension"));
  if (x.size(dim) == 0) return {x.to(devices[0])};
  std::vector<Tensor> parts = chunk(x, static_cast<int64_t>(devices.size()), dim);
  for (size_t i = 0; i < parts.size(); ++i) parts[i] = parts[i].to(devices[i]);
  return parts;
}

Tensor gather(const std::vector<Tensor>& parts, Device device, int64_t dim) {
  GRADUS_CHECK(!parts.empty(), "E-ARG", "gather: expected at least one part, got none");
  const bool numbers = parts[0].dim() == 0;
  std::vector<Tensor> here;
  for (const Tensor& part : parts)
    here.push_back((numbers && part.dim() == 0 ? unsqueeze(part, 0) : part).to(device));
  return here.size() == 1 ? here[0] : cat(here, numbers ? 0 : dim);
}

namespace detail {

void check_same_length(size_t first, size_t other, size_t part) {
  GRADUS_CHECK(first == other, "E-ARG", "gather: the output of part 0 has ", first, " entries, that of part ",
               part, " has ", other, hint("forward() must return the same structure whatever its input"));
}

void refuse_keys(size_t part) {
  GRADUS_FAIL("E-ARG", "gather: the output of part ", part, " has other keys than that of part 0",
              hint("forward() must return the same structure whatever its input"));
}

}  // namespace detail

}  // namespace gradus::nn::parallel
