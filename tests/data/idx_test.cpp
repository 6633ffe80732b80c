#include <gradus/data/idx.h>
#include <gradus/data/image_data.h>
#include <zlib.h>

#include <cstdlib>

#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace gradus {
namespace {

using namespace testing;

std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string images(uint32_t n, uint32_t side = 2) {
  std::string out = big_endian(0x803) + big_endian(n) + big_endian(side) + big_endian(side);
  for (uint32_t i = 0; i < n * side * side; ++i) out += static_cast<char>(i + 1);
  return out;
}

std::string labels(const std::vector<int>& values) {
  std::string out = big_endian(0x801) + big_endian(static_cast<uint32_t>(values.size()));
  for (int value : values) out += static_cast<char>(value);
  return out;
}

std::string gzip(const std::string& plain) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(plain.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

void expect_two_images(const std::string& name, const std::string& content) {
  TempDir dir;
  const Tensor t = read_idx(dir.write(name, content), 3);
  EXPECT_EQ(t.sizes(), (Shape{2, 2, 2})) << name;
  EXPECT_EQ(std::vector<uint8_t>(t.data<uint8_t>(), t.data<uint8_t>() + 8),
            (std::vector<uint8_t>{1, 2, 3, 4, 5, 6, 7, 8}));
}

void expect_refused(const std::string& content, const std::string& code, const std::string& text) {
  TempDir dir;
  const std::string path = dir.write("f", content);
  EXPECT_GRADUS_ERROR(read_idx(path), code, text);
  EXPECT_THAT(error_of([&] { read_idx(path); }), ::testing::HasSubstr(path));
}

TEST(Idx, IDX_01_gzip_is_judged_by_content_not_by_name) {
  expect_two_images("images-without-suffix", gzip(images(2)));
  expect_two_images("plain.gz", images(2));
  expect_two_images("packed.gz", gzip(images(2)));
}

TEST(Idx, IDX_01_gzip_within_gzip) {
  expect_refused(gzip(gzip(images(2))), "E-FORMAT",
                 "gzip data within gzip data\n  hint: unpack it once with gunzip");
}

TEST(Idx, IDX_01_gzip_that_was_cut_short) {
  const std::string packed = gzip(images(2));
  expect_refused(packed.substr(0, packed.size() - 10), "E-TRUNCATED", "the gzip data is cut short");
  for (size_t n = 2; n < packed.size(); ++n)
    expect_refused(packed.substr(0, n), "E-TRUNCATED", "the gzip data is cut short");
}

TEST(Idx, IDX_01_gzip_with_a_wrong_crc) {
  std::string packed = gzip(images(2));
  packed[packed.size() - 8] ^= 1;
  expect_refused(packed, "E-FORMAT", "the gzip data is damaged: incorrect data check");
}

TEST(Idx, IDX_01_gzip_members_are_joined) {
  const std::string whole = images(2);
  expect_two_images("split", gzip(whole.substr(0, 9)) + gzip(whole.substr(9)));
  expect_two_images("padded", gzip(whole) + std::string(512, '\0'));
  expect_refused(gzip(whole) + "rest", "E-FORMAT", "the gzip data is followed by something else");
}

TEST(Idx, big_gzip_data_is_unpacked_in_pieces) {
  TempDir dir;
  std::string plain = big_endian(0x803) + big_endian(1000) + big_endian(28) + big_endian(28);
  uint32_t state = 1;
  for (int i = 0; i < 784000; ++i) plain += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  const Tensor t = read_idx(dir.write("f", gzip(plain)));
  EXPECT_EQ(std::string(reinterpret_cast<char*>(t.data<uint8_t>()), 784000), plain.substr(16));
}

TEST(Idx, IDX_03_a_web_page_saved_as_data) {
  for (const char* page : {"<?xml version='1.0'?>", "<html>", "<!DOCTYPE html>"})
    expect_refused(page, "E-FORMAT", "not an IDX file; it looks like a web page");
  expect_refused(gzip("<html><body>403</body></html>"), "E-FORMAT", "looks like a web page");
}

TEST(Idx, IDX_03_giant_counts_are_refused_before_any_allocation) {
  const int64_t before = memory_stats().max_reserved;
  expect_refused(
      big_endian(0x803) + big_endian(0xffffffff) + big_endian(28) + big_endian(28), "E-TRUNCATED",
      "IDX data of shape [4294967295, 28, 28] needs 3367254359280 bytes, but the file has 0 left of its 16");
  expect_refused(big_endian(0x803) + big_endian(65536) + big_endian(65536) + big_endian(65536), "E-TRUNCATED",
                 "needs 281474976710656 bytes");
  expect_refused(big_endian(0x803) + big_endian(0xffffffff) + big_endian(0xffffffff) + big_endian(0xffffffff),
                 "E-SHAPE", "overflows");
  expect_refused(gzip(big_endian(0x803) + big_endian(65536) + big_endian(65536) + big_endian(65536)),
                 "E-TRUNCATED", "bytes of gzip data can hold");
  EXPECT_EQ(memory_stats().max_reserved, before);
}

TEST(Idx, files_that_are_no_idx_of_bytes_are_refused) {
  expect_refused("", "E-TRUNCATED", "the IDX magic number needs 4 bytes, found 0");
  expect_refused(images(2).substr(0, 10), "E-TRUNCATED", "size 1 in the IDX header needs 4 bytes, found 2");
  expect_refused(images(2).substr(0, 23), "E-TRUNCATED", "needs 8 bytes, but the file has 7 left of its 23");
  expect_refused(gzip(images(2).substr(0, 23)), "E-TRUNCATED", "needs 8 bytes, found 7");
  expect_refused(images(2) + "x", "E-FORMAT", "needs 8 bytes, but more follow");
  expect_refused(gzip(images(2) + "x"), "E-FORMAT", "needs 8 bytes, but more follow");
  expect_refused(
      "\x7f"
      "ELF....",
      "E-FORMAT", "not an IDX file: magic number 2135247942");
  expect_refused(big_endian(0xd03) + big_endian(1), "E-FORMAT", "IDX element type 13 is not supported");
  expect_refused(big_endian(0x800), "E-FORMAT", "0 dimensions, expected 1 to 8");
  expect_refused(big_endian(0x809), "E-FORMAT", "9 dimensions, expected 1 to 8");
}

TEST(Idx, any_rank_and_no_elements) {
  TempDir dir;
  EXPECT_EQ(read_idx(dir.write("a", labels({1, 2, 3}))).sizes(), Shape{3});
  EXPECT_EQ(read_idx(dir.write("b", images(0))).sizes(), (Shape{0, 2, 2}));
  EXPECT_EQ(read_idx(dir.write("c", big_endian(0x802) + big_endian(1) + big_endian(2) + "ab")).sizes(),
            (Shape{1, 2}));
}

ImageSet read_pair(const TempDir& dir, const std::string& images, const std::string& labels) {
  return read_image_set(dir.write("images", images), dir.write("labels", labels));
}

TEST(Idx, IDX_05_counts_that_differ) {
  TempDir dir;
  EXPECT_GRADUS_ERROR(read_pair(dir, images(3), labels({1, 2})), "E-DATA", "3 vs 2");
  EXPECT_GRADUS_ERROR(read_pair(dir, images(2), labels({1, 2, 3})), "E-DATA", "2 vs 3");
}

TEST(Idx, IDX_05_labels_out_of_range) {
  TempDir dir;
  EXPECT_GRADUS_ERROR(read_pair(dir, images(2), labels({7, 28})), "E-DATA",
                      dir.path("labels") + ": label 28 at index 1 is out of range; expected 0 to 9");
  EXPECT_GRADUS_ERROR(read_pair(dir, images(2), labels({7, 255})), "E-DATA", "label 255 at index 1");
  EXPECT_EQ(read_image_set(dir.write("i", images(2)), dir.write("l", labels({7, 28})), 29).size(), 2);
}

TEST(Idx, IDX_05_the_images_given_twice) {
  TempDir dir;
  EXPECT_GRADUS_ERROR(read_pair(dir, images(2), images(2)), "E-FORMAT",
                      dir.path("labels") + ": magic number 2051 where 2049 (labels) is wanted");
  EXPECT_GRADUS_ERROR(read_pair(dir, labels({1}), labels({1})), "E-FORMAT",
                      "magic number 2049 where 2051 (images) is wanted");
}

TEST(ImageData, a_good_pair) {
  TempDir dir;
  const ImageSet set = read_pair(dir, gzip(images(2)), labels({7, 0}));
  EXPECT_EQ(set.images.sizes(), (Shape{2, 1, 2, 2}));
  EXPECT_EQ(set.labels.dtype(), kInt64);
  EXPECT_EQ(set.labels.data<int64_t>()[0], 7);
  EXPECT_EQ(set.labels.data<int64_t>()[1], 0);
}

TEST(ImageData, finds_the_four_files_with_or_without_suffix) {
  TempDir dir;
  dir.write("train-images-idx3-ubyte", images(3));
  dir.write("train-labels-idx1-ubyte.gz", gzip(labels({1, 2, 3})));
  dir.write("t10k-images.idx3-ubyte", images(1));
  EXPECT_GRADUS_ERROR(
      load_image_data(dir.path()), "E-DATA",
      dir.path() + ": has no t10k-labels-idx1-ubyte or t10k-labels-idx1-ubyte.gz\n  hint: --data");
  dir.write("t10k-labels-idx1-ubyte", labels({4}));
  const ImageData data = load_image_data(dir.path());
  EXPECT_EQ(data.train.size(), 3);
  EXPECT_EQ(data.test.size(), 1);
  EXPECT_GRADUS_ERROR(load_image_data(dir.path("none")), "E-DATA", dir.path("none") + ": is not a directory");
  const std::string too_long(5000, 'a');  // the system refuses to look
  EXPECT_GRADUS_ERROR(load_image_data(too_long), "E-DATA", too_long + ": is not a directory");
}

TEST(ImageData, the_environment_names_the_directory) {
  TempDir dir;
  ::setenv("GRADUS_DATA", dir.path("mine").c_str(), 1);
  EXPECT_EQ(find_image_data(), dir.path("mine"));
  EXPECT_GRADUS_ERROR(load_image_data(), "E-DATA", dir.path("mine"));
  ::unsetenv("GRADUS_DATA");
}

TEST(ImageData, fashion_mnist_where_it_is_installed) {
  std::string directory;
  const std::string error = error_of([&] { directory = find_image_data(); });
  if (directory.empty()) {
    EXPECT_THAT(error, ::testing::AllOf(::testing::HasSubstr("E-DATA"),
                                        ::testing::HasSubstr("sudo apt install dataset-fashion-mnist")));
    GTEST_SKIP() << "Fashion-MNIST is not installed";
  }
  const ImageData data = load_image_data(directory);
  EXPECT_EQ(data.train.images.sizes(), (Shape{60000, 1, 28, 28}));
  EXPECT_EQ(data.test.images.sizes(), (Shape{10000, 1, 28, 28}));
  std::vector<int> counts(10);
  for (int64_t i = 0; i < 60000; ++i) ++counts[static_cast<size_t>(data.train.labels.data<int64_t>()[i])];
  EXPECT_EQ(counts, std::vector<int>(10, 6000));
  double sum = 0;
  for (int64_t i = 0; i < data.train.images.numel(); ++i) sum += data.train.images.data<uint8_t>()[i];
  EXPECT_NEAR(sum / 255 / static_cast<double>(data.train.images.numel()), 0.2860, 0.0001)
      << "the published mean";
}

}  // namespace
}  // namespace gradus
