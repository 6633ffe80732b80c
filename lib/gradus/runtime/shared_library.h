// A shared library that may or may not be on this machine, looked for at run time.
#pragma once
#include <string>
#include <vector>

namespace gradus::runtime {

/// The folders of the CUDA toolkit that this build was made with; none in a build without CUDA.
std::vector<std::string> cuda_library_folders();

/// The first of several files that the loader finds. It stays loaded: CUDA's libraries do not survive being
/// unloaded.
class SharedLibrary {
 public:
  SharedLibrary() = default;
  /// `files` are names as dlopen() takes them, "libcuda.so.1", the best first; each is looked for where the
  /// loader looks, then in `folders`: a toolkit of Python wheels is on no path of the loader. Never throws
  /// and never crashes on a damaged file: each is loaded by a child process first.
  explicit SharedLibrary(const std::vector<std::string>& files,
                         const std::vector<std::string>& folders = cuda_library_folders());

  bool found() const { return handle_ != nullptr; }
  /// The name by which it was found; the first of `files` where none was.
  const std::string& file() const { return file_; }
  /// Where it was found; "" where it was not.
  const std::string& path() const { return path_; }
  /// Why a file that is there could not be loaded, in the loader's words; "" where none is there.
  const std::string& error() const { return error_; }

  /// Its function of that name, nullptr if it has none: `library.function<int(int*)>("cuDriverGetVersion")`.
  template <class F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(symbol(name));
  }

 private:
  bool open(const std::string& file, const std::vector<std::string>& folders);
  bool load(const std::string& path, const std::string& file);
  void* symbol(const char* name) const;

  void* handle_ = nullptr;
  std::string file_, path_, error_;
};

}  // namespace gradus::runtime
