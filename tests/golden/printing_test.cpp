// Tensors print as PyTorch prints them, character by character.
#include "golden.h"

namespace gradus::golden {
namespace {

TEST(GoldenPrinting, as_pytorch) {
  const File& vectors = file("printing");
  ASSERT_GE(vectors.tensors.size(), 40u);
  for (const auto& [name, tensor] : vectors.tensors) {
    if (name == "requires_grad") continue;
    EXPECT_EQ(to_string(tensor), vectors.metadata.at(name)) << name;
  }
}

TEST(GoldenPrinting, a_transposed_tensor_prints_its_logical_order) {
  const File& vectors = file("printing");
  const Tensor copy = vectors.at("matrix").t().contiguous().t();
  EXPECT_FALSE(copy.is_contiguous());
  EXPECT_EQ(to_string(copy), vectors.metadata.at("matrix"));
}

TEST(GoldenPrinting, requires_grad_is_shown) {
  const File& vectors = file("printing");
  Tensor leaf = vectors.at("requires_grad").clone();
  leaf.requires_grad_();
  EXPECT_EQ(to_string(leaf), vectors.metadata.at("requires_grad"));
}

}  // namespace
}  // namespace gradus::golden
