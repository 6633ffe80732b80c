#include <fcntl.h>
#include <gradus/base/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace gradus {
namespace {

[[noreturn]] void fail_with_errno(const std::string& path, const char* action) {
  const int error = errno;
  const std::string reason = std::generic_category().message(error);
  switch (error) {
    case ENOENT:
      GRADUS_FAIL("E-FILE", path, ": cannot ", action, ": ", reason, hint("check the path's spelling"));
    case ENOSPC:
    case EDQUOT:
      GRADUS_FAIL("E-FILE", path, ": cannot ", action, ": ", reason,
                  hint("free some space on that disk, or write elsewhere"));
    default:
      GRADUS_FAIL("E-FILE", path, ": cannot ", action, ": ", reason);
  }
}

// A file descriptor that is closed on every path.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  // close() reports errors that a network file system kept until now.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

// Created for this call alone: the pid tells processes apart, the counter threads and leftovers.
std::pair<int, std::string> create_temporary(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const std::string name = str(path, ".tmp-", static_cast<int64_t>(::getpid()), "-", counter++);
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return {fd, name};
    if (errno != EEXIST) break;
  }
  fail_with_errno(path, "create a temporary file beside it");
}

// Removes the temporary file unless it was renamed.
struct RemoveOnFailure {
  std::string name;
  ~RemoveOnFailure() {
    if (!name.empty()) ::unlink(name.c_str());
  }
};

// The rename itself must reach the disk, and it is stored in the directory.
void sync_directory_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string directory = parent.empty() ? std::string(".") : parent.string();
  const Descriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return;  // a directory that may be written but not read: nothing more can be done
  if (::fsync(fd.get()) != 0 && errno != EINVAL) fail_with_errno(directory, "sync");
}

bool exists_but_not_regular(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

void write_in_place(const std::string& path, const std::function<void(OutputFile&)>& writer) {
  Descriptor fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (fd.get() < 0) fail_with_errno(path, "open for writing");
  OutputFile file(fd.get(), path);
  writer(file);
  if (!fd.close()) fail_with_errno(path, "write");
}

}  // namespace

InputFile::InputFile(const std::string& path) : path_(path) {
  // O_NONBLOCK: opening a pipe that nobody writes must not wait; it has no effect on regular files.
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) fail_with_errno(path, "open");
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) fail_with_errno(path, "examine");
  GRADUS_CHECK(!S_ISDIR(info.st_mode), "E-FILE", path, ": is a directory, not a file");
  GRADUS_CHECK(S_ISREG(info.st_mode), "E-FILE", path, ": is not a regular file");
  size_ = info.st_size;
  fd_ = ::dup(fd.get());
  if (fd_ < 0) fail_with_errno(path, "open");
}

InputFile::~InputFile() { ::close(fd_); }

int64_t InputFile::read_some(void* to, int64_t bytes) {
  int64_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::read(fd_, static_cast<char*>(to) + done, static_cast<size_t>(bytes - done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_with_errno(path_, "read");
    if (n == 0) break;
    done += n;
  }
  position_ += done;
  return done;
}

void InputFile::require(int64_t bytes, const char* what) const {
  GRADUS_CHECK(bytes <= remaining(), "E-TRUNCATED", path_, ": ", what, " needs ", bytes,
               " bytes, but the file has ", remaining(), " left of its ", size_,
               hint("the file is cut short or damaged; fetch or write it again"));
}

void InputFile::read(void* to, int64_t bytes, const char* what) {
  require(bytes, what);
  const int64_t found = read_some(to, bytes);
  GRADUS_CHECK(found == bytes, "E-TRUNCATED", path_, ": ", what, " needs ", bytes, " bytes, found ", found,
               hint("the file was shortened while it was read"));
}

void InputFile::rewind() {
  if (::lseek(fd_, 0, SEEK_SET) != 0) fail_with_errno(path_, "rewind");
  position_ = 0;
}

std::string read_file(const std::string& path) {
  InputFile file(path);
  std::string content(static_cast<size_t>(file.size()), '\0');
  file.read(content.data(), file.size(), "the file");
  return content;
}

void OutputFile::write(const void* data, int64_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd_, from, static_cast<size_t>(bytes));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_with_errno(path_, "write");
    from += n;
    bytes -= n;
  }
}

void write_atomically(const std::string& path, const std::function<void(OutputFile&)>& writer) {
  if (exists_but_not_regular(path)) return write_in_place(path, writer);
  // Through a symbolic link the file it names is replaced, not the link.
  std::error_code failed;  // what is wrong with the path shows when the file is made
  std::filesystem::path resolved;
  if (std::filesystem::is_symlink(path, failed)) resolved = std::filesystem::weakly_canonical(path, failed);
  const std::string target = resolved.empty() ? path : resolved.string();
  auto [raw_fd, name] = create_temporary(target);
  Descriptor fd(raw_fd);
  RemoveOnFailure temporary{name};
  OutputFile file(fd.get(), path);
  writer(file);
  if (::fsync(fd.get()) != 0 || !fd.close()) fail_with_errno(path, "write");
  if (::rename(name.c_str(), target.c_str()) != 0) fail_with_errno(path, "replace");
  temporary.name.clear();
  sync_directory_of(target);
}

}  // namespace gradus
