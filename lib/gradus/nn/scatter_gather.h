// A batch cut over devices, and the outputs of its parts joined again, as torch.nn.parallel.scatter and
// gather.
#pragma once
#include <gradus/tensor/tensor.h>

#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace gradus::nn::parallel {

/// x cut along `dim` as by chunk(), the i-th part on devices[i]. There may be fewer parts than devices: 9
/// rows over 4 devices are 3 + 3 + 3. Gradients flow back. Throws E-ARG without devices, E-DIM for a 0-dim
/// tensor.
std::vector<Tensor> scatter(const Tensor& x, std::span<const Device> devices, int64_t dim = 0);

/// The parts on `device`, joined along `dim`; numbers (0-dim tensors) become a vector of them. Gradients flow
/// back to each part's device. Throws E-ARG without parts, E-SHAPE where they do not fit together.
Tensor gather(const std::vector<Tensor>& parts, Device device, int64_t dim = 0);

/// Of outputs that hold tensors: lists, pairs, tuples and maps, in any depth, are gathered entry by entry.
/// Throws E-ARG where two parts' lists differ in length or their maps in keys.
template <class T>
std::vector<T> gather(const std::vector<std::vector<T>>& parts, Device device, int64_t dim = 0);
template <class K, class T>
std::map<K, T> gather(const std::vector<std::map<K, T>>& parts, Device device, int64_t dim = 0);
template <class A, class B>
std::pair<A, B> gather(const std::vector<std::pair<A, B>>& parts, Device device, int64_t dim = 0);
template <class... T>
std::tuple<T...> gather(const std::vector<std::tuple<T...>>& parts, Device device, int64_t dim = 0);

namespace detail {

void check_same_length(size_t first, size_t other, size_t part);
[[noreturn]] void refuse_keys(size_t part);

/// What `get` finds in each part, gathered.
template <class Part, class Get>
auto gather_each(const std::vector<Part>& parts, Device device, int64_t dim, const Get& get) {
  std::vector<std::remove_cvref_t<decltype(get(parts[0]))>> entries;
  for (const Part& part : parts) entries.push_back(get(part));
  return parallel::gather(entries, device, dim);
}

}  // namespace detail

template <class T>
std::vector<T> gather(const std::vector<std::vector<T>>& parts, Device device, int64_t dim) {
  for (size_t i = 1; i < parts.size(); ++i) detail::check_same_length(parts[0].size(), parts[i].size(), i);
  std::vector<T> joined;
  for (size_t k = 0; !parts.empty() && k < parts[0].size(); ++k)
    joined.push_back(detail::gather_each(parts, device, dim, [k](const auto& part) { return part[k]; }));
  return joined;
}

template <class K, class T>
std::map<K, T> gather(const std::vector<std::map<K, T>>& parts, Device device, int64_t dim) {
  std::map<K, T> joined;
  if (parts.empty()) return joined;
  for (size_t i = 1; i < parts.size(); ++i) {
    detail::check_same_length(parts[0].size(), parts[i].size(), i);
    for (const auto& [key, value] : parts[0])
      if (!parts[i].contains(key)) detail::refuse_keys(i);
  }
  for (const auto& [key, value] : parts[0])
    joined.emplace(key, detail::gather_each(parts, device, dim,
                                            [&name = key](const auto& part) { return part.at(name); }));
  return joined;
}

template <class A, class B>
std::pair<A, B> gather(const std::vector<std::pair<A, B>>& parts, Device device, int64_t dim) {
  return {detail::gather_each(parts, device, dim, [](const auto& part) { return part.first; }),
          detail::gather_each(parts, device, dim, [](const auto& part) { return part.second; })};
}

template <class... T>
std::tuple<T...> gather(const std::vector<std::tuple<T...>>& parts, Device device, int64_t dim) {
  return [&]<size_t... K>(std::index_sequence<K...>) {
    return std::tuple<T...>{
        detail::gather_each(parts, device, dim, [](const auto& part) { return std::get<K>(part); })...};
  }
  (std::index_sequence_for<T...>());
}

}  // namespace gradus::nn::parallel
