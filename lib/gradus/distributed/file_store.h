// A store in a folder that all processes see.
#pragma once
#include <gradus/distributed/store.h>

#include <mutex>

namespace gradus::distributed {

/// A file for each value, written beside and renamed. A rank holds a lock on a file of its own while it
/// lives, which the system lets go when the process ends, however it ends. The folder must be empty at first.
class FileStore : public Store {
 public:
  /// Makes the folder if it is not there. Throws E-STORE if that is impossible.
  explicit FileStore(std::string folder);
  ~FileStore() override;

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> try_get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  void join(int rank) override;
  void leave() override;
  std::vector<LostRank> lost(milliseconds silence) override;
  std::string where() const override { return "file://" + folder_; }

 private:
  std::string path_of(const std::string& key) const;
  std::string rank_path(int rank) const;
  std::optional<LostRank> look_at(int rank, int64_t now, milliseconds silence) const;

  std::string folder_;
  std::mutex mutex_;
  int rank_ = -1, lock_ = -1;
};

}  // namespace gradus::distributed
