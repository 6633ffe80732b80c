#include <gradus/base/log.h>
#include <gradus/io/io.h>
#include <gradus/nn/nn.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/random.h>

#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace gradus::nn {
namespace {

using ::gradus::testing::error_of;
using ::testing::ElementsAre;

std::vector<float> all_values(const Module& module) {
  std::vector<float> values;
  for (const auto& [name, tensor] : module.state_dict())
    for (float v : tensor.to_vector<float>()) values.push_back(v);
  return values;
}

TEST(StateDict, shares_memory_and_has_no_history) {
  Linear layer(2, 1);
  const StateDict state = layer->state_dict();
  ASSERT_EQ(state.size(), 2u);
  EXPECT_FALSE(state.at("weight").requires_grad());
  EXPECT_TRUE(state.at("weight").is_alias_of(layer->weight));
}

TEST(StateDict, a_saved_model_comes_back_from_a_file) {
  const ::gradus::testing::TempDir dir;
  Sequential saved(Linear(3, 4), BatchNorm1d(4), Linear(4, 2)),
      loaded(Linear(3, 4), BatchNorm1d(4), Linear(4, 2));
  saved(randn({5, 3}));  // moves the running statistics
  save_safetensors(dir.path("model.safetensors"), saved->state_dict());
  const auto keys = loaded->load_state_dict(load_safetensors(dir.path("model.safetensors")).tensors);
  EXPECT_TRUE(keys.missing.empty() && keys.unexpected.empty());
  EXPECT_EQ(all_values(*loaded), all_values(*saved));
  EXPECT_EQ(loaded->state_dict().at("1.num_batches_tracked").item<int64_t>(), 1);
}

TEST(StateDict, everything_that_does_not_fit_is_named_and_nothing_is_changed) {
  Sequential net(Linear(3, 2), Linear(2, 2));
  const auto before = all_values(*net);
  const StateDict state{{"0.weight", ones({2, 4})},
                        {"0.bias", ones({2})},
                        {"1.weight", ones({2, 2})},
                        {"1.gain", ones({1})},
                        {"extra", ones({1})}};
  EXPECT_EQ(error_of([&] { net->load_state_dict(state); }),
            "E-STATE-DICT: load_state_dict: the saved state does not fit Sequential:\n"
            "  size mismatch for 0.weight: the saved shape is [2, 4], the model's is [2, 3].\n"
            "  missing key(s): \"1.bias\".\n"
            "  unexpected key(s): \"1.gain\", \"extra\".\n"
            "  hint: load it into the model it was saved from, or pass strict=false to take what matches");
  EXPECT_EQ(all_values(*net), before);
  EXPECT_GRADUS_ERROR(net->load_state_dict(state, false), "E-STATE-DICT", "size mismatch for 0.weight");
  EXPECT_EQ(all_values(*net), before);
}

TEST(StateDict, a_lenient_load_takes_what_matches_and_tells_the_rest) {
  Sequential net(Linear(1, 1));
  const auto keys = net->load_state_dict({{"0.weight", full({1, 1}, 7.0)}, {"old", ones({1})}}, false);
  EXPECT_THAT(keys.missing, ElementsAre("0.bias"));
  EXPECT_THAT(keys.unexpected, ElementsAre("old"));
  EXPECT_EQ(net->state_dict().at("0.weight").item<float>(), 7);
}

TEST(StateDict, a_lenient_load_that_matches_nothing_warns) {
  std::vector<std::string> warnings;
  const auto before = set_warning_handler([&](const std::string& text) { warnings.push_back(text); });
  Linear layer(1, 1);
  layer->load_state_dict({{"module.weight", ones({1, 1})}}, false);
  set_warning_handler(before);
  EXPECT_THAT(warnings,
              ElementsAre("load_state_dict: none of the 1 saved names is in the model; nothing was loaded"));
}

TEST(StateDict, values_are_converted_to_the_models_dtype) {
  Linear wide(2, 1), half(2, 1);
  half->to(kBFloat16);
  half->load_state_dict(wide->state_dict());
  EXPECT_EQ(half->weight.dtype(), kBFloat16);
  EXPECT_EQ(half->weight.to_vector<float>(), wide->weight.detach().to(kBFloat16).to_vector<float>());
  EXPECT_TRUE(half->weight.requires_grad());
}

}  // namespace
}  // namespace gradus::nn
