#include <dlfcn.h>
#include <gradus/base/error.h>
#include <gradus/base/version.h>
#include <gradus/runtime/shared_library.h>
#include <link.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sstream>

namespace gradus::runtime {
namespace {

constexpr int kFlags = RTLD_LAZY | RTLD_LOCAL;
constexpr unsigned kSeconds = 20;  // a library that takes longer to load hangs

// In the child: default actions for what a damaged file causes, no core file, an end if it hangs.
[[noreturn]] void load_and_exit(const char* file) {
  for (const int fatal : {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGABRT, SIGALRM}) std::signal(fatal, SIG_DFL);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  alarm(kSeconds);
  _exit(dlopen(file, kFlags) ? 0 : 1);
}

// The signal that ends a process which loads `file`; 0 where it survives. The loader maps files without
// looking at their length, so one that was cut short ends in SIGBUS.
int fatal_signal(const char* file) {
  const pid_t child = fork();
  if (child < 0) return 0;
  if (child == 0) load_and_exit(file);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return 0;
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

// The loader's text for "there is no such file", unlike that for a dependency that is missing.
bool is_absent(const std::string& error, const std::string& file) {
  return error == file + ": cannot open shared object file: No such file or directory";
}

std::string path_of(void* handle) {
  link_map* map = nullptr;
  return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : "";
}

}  // namespace

std::vector<std::string> cuda_library_folders() {
  std::istringstream list(GRADUS_CUDA_LIBRARY_FOLDERS);
  std::vector<std::string> folders;
  for (std::string folder; std::getline(list, folder, ':');) folders.push_back(folder);
  return folders;
}

SharedLibrary::SharedLibrary(const std::vector<std::string>& files, const std::vector<std::string>& folders) {
  for (const std::string& file : files)
    if (open(file, folders)) return;
  if (file_.empty() && !files.empty()) file_ = files.front();
}

// Where the loader looks, or in one of the folders: a path that is not there costs no child process.
bool SharedLibrary::open(const std::string& file, const std::vector<std::string>& folders) {
  if (load(file, file)) return true;
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + file;
    if (access(path.c_str(), F_OK) == 0 && load(path, file)) return true;
  }
  return false;
}

// Loads `path`, which is called `file`, and returns true; else keeps the first error that is not "no such
// file".
bool SharedLibrary::load(const std::string& path, const std::string& file) {
  handle_ = dlopen(path.c_str(), kFlags | RTLD_NOLOAD);
  std::string problem;
  if (!handle_) {
    if (const int signal = fatal_signal(path.c_str()))
      problem = str(path, ": loading it ends with signal ", signal, " (", strsignal(signal), ")");
    else if (handle_ = dlopen(path.c_str(), kFlags); !handle_)
      problem = dlerror();
  }
  if (handle_) {
    file_ = file, path_ = path_of(handle_), error_.clear();
    return true;
  }
  if (error_.empty() && !is_absent(problem, path)) file_ = file, error_ = problem;
  return false;
}

void* SharedLibrary::symbol(const char* name) const { return handle_ ? dlsym(handle_, name) : nullptr; }

}  // namespace gradus::runtime
