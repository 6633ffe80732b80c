#include <gradus/io/safetensors.h>
#include <gradus/tensor/views.h>

#include <cmath>
#include <numeric>

#include "io/bytes.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"
#include "support/tensors.h"

namespace gradus {
namespace {

using namespace testing;

std::string error_of_file(const std::string& content) {
  TempDir dir;
  const std::string path = dir.write("f.safetensors", content);
  return error_of([&] { load_safetensors(path); });
}

void expect_refused(const std::string& content, const std::string& code, const std::string& text) {
  EXPECT_THAT(error_of_file(content),
              ::testing::AllOf(::testing::StartsWith(code), ::testing::HasSubstr(text),
                               ::testing::HasSubstr("f.safetensors")))
      << content.substr(0, 200);
}

StateDict round_trip(const StateDict& tensors) {
  TempDir dir;
  save_safetensors(dir.path("f"), tensors);
  return load_safetensors(dir.path("f")).tensors;
}

TEST(SafeTensors, every_dtype_comes_back_to_the_bit) {
  const StateDict saved{
      {"u8", make<uint8_t>({3}, {0, 7, 255})},
      {"i32", make<int32_t>({2}, {-1, 2147483647})},
      {"i64", make<int64_t>({2}, {INT64_MIN, INT64_MAX})},
      {"bool", make<bool>({2}, {true, false})},
      {"f16", make<Half>({2}, {Half(0.5f), Half(-2.0f)})},
      {"bf16", make<BFloat16>({2}, {BFloat16(0.5f), BFloat16(-2.0f)})},
      {"f32", make<float>({2, 2}, {0.1f, -0.0f, INFINITY, NAN})},
      {"f64", make<double>({1}, {0.1})},
  };
  const StateDict loaded = round_trip(saved);
  ASSERT_EQ(loaded.size(), saved.size());
  for (auto a = saved.begin(), b = loaded.begin(); a != saved.end(); ++a, ++b) {
    EXPECT_EQ(a->first, b->first) << "the order is kept";
    EXPECT_EQ(a->second.dtype(), b->second.dtype());
    EXPECT_EQ(a->second.sizes(), b->second.sizes());
    EXPECT_EQ(bytes_of(a->second), bytes_of(b->second)) << a->first;
  }
}

TEST(SafeTensors, the_bytes_are_those_of_the_format) {
  TempDir dir;
  save_safetensors(dir.path("f"), {{"a", make<uint8_t>({3}, {1, 2, 3})}, {"b", make<int32_t>({1}, {7})}},
                   {{"k", "v\"\n"}});
  // Data: wide dtypes first, so that b is aligned; the header keeps the order given.
  std::string json = R"({"__metadata__":{"k":"v\"\n"},"a":{"dtype":"U8","shape":[3],"data_offsets":[4,7]},)"
                     R"("b":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})";
  while (json.size() % 8 != 0) json += ' ';
  EXPECT_EQ(dir.read("f"), safetensors(json, std::string("\7\0\0\0\1\2\3", 7)));
  EXPECT_EQ(load_safetensors(dir.path("f")).metadata.at("k"), "v\"\n");
}

TEST(SafeTensors, names_may_be_any_utf8) {
  const StateDict loaded =
      round_trip({{"層.\"weight\"\\/\x01", make<float>({1}, {3})}, {"", make<float>({1}, {4})}});
  EXPECT_EQ(loaded.at("層.\"weight\"\\/\x01").data<float>()[0], 3);
  EXPECT_EQ(loaded.at("").data<float>()[0], 4);
}

TEST(SafeTensors, refuses_to_write_what_could_not_be_read) {
  TempDir dir;
  const Tensor t = make<float>({1}, {1});
  EXPECT_GRADUS_ERROR(save_safetensors(dir.path("f"), {{"a", t}, {"a", t}}), "E-ARG", "'a' is there twice");
  EXPECT_GRADUS_ERROR(save_safetensors(dir.path("f"), {{"__metadata__", t}}), "E-ARG", "'__metadata__'");
  EXPECT_GRADUS_ERROR(save_safetensors(dir.path("f"), {{"\xff", t}}), "E-ARG", "UTF-8");
  EXPECT_GRADUS_ERROR(save_safetensors(dir.path("f"), {{"a", Tensor()}}), "E-ARG", "'a' is undefined");
  EXPECT_EQ(dir.file_count(), 0u);
}

TEST(SafeTensors, FMT_01_shapes_that_overflow) {
  for (const char* shape :
       {"[4294967296,4294967296]", "[4611686018427387904,4]", "[4611686018427387904,4,0]"})
    expect_refused(safetensors(entry("F32", shape, "[0,0]")), "E-SHAPE", "overflows");
  expect_refused(safetensors(entry("F64", "[2305843009213693952]", "[0,0]")), "E-SHAPE", "overflows");
  expect_refused(safetensors(entry("F32", "[-1]", "[0,0]")), "E-FORMAT", "invalid shape");
  expect_refused(safetensors(entry("F32", "[1.5]", "[0,0]")), "E-FORMAT", "invalid shape");
  expect_refused(safetensors(entry("F32", "[18446744073709551616]", "[0,0]")), "E-FORMAT", "invalid shape");
  expect_refused(safetensors(entry("F32", "[18446744073709551615]", "[0,0]")), "E-FORMAT", "overflows");
  std::string ones = "[1";
  for (int i = 1; i < 300; ++i) ones += ",1";
  expect_refused(safetensors(entry("F32", ones + "]", "[0,4]"), "1234"), "E-FORMAT",
                 "invalid shape: 300 dimensions");
}

TEST(SafeTensors, FMT_01_the_case_in_hex) {
  expect_refused(
      from_hex("4a000000000000007b2277223a7b226474797065223a22463332222c227368617065223a5b3432393439363732"
               "39362c343239343936373239365d2c22646174615f6f666673657473223a5b302c305d7d7d"),
      "E-SHAPE", "tensor 'w': shape [4294967296, 4294967296] overflows");
}

TEST(SafeTensors, FMT_03_header_lengths) {
  expect_refused("", "E-TRUNCATED", "needs 8 bytes, but the file has 0");
  expect_refused("1234567", "E-TRUNCATED", "needs 8 bytes, but the file has 7");
  expect_refused(little_endian(0, 8), "E-FORMAT", "does not start with '{'");
  expect_refused(little_endian(1, 8) + "{", "E-FORMAT", "not valid JSON");
  expect_refused(little_endian(~uint64_t{0}, 8) + "{}", "E-TRUNCATED",
                 "needs 18446744073709551615 bytes, but the file has 2");
  expect_refused(little_endian(uint64_t{1} << 63, 8) + "{}", "E-TRUNCATED",
                 "needs 9223372036854775808 bytes");
  expect_refused(little_endian(200000000, 8) + "{123456789", "E-TRUNCATED",
                 "needs 200000000 bytes, but the file has 10");
  expect_refused(little_endian(3, 8) + "{}", "E-TRUNCATED", "needs 3 bytes, but the file has 2");
  expect_refused(safetensors(" {}"), "E-FORMAT", "does not start with '{'");
  expect_refused(safetensors("{\"\xff\":1}"), "E-FORMAT", "not valid JSON");
  expect_refused(safetensors(std::string("{}\0{", 4)), "E-FORMAT", "NUL");
  TempDir dir;
  EXPECT_TRUE(load_safetensors(dir.write("a", safetensors("{}"))).tensors.empty());
  EXPECT_TRUE(load_safetensors(dir.write("b", safetensors("{}      "))).tensors.empty());
}

TEST(SafeTensors, FMT_03_a_header_beyond_the_limit) {
  TempDir dir;
  const std::string path = dir.write("big", little_endian(100000001, 8) + "{");
  ASSERT_EQ(::truncate(path.c_str(), 100000100), 0);  // a sparse file: takes no room on the disk
  EXPECT_GRADUS_ERROR(load_safetensors(path), "E-FORMAT", "more than the limit of 100000000");
}

TEST(SafeTensors, headers_of_another_form_are_refused) {
  const std::string field = R"("dtype":"F32","shape":[],"data_offsets":[0,4])";
  const std::string good = "{\"w\":{" + field + "}}";
  TempDir dir;
  ASSERT_EQ(load_safetensors(dir.write("good", safetensors(good, "1234"))).tensors.size(), 1u);
  for (const std::string& json : {
           std::string("{\"w\":1}"),
           std::string("{\"w\":[]}"),
           std::string("{\"w\":\"x\"}"),
           std::string("{\"w\":null}"),
           std::string("{\"w\":true}"),
           std::string("{\"w\":{}}"),
           std::string("{\"__metadata__\":3}"),
           std::string("{\"__metadata__\":{\"a\":1}}"),
           std::string("{\"__metadata__\":{\"a\":{}}}"),
           std::string("{\"__metadata__\":{\"a\":\"x\",\"a\":\"y\"}}"),
           "{\"w\":{" + field + "},\"w\":{" + field + "}}",
           "{\"w\":{" + field + ",\"more\":\"\"}}",
           "{\"w\":{" + field + ",\"dtype\":\"F32\"}}",
           good + "{}",
           good + ",",
           "{\"w\":{" + field + "},}",
           std::string(R"({"w":{"dtype":["F32"],"shape":[],"data_offsets":[0,4]}})"),
           std::string(R"({"w":{"dtype":3,"shape":[],"data_offsets":[0,4]}})"),
           std::string(R"({"w":{"dtype":"F32","shape":[[]],"data_offsets":[0,4]}})"),
           std::string(R"({"w":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})"),
           std::string(R"({"w":{"dtype":"F32","shape":"","data_offsets":[0,4]}})"),
           std::string(R"({"w":{"dtype":"F32","shape":[],"data_offsets":[0]}})"),
           std::string(R"({"w":{"dtype":"F32","shape":[],"data_offsets":[0,4,4]}})"),
           std::string(R"({"w":{"dtype":"F32","shape":[]}})"),
       })
    expect_refused(safetensors(json, "1234"), "E-FORMAT", "header");
}

TEST(SafeTensors, deep_json_is_refused_at_once) {
  expect_refused(safetensors("{\"w\":" + std::string(1000000, '[')), "E-FORMAT", "a list where none belongs");
  std::string nested = "{\"w\":";
  for (int i = 0; i < 100000; ++i) nested += "{\"dtype\":";
  expect_refused(safetensors(nested), "E-FORMAT", "an object where none belongs");
}

TEST(SafeTensors, unknown_dtypes_are_named) {
  for (const char* dtype : {"F8_E4M3", "I8", "C64", "f32", ""})
    expect_refused(safetensors(entry(dtype, "[]", "[0,4]"), "1234"), "E-FORMAT",
                   "tensor 'w': dtype '" + std::string(dtype) + "' is not one of U8, I32, I64, BOOL");
}

TEST(SafeTensors, offsets_must_fit_the_shape_and_cover_the_data_once) {
  const auto two = [](const char* a, const char* b) {
    return std::string(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)") + a +
           R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":)" + b + "}}";
  };
  expect_refused(safetensors(entry("F32", "[2]", "[0,4]"), "1234"), "E-FORMAT",
                 "tensor 'w': float32 of shape [2] needs 8 bytes, but data_offsets are 0 to 4");
  expect_refused(safetensors(entry("F32", "[1]", "[4,0]"), "1234"), "E-FORMAT", "data_offsets are 4 to 0");
  expect_refused(safetensors(two("[0,4]", "[0,4]"), "1234"), "E-FORMAT", "overlaps");
  expect_refused(safetensors(two("[0,4]", "[2,6]"), "123456"), "E-FORMAT",
                 "tensor 'b' starts at byte 2 and overlaps the one before, which ends at 4");
  expect_refused(safetensors(two("[0,4]", "[8,12]"), "123456789012"), "E-FORMAT",
                 "bytes 4 to 8 before tensor 'b' belong to no tensor");
  expect_refused(safetensors(entry("F32", "[1]", "[0,4]"), "12345"), "E-FORMAT",
                 "need 4 bytes behind the header, but the file has 5");
  TempDir dir;
  EXPECT_EQ(load_safetensors(
                dir.write("swapped", safetensors(two("[4,8]", "[0,4]"), std::string("\0\0\0\0\0\0\x80?", 8))))
                .tensors.at("a")
                .data<float>()[0],
            1.0f);
}

TEST(SafeTensors, a_bool_that_is_neither_0_nor_1_is_refused) {
  expect_refused(safetensors(entry("BOOL", "[3]", "[0,3]"), std::string("\1\0\2", 3)), "E-FORMAT",
                 "bool tensor 'w' holds 2 at element 2");
}

TEST(SafeTensors, FMT_05_tensors_that_are_not_contiguous) {
  const Tensor square = make<float>({2, 2}, {1, 2, 3, 4}), ten = iota(10), five = make<float>({1}, {5});
  const StateDict loaded = round_trip({{"t", square.transpose(0, 1)},
                                       {"step", ten.slice(0, 0, 10, 2)},
                                       {"row", square.slice(0, 1, 2)},
                                       {"expanded", five.expand({3})},
                                       {"offset", ten.narrow(0, 3, 4)},
                                       {"shared1", square},
                                       {"shared2", square}});
  EXPECT_EQ(loaded.at("t").to_vector<float>(), (std::vector<float>{1, 3, 2, 4}));
  EXPECT_EQ(loaded.at("step").to_vector<float>(), (std::vector<float>{0, 2, 4, 6, 8}));
  EXPECT_EQ(loaded.at("row").sizes(), (Shape{1, 2}));
  EXPECT_EQ(loaded.at("row").to_vector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(loaded.at("expanded").to_vector<float>(), (std::vector<float>{5, 5, 5}));
  EXPECT_EQ(loaded.at("offset").to_vector<float>(), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(loaded.at("shared2").to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_FALSE(loaded.at("shared1").is_alias_of(loaded.at("shared2")));
}

TEST(SafeTensors, a_parameter_can_be_saved_as_it_is) {
  Tensor weight = make<float>({2}, {1, 2});
  weight.requires_grad_();
  const StateDict loaded = round_trip({{"w", weight.slice(0, 0, 2, 1)}});
  EXPECT_FALSE(loaded.at("w").requires_grad());
  EXPECT_EQ(loaded.at("w").to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST(SafeTensors, FMT_07_zero_sizes_and_no_dimensions) {
  TempDir dir;
  const std::string hex =
      "6c000000000000007b2265223a7b226474797065223a22463332222c227368617065223a5b302c335d2c22646174615f6f6666"
      "736574"
      "73223a5b302c305d7d2c2273223a7b226474797065223a22463332222c227368617065223a5b5d2c22646174615f6f66667365"
      "747322"
      "3a5b302c345d7d7d0000e040";
  const StateDict loaded = load_safetensors(dir.write("f", from_hex(hex))).tensors;
  EXPECT_EQ(loaded.at("e").sizes(), (Shape{0, 3}));
  EXPECT_EQ(loaded.at("s").sizes(), Shape{});
  EXPECT_EQ(loaded.at("s").data<float>()[0], 7.0f);
  for (const Shape& sizes : {Shape{}, Shape{0}, Shape{0, 3}, Shape{3, 0, 2}, Shape{1}})
    EXPECT_EQ(round_trip({{"t", empty(sizes, kFloat32)}}).at("t").sizes(), sizes) << to_string(sizes);
}

TEST(SafeTensors, FMT_09_a_file_that_was_cut_short) {
  const std::string whole = safetensors(entry("F32", "[3]", "[0,12]"), "123456789012");
  for (size_t cut : {1, 2, 12})
    expect_refused(whole.substr(0, whole.size() - cut), "E-TRUNCATED",
                   "need 12 bytes behind the header, the file has " + std::to_string(12 - cut));
}

TEST(SafeTensors, FMT_09_other_things_in_place_of_the_file) {
  expect_refused("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "E-FORMAT",
                 "not a safetensors file but a Git LFS pointer");
  expect_refused("<!DOCTYPE html><html></html>", "E-FORMAT", "looks like a web page");
  TempDir dir;
  EXPECT_GRADUS_ERROR(load_safetensors(dir.path()), "E-FILE", "is a directory");
  EXPECT_GRADUS_ERROR(load_safetensors(dir.path("none")), "E-FILE", "No such file");
}

TEST(SafeTensors, every_cut_and_every_flipped_byte_is_an_error_or_a_good_file) {
  TempDir dir;
  save_safetensors(dir.path("f"), {{"a", make<float>({2}, {1, 2})}, {"b", make<bool>({1}, {true})}},
                   {{"k", "v"}});
  const std::string whole = dir.read("f");
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NE(error_of_file(whole.substr(0, i)), "") << "cut at " << i;
    for (int bit : {0, 5}) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ 1 << bit);
      error_of_file(flipped);  // must neither crash nor throw anything but Error
    }
  }
}

}  // namespace
}  // namespace gradus
