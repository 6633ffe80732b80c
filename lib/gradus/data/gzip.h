// Gzip data read piece by piece. Internal to data/.
#pragma once
#include <gradus/base/file.h>

#include <memory>
#include <vector>

struct z_stream_s;

namespace gradus::detail {

/// True if the file starts with gzip's two magic bytes; leaves it at its start.
bool is_gzip(InputFile& file);

/// Unpacks a gzip file of one or more members. zlib checks each member's CRC and length.
class GzipReader {
 public:
  /// `file` must stand at its start and outlive this.
  explicit GzipReader(InputFile& file);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  /// Reads up to `bytes`; fewer only at the end of the data. Throws E-TRUNCATED if the file ends within a
  /// member and E-FORMAT if it is damaged or followed by something else.
  int64_t read_some(void* to, int64_t bytes);

 private:
  bool fill_input();
  bool next_member();

  InputFile& file_;
  std::vector<unsigned char> input_;
  std::unique_ptr<z_stream_s> stream_;
  bool at_end_ = false;
};

}  // namespace gradus::detail
