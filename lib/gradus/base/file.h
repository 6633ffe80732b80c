// Files as this library reads and writes them: lengths are checked before anything is allocated, and a file
// is either written whole or not at all.
#pragma once
#include <gradus/base/error.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace gradus {

/// A regular file opened for reading. It is read, not mapped: a mapped file that another process shortens
/// kills the program with SIGBUS.
class InputFile {
 public:
  /// Throws E-FILE naming the path and the system's reason; directories, pipes and devices are refused.
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  /// Bytes in the file when it was opened.
  int64_t size() const { return size_; }
  int64_t position() const { return position_; }
  int64_t remaining() const { return size_ - position_; }

  /// Reads exactly `bytes`; throws E-TRUNCATED naming `what`, the bytes needed and those found.
  void read(void* to, int64_t bytes, const char* what);
  /// Reads up to `bytes` and returns how many there were.
  int64_t read_some(void* to, int64_t bytes);
  /// Throws E-TRUNCATED unless `bytes` more can be read; call it before allocating room for them.
  void require(int64_t bytes, const char* what) const;
  void rewind();

 private:
  std::string path_;
  int fd_ = -1;
  int64_t size_ = 0, position_ = 0;
};

/// The whole file as bytes. Throws E-FILE.
std::string read_file(const std::string& path);

/// Where write_atomically()'s writer puts its bytes.
class OutputFile {
 public:
  OutputFile(int fd, const std::string& path) : fd_(fd), path_(path) {}
  /// Writes all of it; throws E-FILE with the system's reason, such as "No space left on device".
  void write(const void* data, int64_t bytes);
  void write(std::string_view text) { write(text.data(), static_cast<int64_t>(text.size())); }

 private:
  int fd_;
  std::string path_;
};

/// Calls `writer` on a temporary file beside `path`, syncs it to the disk and renames it to `path`. Whatever
/// goes wrong, `path` holds either its old content or all of the new, and the temporary file is removed.
/// A device or pipe (such as /dev/stdout) is written in place. Throws E-FILE.
void write_atomically(const std::string& path, const std::function<void(OutputFile&)>& writer);

}  // namespace gradus
