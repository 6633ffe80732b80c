// The work that is done here and in PyTorch (torch_worker.py), case by case, on the same numbers.
#pragma once
#include <gradus/tensor/tensor.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace peers {

/// What a case is made from: {"n": 64, "dtype": "float32"} and the device.
struct Parameters {
  nlohmann::json values;
  gradus::Device device;
  int64_t number(const char* name) const { return values.at(name).get<int64_t>(); }
  std::string word(const char* name) const { return values.at(name).get<std::string>(); }
};

/// A piece of work, and the numbers that the other side must get too.
struct Case {
  std::vector<double> check;
  std::function<void()> call;
};

/// Every case by name: lib/driver/peer_cases.py says which are measured.
const std::map<std::string, std::function<Case(const Parameters&)>>& cases();

/// Numbers in [-bound, bound) that both sides make alike, bit by bit: element i of tensor `which` is a hash
/// of both (the finalizer of MurmurHash3, A. Appleby), its upper 24 bits as a float32.
gradus::Tensor numbers(const gradus::Shape& shape, uint32_t which, float bound = 1);

}  // namespace peers
