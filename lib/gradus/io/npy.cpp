#include <gradus/base/file.h>
#include <gradus/io/npy.h>
#include <gradus/io/npy_header.h>
#include <gradus/tensor/grad_mode.h>
#include <gradus/tensor/views.h>

#include <algorithm>

namespace gradus {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr int64_t kMaxHeaderBytes = 1 << 20;  // numpy itself refuses more than 10000 unless told otherwise
constexpr size_t kAlignment = 64;             // of the first data byte, so that the file can be mapped

int64_t read_header_length(InputFile& file, int version) {
  unsigned char bytes[4] = {};
  file.read(bytes, version == 1 ? 2 : 4, "the length of the npy header");
  return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | static_cast<int64_t>(bytes[3]) << 24;
}

detail::NpyHeader read_header(InputFile& file) {
  char start[8] = {};
  const int64_t found = file.read_some(start, sizeof start);
  const std::string_view magic = std::string_view(start, static_cast<size_t>(found)).substr(0, kMagic.size());
  GRADUS_CHECK(
      kMagic.starts_with(magic), "E-FORMAT", file.path(),
      ": not an npy file: it does not start with \\x93NUMPY",
      hint(magic.starts_with("PK") ? "it looks like an .npz archive; save one array with numpy.save()"
                                   : "write it with numpy.save()"));
  GRADUS_CHECK(found == sizeof start, "E-TRUNCATED", file.path(), ": the npy magic and version need ",
               sizeof start, " bytes, found ", found);
  const int major = static_cast<unsigned char>(start[6]), minor = static_cast<unsigned char>(start[7]);
  GRADUS_CHECK(major >= 1 && major <= 3 && minor == 0, "E-FORMAT", file.path(), ": npy version ", major, ".",
               minor, " is not one of 1.0, 2.0, 3.0");
  const int64_t length = read_header_length(file, major);
  file.require(length, "the npy header");
  GRADUS_CHECK(length <= kMaxHeaderBytes, "E-FORMAT", file.path(), ": the npy header has ", length,
               " bytes, more than the limit of ", kMaxHeaderBytes);
  std::string text(static_cast<size_t>(length), '\0');
  file.read(text.data(), length, "the npy header");
  return detail::parse_npy_header(text, file.path());
}

void check_bools(const Tensor& tensor, const std::string& path) {
  const auto* bytes = static_cast<const unsigned char*>(tensor.raw_data());
  const auto* bad = std::find_if(bytes, bytes + tensor.numel(), [](unsigned char b) { return b > 1; });
  GRADUS_CHECK(bad == bytes + tensor.numel(), "E-FORMAT", path, ": the bool array holds ",
               static_cast<int>(*bad), " at element ", bad - bytes);
}

Shape reversed(const Shape& shape) {
  Shape out = shape;
  std::reverse(out.begin(), out.end());
  return out;
}

// Column-major data of shape (a, b) is row-major data of shape (b, a), transposed.
Tensor from_fortran_order(const Tensor& data) {
  Shape dims;
  for (int d = data.dim() - 1; d >= 0; --d) dims.push_back(d);
  return data.permute(dims).contiguous();
}

}  // namespace

Tensor load_npy(const std::string& path) {
  NoGradGuard no_grad;
  InputFile file(path);
  const detail::NpyHeader header = read_header(file);
  const int64_t bytes = checked_bytes(header.sizes, element_size(header.dtype), path.c_str());
  const std::string what = str("the array of ", to_string(header.dtype), " and shape ", header.sizes);
  file.require(bytes, what.c_str());
  GRADUS_CHECK(bytes == file.remaining(), "E-FORMAT", path, ": ", what, " needs ", bytes, " bytes, but ",
               file.remaining(), " follow the header");
  const Tensor data = empty(header.fortran_order ? reversed(header.sizes) : header.sizes, header.dtype);
  file.read(data.raw_data(), bytes, what.c_str());
  if (header.dtype == kBool) check_bools(data, path);
  return header.fortran_order ? from_fortran_order(data) : data;
}

void save_npy(const std::string& path, const Tensor& tensor) {
  GRADUS_CHECK(!tensor.requires_grad(), "E-REQUIRES-GRAD",
               "save_npy: Can't call numpy() on Tensor that requires grad",
               hint("Use tensor.detach() first: a file keeps numbers, not their history"));
  GRADUS_CHECK(tensor.is_cpu(), "E-DEVICE", "save_npy: can't convert ", tensor.device(),
               " device type tensor to numpy",
               hint("Use Tensor.cpu() to copy the tensor to host memory first"));
  std::string header = detail::format_npy_header({tensor.dtype(), false, tensor.sizes()});
  const size_t before_header = kMagic.size() + 4;
  const size_t whole = (before_header + header.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  header.append(whole - before_header - header.size() - 1, ' ');
  header += '\n';
  const char version_and_length[] = {1, 0, static_cast<char>(header.size() & 0xff),
                                     static_cast<char>(header.size() >> 8)};
  const Tensor data = tensor.contiguous();
  write_atomically(path, [&](OutputFile& file) {
    file.write(kMagic);
    file.write(version_and_length, sizeof version_and_length);
    file.write(header);
    file.write(data.raw_data(), static_cast<int64_t>(data.nbytes()));
  });
}

}  // namespace gradus
