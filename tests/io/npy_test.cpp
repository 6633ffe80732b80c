#include <gradus/io/npy.h>

#include <cmath>

#include "io/bytes.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"
#include "support/tensors.h"

namespace gradus {
namespace {

using namespace testing;

const std::string kDict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

std::string six_floats() {
  const float values[] = {0, 1, 2, 3, 4, 5};
  return raw_bytes(values, sizeof values);
}

Tensor load(const std::string& content) {
  TempDir dir;
  return load_npy(dir.write("f.npy", content));
}

void expect_refused(const std::string& content, const std::string& code, const std::string& text) {
  EXPECT_THAT(error_of([&] { load(content); }),
              ::testing::AllOf(::testing::StartsWith(code), ::testing::HasSubstr(text),
                               ::testing::HasSubstr("f.npy")))
      << content.substr(0, 200);
}

void expect_six_floats(const std::string& content) {
  const Tensor t = load(content);
  EXPECT_EQ(t.dtype(), kFloat32);
  EXPECT_EQ(t.sizes(), (Shape{2, 3}));
  EXPECT_EQ(bytes_of(t), six_floats());
}

TEST(Npy, the_bytes_are_those_that_numpy_writes) {
  TempDir dir;
  save_npy(dir.path("f"), make<float>({2, 3}, {0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(dir.read("f"), npy(1, kDict, six_floats()));
  EXPECT_EQ(dir.read("f").size(), 152u);
  save_npy(dir.path("g"), make<uint8_t>({2}, {1, 2}));
  EXPECT_EQ(dir.read("g"), npy(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }", "\1\2"));
}

TEST(Npy, every_dtype_but_bfloat16_comes_back_to_the_bit) {
  TempDir dir;
  for (const Tensor& t :
       {make<uint8_t>({2}, {0, 255}), make<int32_t>({2}, {-1, 2}), make<int64_t>({1}, {INT64_MIN}),
        make<bool>({2}, {true, false}), make<Half>({1}, {Half(0.5f)}), make<float>({2}, {-0.0f, NAN}),
        make<double>({1}, {0.1})}) {
    save_npy(dir.path("f"), t);
    const Tensor back = load_npy(dir.path("f"));
    EXPECT_EQ(back.dtype(), t.dtype());
    EXPECT_EQ(bytes_of(back), bytes_of(t)) << to_string(t.dtype());
  }
  EXPECT_GRADUS_ERROR(save_npy(dir.path("g"), make<BFloat16>({1}, {BFloat16(1.0f)})), "E-DTYPE",
                      "NumPy has no dtype for bfloat16\n  hint: convert it with .to(kFloat32)");
  EXPECT_FALSE(std::filesystem::exists(dir.path("g")));
}

TEST(Npy, a_tensor_that_requires_grad_is_refused_with_pytorchs_words) {
  TempDir dir;
  Tensor t = make<float>({1}, {1});
  t.requires_grad_();
  EXPECT_GRADUS_ERROR(save_npy(dir.path("f"), t), "E-REQUIRES-GRAD",
                      "Can't call numpy() on Tensor that requires grad\n  hint: Use tensor.detach() first");
  save_npy(dir.path("f"), t.detach());
  EXPECT_EQ(load_npy(dir.path("f")).data<float>()[0], 1);
}

TEST(Npy, a_tensor_off_the_host_is_refused_with_pytorchs_words) {
  TempDir dir;
  EXPECT_GRADUS_ERROR(save_npy(dir.path("f"), elsewhere()), "E-DEVICE",
                      "can't convert sim:0 device type tensor to numpy\n  hint: Use Tensor.cpu() to copy the "
                      "tensor to host memory first");
}

TEST(Npy, fortran_order_is_brought_into_row_major_order) {
  const std::string dict = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }";
  const Tensor t = load(npy(1, dict, six_floats()));
  EXPECT_EQ(t.sizes(), (Shape{2, 3}));
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_EQ(std::vector<float>(t.data<float>(), t.data<float>() + 6), (std::vector<float>{0, 2, 4, 1, 3, 5}));
}

TEST(Npy, FMT_05_tensors_that_are_not_contiguous) {
  TempDir dir;
  const auto saved = [&](const Tensor& t) {
    save_npy(dir.path("f"), t);
    const Tensor back = load_npy(dir.path("f"));
    return std::vector<float>(back.data<float>(), back.data<float>() + back.numel());
  };
  const Tensor square = make<float>({2, 2}, {1, 2, 3, 4}), ten = iota(10), five = make<float>({1}, {5});
  EXPECT_EQ(saved(square.transpose(0, 1)), (std::vector<float>{1, 3, 2, 4}));
  EXPECT_EQ(saved(ten.slice(0, 0, 10, 2)), (std::vector<float>{0, 2, 4, 6, 8}));
  EXPECT_EQ(saved(square.slice(0, 1, 2)), (std::vector<float>{3, 4}));
  EXPECT_EQ(saved(five.expand({3})), (std::vector<float>{5, 5, 5}));
  EXPECT_EQ(dir.read("f").size(), 128u + 12u);
  EXPECT_EQ(saved(ten.narrow(0, 3, 4)), (std::vector<float>{3, 4, 5, 6}));
}

TEST(Npy, FMT_07_zero_sizes_and_no_dimensions) {
  TempDir dir;
  for (const Shape& sizes : {Shape{}, Shape{0}, Shape{0, 3}, Shape{3, 0, 2}, Shape{1}}) {
    save_npy(dir.path("f"), empty(sizes, kFloat32));
    EXPECT_EQ(load_npy(dir.path("f")).sizes(), sizes) << to_string(sizes);
  }
  save_npy(dir.path("f"), empty({0, 3}, kFloat32));
  EXPECT_EQ(dir.read("f"), npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }"));
  EXPECT_EQ(dir.read("f").size(), 128u);
  save_npy(dir.path("f"), make<float>({}, {7}));
  EXPECT_THAT(dir.read("f"), ::testing::HasSubstr("'shape': (), }"));
}

TEST(Npy, FMT_09_a_file_that_was_cut_short) {
  const std::string whole = npy(1, kDict, six_floats());
  expect_refused(whole.substr(0, 3), "E-TRUNCATED", "need 8 bytes, found 3");
  expect_refused(whole.substr(0, 9), "E-TRUNCATED",
                 "the length of the npy header needs 2 bytes, but the file has 1");
  expect_refused(whole.substr(0, 60), "E-TRUNCATED", "the npy header needs 118 bytes, but the file has 50");
  expect_refused(whole.substr(0, whole.size() - 1), "E-TRUNCATED",
                 "float32 and shape [2, 3] needs 24 bytes, but the file has 23");
  expect_refused(whole + "x", "E-FORMAT", "needs 24 bytes, but 25 follow the header");
  expect_refused("version https://git-lfs.github.com/spec/v1\n", "E-FORMAT", "not an npy file");
  expect_refused("PK\3\4 an archive", "E-FORMAT", "looks like an .npz archive");
}

TEST(Npy, FMT_11_versions_1_to_3) {
  for (int version : {1, 2, 3}) {
    const std::string content = npy(version, kDict, six_floats());
    EXPECT_EQ(content.size(), 152u);
    expect_six_floats(content);
  }
  EXPECT_EQ(npy(2, kDict).substr(0, 12), from_hex("934e554d5059020074000000")) << "as numpy 1.24 writes it";
  expect_refused(npy(4, kDict, six_floats()), "E-FORMAT", "npy version 4.0 is not one of 1.0, 2.0, 3.0");
}

TEST(Npy, FMT_11_long_headers) {
  expect_six_floats(npy(2, kDict + std::string(70000, ' '), six_floats()));
  std::string past = npy(2, kDict, six_floats());
  past.replace(8, 4, little_endian(4000000000u, 4));
  expect_refused(past, "E-TRUNCATED", "the npy header needs 4000000000 bytes");
  expect_refused(npy(2, kDict + std::string(1 << 20, ' '), six_floats()), "E-FORMAT",
                 "more than the limit of 1048576");
}

TEST(Npy, FMT_11_headers_as_other_programs_write_them) {
  const auto unpadded = [](const std::string& dict) {
    return std::string("\x93NUMPY\1\0", 8) + little_endian(dict.size(), 2) + dict + six_floats();
  };
  expect_six_floats(unpadded(kDict));  // no newline at the end
  expect_six_floats(unpadded("{'shape':(2,3),'descr':'<f4','fortran_order':False}\n"));
  expect_six_floats(
      unpadded("  { \"descr\" : \"<f4\" ,\n 'fortran_order':  False,'shape' :( 2 , 3 , )\t}  "));
  expect_refused(unpadded("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1}"), "E-FORMAT",
                 "unknown key 'more'");
}

TEST(Npy, headers_of_another_form_are_refused) {
  const auto header = [](const std::string& descr, const std::string& order, const std::string& shape) {
    return npy(1, "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + "}",
               six_floats());
  };
  expect_six_floats(header("'<f4'", "False", "(2,3)"));
  for (const char* shape :
       {"2", "(2)", "(2 3)", "(2,,3)", "(-2,3)", "(2.0,3)", "(2,3", "[2,3]", "(2,'3')", "(,)"})
    expect_refused(header("'<f4'", "False", shape), "E-FORMAT", "npy header: ");
  expect_refused(header("'<f4'", "False", "(99999999999999999999,)"), "E-FORMAT", "overflows");
  expect_refused(header("'<f4'", "False", "(4294967296,4294967296)"), "E-SHAPE", "overflows");
  expect_refused(header("'<f4'", "False", "(1,1,1,1,1,1,1,1,1)"), "E-FORMAT", "more than 8 dimensions");
  expect_refused(header("'<f4'", "False", "(1000000000000,)"), "E-TRUNCATED", "needs 4000000000000 bytes");
  expect_refused(header("'<f4'", "0", "(2,3)"), "E-FORMAT", "True or False");
  expect_refused(header("'>f4'", "False", "(2,3)"), "E-FORMAT", "big-endian");
  expect_refused(header("'|i1'", "False", "(2,3)"), "E-FORMAT", "dtype '|i1' is not one of");
  expect_refused(header("[('a', '<f4')]", "False", "(2,3)"), "E-FORMAT", "structured");
  expect_refused(npy(1, "{'descr': '<f4', 'shape': (2,3)}", six_floats()), "E-FORMAT", "needs the keys");
  expect_refused(npy(1, kDict + "{}", six_floats()), "E-FORMAT", "text after the dictionary");
  expect_refused(npy(1, "{'descr': '<f4", six_floats()), "E-FORMAT", "closing quote");
  expect_refused(npy(1, "", six_floats()), "E-FORMAT", "expected '{'");
  expect_refused(npy(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", "\1\3"), "E-FORMAT",
                 "the bool array holds 3 at element 1");
}

}  // namespace
}  // namespace gradus
