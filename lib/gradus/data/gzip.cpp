#include <gradus/data/gzip.h>
#include <zlib.h>

#include <algorithm>

namespace gradus::detail {
namespace {

constexpr int kGzipOnly = 16 + MAX_WBITS;
constexpr size_t kInputBytes = 1 << 16;

}  // namespace

bool is_gzip(InputFile& file) {
  unsigned char magic[2] = {};
  file.read_some(magic, 2);
  file.rewind();
  return magic[0] == 0x1f && magic[1] == 0x8b;
}

GzipReader::GzipReader(InputFile& file)
    : file_(file), input_(kInputBytes), stream_(std::make_unique<z_stream_s>()) {
  GRADUS_CHECK(inflateInit2(stream_.get(), kGzipOnly) == Z_OK, "E-INTERNAL", "zlib could not be started");
}

GzipReader::~GzipReader() { inflateEnd(stream_.get()); }

bool GzipReader::fill_input() {
  if (stream_->avail_in > 0) return true;
  stream_->next_in = input_.data();
  stream_->avail_in = static_cast<uInt>(file_.read_some(input_.data(), static_cast<int64_t>(input_.size())));
  return stream_->avail_in > 0;
}

// Behind a member comes the end of the file, another member, or padding with zeros.
bool GzipReader::next_member() {
  bool padding = false;
  while (fill_input()) {
    if (*stream_->next_in != 0) {
      GRADUS_CHECK(!padding && *stream_->next_in == 0x1f, "E-FORMAT", file_.path(),
                   ": the gzip data is followed by something else");
      inflateReset(stream_.get());
      return true;
    }
    padding = true;
    ++stream_->next_in, --stream_->avail_in;
  }
  return false;
}

int64_t GzipReader::read_some(void* to, int64_t bytes) {
  int64_t done = 0;
  while (done < bytes && !at_end_) {
    GRADUS_CHECK(fill_input(), "E-TRUNCATED", file_.path(), ": the gzip data is cut short: all ",
                 file_.size(), " bytes of the file are read and its end has not come",
                 hint("the file is incomplete; fetch it again"));
    const auto room = static_cast<uInt>(std::min<int64_t>(bytes - done, 1 << 30));
    stream_->next_out = static_cast<unsigned char*>(to) + done;
    stream_->avail_out = room;
    const int result = inflate(stream_.get(), Z_NO_FLUSH);
    done += room - stream_->avail_out;
    GRADUS_CHECK(result == Z_OK || result == Z_STREAM_END, "E-FORMAT", file_.path(),
                 ": the gzip data is damaged: ", stream_->msg ? stream_->msg : "zlib refuses it",
                 hint("fetch the file again"));
    if (result == Z_STREAM_END) at_end_ = !next_member();
  }
  return done;
}

}  // namespace gradus::detail
