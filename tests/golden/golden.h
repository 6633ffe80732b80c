// Reading the golden vectors (make_golden.py made them with PyTorch) and comparing with them.
#pragma once
#include <gradus/tensor/tensor.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace gradus::golden {

/// One file of tests/golden/data.
struct File {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;

  /// The tensor of this name; a test failure and an exception where there is none.
  const Tensor& at(const std::string& name) const;
  bool has(const std::string& name) const { return tensors.count(name) != 0; }
};

/// Loads tests/golden/data/NAME.safetensors; each file is read once.
const File& file(const std::string& name);

/// Success if shapes agree and each element differs by at most tolerance * max(1, |wanted|). Integers and
/// bools must be equal; NaN equals NaN and an infinity itself, nothing else.
::testing::AssertionResult close(const Tensor& got, const Tensor& wanted, double tolerance);

/// What an operation gives: a tensor, a pair of them, or any number.
struct Results {
  std::vector<Tensor> list;

  Results(Tensor one) : list{std::move(one)} {}
  Results(std::vector<Tensor> many) : list(std::move(many)) {}
  template <class... Ts>
  Results(const std::tuple<Ts...>& many) {
    std::apply([this](const auto&... each) { (list.push_back(each), ...); }, many);
  }
  template <class A, class B>
  Results(const std::pair<A, B>& two) : list{two.first, two.second} {}
};

/// A case's inputs under the names of its Python expression; the ones it lacks are undefined.
struct Inputs {
  Tensor x, a, b, c, w, i, j, m, t, p, rm, rv;
};

/// One case: its name in the file and the same expression in C++.
struct OpCase {
  const char* name;
  Results (*run)(const Inputs& in);
  double slack = 1;  // times the family's tolerance, where the operation itself loses digits
};
#define GOLDEN(name, ...)                                         \
  {                                                               \
    name, [](const Inputs& in) -> Results { return __VA_ARGS__; } \
  }
#define GOLDEN_SLACK(name, slack, ...)                                   \
  {                                                                      \
    name, [](const Inputs& in) -> Results { return __VA_ARGS__; }, slack \
  }

/// How far from PyTorch's float64 results a family may be, run in float64 and in float32.
struct Tolerance {
  double float64, float32;
};

/// Runs all cases of a family in float64, in float32, and once more with 4-dimensional inputs channels-last;
/// compares results and gradients, and demands that table and file hold the same cases.
void check_family(const std::string& name, const std::vector<OpCase>& cases, Tolerance tolerance);

}  // namespace gradus::golden
