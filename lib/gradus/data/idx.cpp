#include <gradus/base/file.h>
#include <gradus/data/gzip.h>
#include <gradus/data/idx.h>
#include <gradus/tensor/views.h>

#include <array>
#include <optional>

namespace gradus {
namespace {

constexpr uint32_t kByteType = 0x08;
// Deflate stores at most 258 bytes in 2 bits, so a file of n bytes cannot unpack to more.
constexpr int64_t kMaxExpansion = 1032;

// The bytes of an IDX file, unpacked if need be.
class IdxBytes {
 public:
  explicit IdxBytes(const std::string& path) : file_(path) {
    if (detail::is_gzip(file_)) gzip_.emplace(file_);
  }

  const std::string& path() const { return file_.path(); }

  int64_t read_some(void* to, int64_t bytes) {
    return gzip_ ? gzip_->read_some(to, bytes) : file_.read_some(to, bytes);
  }
  void read(void* to, int64_t bytes, const std::string& what) {
    const int64_t found = read_some(to, bytes);
    GRADUS_CHECK(found == bytes, "E-TRUNCATED", path(), ": ", what, " needs ", bytes, " bytes, found ", found,
                 hint("the file is cut short; fetch it again"));
  }
  // Before room for `bytes` is allocated: could the file hold them at all?
  void require(int64_t bytes, const std::string& what) const {
    if (!gzip_) return file_.require(bytes, what.c_str());
    GRADUS_CHECK(bytes / kMaxExpansion <= file_.size(), "E-TRUNCATED", path(), ": ", what, " needs ", bytes,
                 " bytes, more than ", file_.size(), " bytes of gzip data can hold",
                 hint("the file is damaged; fetch it again"));
  }
  // Also makes zlib check the last member's CRC.
  void expect_end(const std::string& what, int64_t bytes) {
    char extra;
    GRADUS_CHECK(read_some(&extra, 1) == 0, "E-FORMAT", path(), ": ", what, " needs ", bytes,
                 " bytes, but more follow");
  }

 private:
  InputFile file_;
  std::optional<detail::GzipReader> gzip_;
};

uint32_t big_endian(const unsigned char* b) {
  return static_cast<uint32_t>(b[0]) << 24 | b[1] << 16 | b[2] << 8 | b[3];
}

void check_magic(uint32_t magic, int dims, const std::string& path) {
  const uint32_t first = magic >> 24;
  GRADUS_CHECK(first != '<', "E-FORMAT", path, ": not an IDX file; it looks like a web page",
               hint("the server sent an error page instead of the data; fetch the file again"));
  GRADUS_CHECK(magic >> 16 != 0x1f8b, "E-FORMAT", path, ": gzip data within gzip data",
               hint("unpack it once with gunzip"));
  const uint32_t wanted = kByteType << 8 | static_cast<uint32_t>(dims);
  GRADUS_CHECK(dims == 0 || magic == wanted, "E-FORMAT", path, ": magic number ", magic, " where ", wanted,
               dims == 1 ? " (labels)" : " (images)", " is wanted",
               hint("2051 marks images, 2049 labels: were two files exchanged?"));
  GRADUS_CHECK(magic >> 16 == 0, "E-FORMAT", path, ": not an IDX file: magic number ", magic);
  GRADUS_CHECK(magic >> 8 == kByteType, "E-FORMAT", path, ": IDX element type ", magic >> 8,
               " is not supported, only ", kByteType, " (unsigned bytes)");
  const uint32_t rank = magic & 0xff;
  GRADUS_CHECK(rank >= 1 && rank <= static_cast<uint32_t>(kMaxDims), "E-FORMAT", path, ": ", rank,
               " dimensions, expected 1 to ", kMaxDims);
}

Shape read_sizes(IdxBytes& bytes, int rank) {
  Shape sizes;
  for (int d = 0; d < rank; ++d) {
    unsigned char size[4];
    bytes.read(size, 4, str("size ", d, " in the IDX header"));
    sizes.push_back(big_endian(size));
  }
  return sizes;
}

}  // namespace

Tensor read_idx(const std::string& path, int dims) {
  IdxBytes bytes(path);
  unsigned char magic_bytes[4] = {};
  bytes.read(magic_bytes, 4, "the IDX magic number");
  const uint32_t magic = big_endian(magic_bytes);
  check_magic(magic, dims, path);
  const Shape sizes = read_sizes(bytes, static_cast<int>(magic & 0xff));
  const int64_t count = checked_bytes(sizes, 1, path.c_str());
  const std::string what = str("IDX data of shape ", sizes);
  bytes.require(count, what);
  Tensor data = empty(sizes, kUInt8);
  bytes.read(data.raw_data(), count, what);
  bytes.expect_end(what, count);
  return data;
}

}  // namespace gradus
