// Named tensors in a fixed order: what a module's or an optimizer's state is saved as.
#pragma once
#include <gradus/tensor/tensor.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gradus {

/// Name and tensor pairs in the order they were added, as Python's dict keeps them. A model has hundreds of
/// entries at most, so a lookup walks them.
class StateDict {
 public:
  using Entry = std::pair<std::string, Tensor>;

  StateDict() = default;
  StateDict(std::initializer_list<Entry> entries) : entries_(entries) {}

  /// Appends without looking for an equal name; readers and writers of files refuse duplicates.
  void add(std::string name, Tensor tensor) { entries_.emplace_back(std::move(name), std::move(tensor)); }

  /// The tensor of that name, or nullptr.
  const Tensor* find(std::string_view name) const {
    for (const Entry& entry : entries_)
      if (entry.first == name) return &entry.second;
    return nullptr;
  }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// The tensor of that name; throws E-STATE-DICT if there is none.
  const Tensor& at(std::string_view name) const {
    const Tensor* tensor = find(name);
    GRADUS_CHECK(tensor, "E-STATE-DICT", "state_dict: no tensor is named '", name, "' among its ", size());
    return *tensor;
  }

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  std::vector<Entry> entries_;
};

}  // namespace gradus
