#include <fcntl.h>
#include <gradus/base/file.h>
#include <gradus/distributed/file_store.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <utility>

namespace gradus::distributed {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kRank = "rank.";

class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    GRADUS_CHECK(fd_ >= 0 || !(flags & O_CREAT), "E-STORE", path, ": ", std::strerror(errno));
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int64_t changed_at(int fd) {  // in ms, by the clock of the file system
  struct stat info {};
  ::fstat(fd, &info);
  return int64_t{info.st_mtim.tv_sec} * 1000 + info.st_mtim.tv_nsec / 1'000'000;
}

}  // namespace

FileStore::FileStore(std::string folder) : folder_(std::move(folder)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  GRADUS_CHECK(fs::is_directory(folder_), "E-STORE", where(), ": ",
               error ? error.message() : "it is no folder",
               hint("name a folder that all processes can write to, and none has used before"));
}

FileStore::~FileStore() {
  if (lock_ >= 0) ::close(lock_);
}

std::string FileStore::path_of(const std::string& key) const {
  std::string name = "value.";
  for (const char c : key) name += c == '/' ? '.' : c;
  return folder_ + "/" + name;
}

std::string FileStore::rank_path(int rank) const { return str(folder_, "/", kRank, rank); }

void FileStore::set(const std::string& key, const std::string& value) {
  write_atomically(path_of(key), [&](OutputFile& file) { file.write(value); });
}

std::optional<std::string> FileStore::try_get(const std::string& key) {
  std::error_code ignored;
  if (!fs::exists(path_of(key), ignored)) return {};
  return read_file(path_of(key));
}

int64_t FileStore::add(const std::string& key, int64_t amount) {
  const File lock(path_of(key) + ".lock", O_RDWR | O_CREAT);
  while (::flock(lock.get(), LOCK_EX) != 0)
    GRADUS_CHECK(errno == EINTR, "E-STORE", where(), ": ", std::strerror(errno));
  const std::string old = try_get(key).value_or("0");
  int64_t sum = 0;
  std::from_chars(old.data(), old.data() + old.size(), sum);
  set(key, str(sum += amount));
  return sum;
}

// Nobody finds the file before it is locked: it gets its name afterwards.
void FileStore::join(int rank) {
  const std::string draft = str(folder_, "/joining.", rank, ".", ::getpid());
  File file(draft, O_RDWR | O_CREAT);
  ::flock(file.get(), LOCK_EX);
  const bool joined = ::link(draft.c_str(), rank_path(rank).c_str()) == 0;
  const int error = errno;
  ::unlink(draft.c_str());
  GRADUS_CHECK(joined, "E-STORE", where(), ": rank ", rank, " is there already (", std::strerror(error), ")",
               hint("the folder was used before, or two processes have this rank"));
  const std::lock_guard lock(mutex_);
  rank_ = rank;
  lock_ = file.release();
}

// The file goes before its lock does: nobody finds it without one.
void FileStore::leave() {
  const std::lock_guard lock(mutex_);
  if (lock_ < 0) return;
  ::unlink(rank_path(rank_).c_str());
  ::close(std::exchange(lock_, -1));
}

std::optional<LostRank> FileStore::look_at(int rank, int64_t now, milliseconds silence) const {
  const File file(rank_path(rank), O_RDWR);
  if (file.get() < 0) return {};
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
    struct stat info {};
    ::fstat(file.get(), &info);
    if (info.st_nlink == 0) return {};  // it left between our two calls
    return LostRank{rank, "has ended without destroy_process_group()"};
  }
  if (silence.count() > 0 && now - changed_at(file.get()) > silence.count())
    return LostRank{rank, str("has not answered for ", silence.count() / 1000.0, " s")};
  return {};
}

std::vector<LostRank> FileStore::lost(milliseconds silence) {
  const std::lock_guard lock(mutex_);
  if (lock_ < 0) return {};
  ::futimens(lock_, nullptr);
  const int64_t now = changed_at(lock_);
  std::vector<LostRank> all;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kRank)) continue;
    int rank = -1;
    std::from_chars(name.data() + kRank.size(), name.data() + name.size(), rank);
    if (rank == rank_) continue;
    if (auto found = look_at(rank, now, silence)) all.push_back(std::move(*found));
  }
  return all;
}

}  // namespace gradus::distributed
