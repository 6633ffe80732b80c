#include <gradus/base/file.h>
#include <gradus/io/checkpoint.h>
#include <gradus/io/safetensors.h>

#include <cmath>
#include <limits>

#include "support/expect_error.h"
#include "support/temp_dir.h"
#include "support/tensors.h"

namespace gradus {
namespace {

using namespace testing;

Checkpoint example() {
  Checkpoint c;
  c["model"].tensors = {{"fc.weight", make<float>({2, 1}, {0.1f, -3})}, {"fc.bias", make<float>({1}, {2})}};
  c["optimizer"].tensors = {{"0/exp_avg", make<float>({2}, {1e-20f, 1})}};
  c["optimizer"].values = {{"step", int64_t{4}}, {"lr", 0.1}, {"name", std::string("Adam")}};
  c["scheduler"].values = {{"last_epoch", int64_t{4}}};
  c["scaler"];
  return c;
}

// A file that says of itself that it is whole, whatever is in it: its checksum is taken from the refusal of a
// first attempt.
void save_sealed(const std::string& path, const StateDict& tensors, Metadata metadata) {
  metadata["gradus.checkpoint"] = "2";
  save_safetensors(path, tensors, metadata);
  const std::string refusal = error_of([&] { load_checkpoint(path); });
  const size_t at = refusal.find("and is ") + 7;
  metadata["gradus.crc32"] = refusal.substr(at, 8);
  save_safetensors(path, tensors, metadata);
}

TEST(Checkpoint, MOD_05_every_part_comes_back_to_the_bit) {
  TempDir dir;
  save_checkpoint(dir.path("c"), example());
  const Checkpoint c = load_checkpoint(dir.path("c"));
  EXPECT_EQ(c.parts().size(), 4u);
  EXPECT_EQ(bytes_of(c.at("model").tensors.at("fc.weight")), bytes_of(make<float>({2, 1}, {0.1f, -3})));
  EXPECT_EQ(c.at("model").tensors.begin()->first, "fc.weight") << "the order is kept";
  EXPECT_EQ(bytes_of(c.at("optimizer").tensors.at("0/exp_avg")), bytes_of(make<float>({2}, {1e-20f, 1})));
  EXPECT_EQ(c.at("optimizer").get_int("step"), 4);
  EXPECT_EQ(c.at("optimizer").get_double("lr"), 0.1);
  EXPECT_EQ(c.at("optimizer").get_string("name"), "Adam");
  EXPECT_EQ(c.at("scheduler").get_int("last_epoch"), 4);
  EXPECT_TRUE(c.contains("scaler")) << "a part may be empty";
}

TEST(Checkpoint, MOD_05_a_missing_part_is_named) {
  TempDir dir;
  Checkpoint c = example();
  save_checkpoint(dir.path("c"), c);
  const Checkpoint loaded = load_checkpoint(dir.path("c"));
  EXPECT_GRADUS_ERROR(loaded.at("rng"), "E-CHECKPOINT",
                      dir.path("c") + ": has no part 'rng'; it has model, optimizer, scaler, scheduler");
  EXPECT_FALSE(loaded.contains("rng"));
}

TEST(Checkpoint, numbers_and_texts_are_exact) {
  const double doubles[] = {
      0.1, 1.0 / 3, -0.0, 1e308 * 10, -1e308 * 10, 5e-324, std::numeric_limits<double>::max()};
  Checkpoint c;
  CheckpointPart& part = c["p"];
  for (size_t i = 0; i < std::size(doubles); ++i) part.values[std::to_string(i)] = doubles[i];
  part.values["nan"] = NAN;
  part.values["min"] = INT64_MIN;
  part.values["text"] = std::string("two words\n\"é\" / int 3");
  part.values["empty"] = std::string();
  TempDir dir;
  save_checkpoint(dir.path("c"), c);
  const Checkpoint file = load_checkpoint(dir.path("c"));
  const CheckpointPart& back = file.at("p");
  for (size_t i = 0; i < std::size(doubles); ++i) {
    EXPECT_EQ(back.get_double(std::to_string(i)), doubles[i]);
    EXPECT_EQ(std::signbit(back.get_double(std::to_string(i))), std::signbit(doubles[i]));
  }
  EXPECT_TRUE(std::isnan(back.get_double("nan")));
  EXPECT_EQ(back.get_int("min"), INT64_MIN);
  EXPECT_EQ(back.get_string("text"), "two words\n\"é\" / int 3");
  EXPECT_EQ(back.get_string("empty"), "");
}

TEST(Checkpoint, a_value_that_is_missing_or_of_another_kind_is_named) {
  const Checkpoint c = example();
  EXPECT_GRADUS_ERROR(c.at("optimizer").get_int("epoch"), "E-CHECKPOINT", "no value is named 'epoch'");
  EXPECT_GRADUS_ERROR(c.at("optimizer").get_int("lr"), "E-CHECKPOINT", "the value 'lr' is not of kind int");
}

TEST(Checkpoint, another_file_is_recognised) {
  TempDir dir;
  save_safetensors(dir.path("w"), {{"a", make<float>({1}, {1})}});
  EXPECT_GRADUS_ERROR(load_checkpoint(dir.path("w")), "E-CHECKPOINT",
                      "is a safetensors file, but not a checkpoint");
  save_safetensors(dir.path("v"), {}, {{"gradus.checkpoint", "3"}});
  EXPECT_GRADUS_ERROR(load_checkpoint(dir.path("v")), "E-CHECKPOINT",
                      "version 3, this program reads version 2");
  for (const char* text : {"int x", "int 1 ", "double", "bool 1", ""}) {
    save_sealed(dir.path("b"), {}, {{"p/k", text}});
    EXPECT_GRADUS_ERROR(load_checkpoint(dir.path("b")), "E-CHECKPOINT", dir.path("b"));
  }
  save_sealed(dir.path("n"), {{"a", make<float>({1}, {1})}}, {});
  EXPECT_GRADUS_ERROR(load_checkpoint(dir.path("n")), "E-CHECKPOINT", "'a' does not say which part");
}

TEST(Checkpoint, a_file_from_before_the_checksum_is_refused_and_why) {
  TempDir dir;
  save_safetensors(dir.path("old"), {}, {{"gradus.checkpoint", "1"}});
  EXPECT_EQ(error_of([&] { load_checkpoint(dir.path("old")); }),
            "E-CHECKPOINT: " + dir.path("old") +
                ": is a checkpoint of version 1, this program reads version 2\n  hint: version 1 had no "
                "checksum; go "
                "on with the program that wrote it, or start anew");
}

// Wherever the byte lies: in the length, the header or a tensor.
TEST(Checkpoint, any_flipped_byte_is_noticed_and_the_file_named) {
  TempDir dir;
  save_checkpoint(dir.path("c"), example());
  const std::string whole = read_file(dir.path("c"));
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ 1);
    write_atomically(dir.path("f"), [&](OutputFile& file) { file.write(bytes); });
    EXPECT_THAT(error_of([&] { load_checkpoint(dir.path("f")); }), ::testing::HasSubstr(dir.path("f")))
        << "byte " << i << ", '" << whole[i] << "'";
  }
  std::string bytes = whole;
  bytes.back() = static_cast<char>(bytes.back() ^ 64);  // of a tensor
  write_atomically(dir.path("f"), [&](OutputFile& file) { file.write(bytes); });
  EXPECT_GRADUS_ERROR(load_checkpoint(dir.path("f")), "E-CHECKSUM",
                      dir.path("f") + ": is damaged: its checksum was ");
}

TEST(Checkpoint, names_that_cannot_be_stored_are_refused) {
  TempDir dir;
  for (const char* name : {"", "a/b"}) {
    Checkpoint c;
    c[name];
    EXPECT_GRADUS_ERROR(save_checkpoint(dir.path("c"), c), "E-ARG", "cannot name a part");
  }
  EXPECT_EQ(dir.file_count(), 0u);
}

TEST(Checkpoint, a_full_disk_is_named) {
  EXPECT_GRADUS_ERROR(save_checkpoint("/dev/full", example()), "E-FILE",
                      "/dev/full: cannot write: No space left");
}

}  // namespace
}  // namespace gradus
