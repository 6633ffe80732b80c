#include "golden.h"

#include <gradus/io/safetensors.h>

#include <cmath>
#include <set>

namespace gradus::golden {

namespace {

using Fields = std::vector<std::pair<const char*, Tensor Inputs::*>>;
const Fields kFields = {{"x", &Inputs::x}, {"a", &Inputs::a}, {"b", &Inputs::b},   {"c", &Inputs::c},
                        {"w", &Inputs::w}, {"i", &Inputs::i}, {"j", &Inputs::j},   {"m", &Inputs::m},
                        {"t", &Inputs::t}, {"p", &Inputs::p}, {"rm", &Inputs::rm}, {"rv", &Inputs::rv}};

bool same(double got, double wanted, double tolerance) {
  if (std::isnan(wanted)) return std::isnan(got);
  if (std::isinf(wanted)) return got == wanted;
  return std::abs(got - wanted) <= tolerance * std::max(1.0, std::abs(wanted));
}

template <class T>
::testing::AssertionResult close_as(const Tensor& got, const Tensor& wanted, double tolerance) {
  const std::vector<T> a = got.to_vector<T>(), b = wanted.to_vector<T>();
  for (size_t k = 0; k < b.size(); ++k) {
    const bool good = std::is_same_v<T, int64_t>
                          ? a[k] == b[k]
                          : same(static_cast<double>(a[k]), static_cast<double>(b[k]), tolerance);
    if (!good)
      return ::testing::AssertionFailure() << "element " << k << " of " << b.size() << " is " << a[k]
                                           << ", PyTorch has " << b[k] << " (tolerance " << tolerance << ")";
  }
  return ::testing::AssertionSuccess();
}

enum class Layout { as_is, channels_last };

// A fresh leaf with the file's values, so that runs cannot disturb each other.
Tensor make_input(const Tensor& stored, DType dtype, Layout layout, bool wants_grad) {
  Tensor input = stored.is_floating_point() ? stored.to(dtype).clone() : stored.clone();
  if (layout == Layout::channels_last && input.dim() == 4)
    input = input.contiguous(MemoryFormat::channels_last);
  if (wants_grad) input.requires_grad_();
  return input;
}

struct Run {
  const File& file;
  const OpCase& op;
  DType dtype;
  Layout layout;
  double tolerance;

  std::string key(const std::string& rest) const { return std::string(op.name) + "/" + rest; }
  void check() const;
  Inputs make_inputs() const;
  void check_result(const Tensor& got, const std::string& number) const;
  void check_gradients(const Inputs& in, const std::vector<Tensor>& results) const;
};

Inputs Run::make_inputs() const {
  Inputs in;
  for (const auto& [name, field] : kFields)
    if (file.has(key("in/") + name))
      in.*field = make_input(file.at(key("in/") + name), dtype, layout, file.has(key("grad/") + name));
  return in;
}

void Run::check_result(const Tensor& got, const std::string& number) const {
  const Tensor& wanted = file.at(key("out/") + number);
  EXPECT_EQ(to_string(got.dtype()), to_string(wanted.is_floating_point() ? dtype : wanted.dtype()));
  EXPECT_TRUE(close(got, wanted, tolerance)) << "result " << number;
}

void Run::check_gradients(const Inputs& in, const std::vector<Tensor>& results) const {
  for (size_t k = 0; k < results.size(); ++k) {
    const std::string name = key("cot/") + std::to_string(k);
    if (file.has(name)) results[k].backward(file.at(name).to(dtype), /*retain_graph=*/true);
  }
  for (const auto& [name, field] : kFields) {
    const std::string gradient = key("grad/") + name;
    if (!file.has(gradient)) continue;
    const Tensor& got = (in.*field).grad();
    if (!got.defined())
      ADD_FAILURE() << name << " has no gradient";
    else
      EXPECT_TRUE(close(got, file.at(gradient), tolerance)) << "gradient of " << name;
  }
}

void Run::check() const {
  SCOPED_TRACE(std::string(op.name) + ": " + file.metadata.at(op.name) + " in " + to_string(dtype) +
               (layout == Layout::channels_last ? ", channels-last" : ""));
  try {
    const Inputs in = make_inputs();
    const std::vector<Tensor> results = op.run(in).list;
    for (size_t k = 0; k < results.size(); ++k) check_result(results[k], std::to_string(k));
    EXPECT_FALSE(file.has(key("out/") + std::to_string(results.size()))) << "PyTorch gives more results";
    check_gradients(in, results);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

void check_names(const File& file, const std::vector<OpCase>& cases) {
  std::set<std::string> in_table, in_file;
  for (const OpCase& op : cases) EXPECT_TRUE(in_table.insert(op.name).second) << op.name << " is there twice";
  for (const auto& [name, text] : file.metadata)
    if (name != "torch") in_file.insert(name);
  EXPECT_EQ(in_table, in_file) << "the table and the file must hold the same cases";
}

bool has_4d_input(const File& file, const std::string& name) {
  for (const auto& [field, member] : kFields) {
    const std::string key = name + "/in/" + field;
    if (file.has(key) && file.at(key).dim() == 4) return true;
  }
  return false;
}

}  // namespace

const Tensor& File::at(const std::string& name) const {
  const auto found = tensors.find(name);
  GRADUS_CHECK(found != tensors.end(), "E-KEY", "golden: no tensor '", name, "' in the file");
  return found->second;
}

const File& file(const std::string& name) {
  static std::map<std::string, File> files;
  const auto [entry, is_new] = files.try_emplace(name);
  if (is_new) {
    const SafeTensors loaded =
        load_safetensors(std::string(GRADUS_TESTS_DIR) + "/golden/data/" + name + ".safetensors");
    entry->second.tensors.insert(loaded.tensors.begin(), loaded.tensors.end());
    entry->second.metadata.insert(loaded.metadata.begin(), loaded.metadata.end());
  }
  return entry->second;
}

::testing::AssertionResult close(const Tensor& got, const Tensor& wanted, double tolerance) {
  if (!(got.sizes() == wanted.sizes()))
    return ::testing::AssertionFailure()
           << "shape " << to_string(got.sizes()) << ", PyTorch has " << to_string(wanted.sizes());
  return wanted.is_floating_point() || got.is_floating_point() ? close_as<double>(got, wanted, tolerance)
                                                               : close_as<int64_t>(got, wanted, 0);
}

void check_family(const std::string& name, const std::vector<OpCase>& cases, Tolerance tolerance) {
  const File& vectors = file(name);
  check_names(vectors, cases);
  for (const OpCase& op : cases) {
    if (!vectors.metadata.count(op.name)) continue;
    const double tight = tolerance.float64 * op.slack, loose = tolerance.float32 * op.slack;
    Run{vectors, op, kFloat64, Layout::as_is, tight}.check();
    Run{vectors, op, kFloat32, Layout::as_is, loose}.check();
    if (has_4d_input(vectors, op.name)) Run{vectors, op, kFloat32, Layout::channels_last, loose}.check();
  }
}

}  // namespace gradus::golden
