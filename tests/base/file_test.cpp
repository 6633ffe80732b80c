#include <fcntl.h>
#include <gradus/base/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>

#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace gradus {
namespace {

using testing::TempDir;

TEST(File, reads_a_whole_file) {
  TempDir dir;
  const std::string content = std::string("a\0b", 3) + std::string(100000, 'x');
  EXPECT_EQ(read_file(dir.write("f", content)), content);
  EXPECT_EQ(read_file(dir.write("empty", "")), "");
}

TEST(File, names_what_it_cannot_open) {
  TempDir dir;
  EXPECT_GRADUS_ERROR(read_file(dir.path("none")), "E-FILE",
                      dir.path("none") + ": cannot open: No such file or directory");
  EXPECT_GRADUS_ERROR(read_file(dir.path()), "E-FILE", ": is a directory, not a file");
}

TEST(File, a_pipe_is_refused_without_waiting) {
  TempDir dir;
  ASSERT_EQ(::mkfifo(dir.path("pipe").c_str(), 0600), 0);
  EXPECT_GRADUS_ERROR(read_file(dir.path("pipe")), "E-FILE", ": is not a regular file");
}

TEST(File, names_the_bytes_needed_and_found) {
  TempDir dir;
  InputFile file(dir.write("f", "0123456789"));
  char buffer[16];
  file.read(buffer, 4, "the head");
  EXPECT_EQ(file.remaining(), 6);
  EXPECT_GRADUS_ERROR(file.read(buffer, 7, "the tail"), "E-TRUNCATED",
                      dir.path("f") + ": the tail needs 7 bytes, but the file has 6 left of its 10");
  EXPECT_EQ(file.read_some(buffer, 16), 6);
}

TEST(File, FMT_09_a_file_shortened_after_it_was_opened_is_an_error_not_a_crash) {
  TempDir dir;
  InputFile file(dir.write("f", std::string(1 << 20, 'x')));
  ASSERT_EQ(::truncate(dir.path("f").c_str(), 1000), 0);
  std::string buffer(1 << 20, '\0');
  EXPECT_GRADUS_ERROR(file.read(buffer.data(), 1 << 20, "the data"), "E-TRUNCATED",
                      "the data needs 1048576 bytes, found 1000");
}

TEST(WriteAtomically, replaces_the_file_and_leaves_nothing_beside_it) {
  TempDir dir;
  dir.write("f", "old");
  write_atomically(dir.path("f"), [](OutputFile& f) { f.write("new "), f.write("content"); });
  EXPECT_EQ(dir.read("f"), "new content");
  EXPECT_EQ(dir.file_count(), 1u);
}

TEST(WriteAtomically, an_exception_keeps_the_old_file) {
  TempDir dir;
  dir.write("f", "old");
  EXPECT_THROW(write_atomically(dir.path("f"),
                                [](OutputFile& f) {
                                  f.write("half");
                                  throw std::runtime_error("stop");
                                }),
               std::runtime_error);
  EXPECT_EQ(dir.read("f"), "old");
  EXPECT_EQ(dir.file_count(), 1u);
}

TEST(WriteAtomically, a_killed_process_keeps_the_old_file) {
  TempDir dir;
  dir.write("f", "old");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    write_atomically(dir.path("f"), [](OutputFile& f) {
      f.write("half");
      ::raise(SIGKILL);
    });
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(dir.read("f"), "old");
}

TEST(WriteAtomically, a_full_device_is_named) {
  EXPECT_GRADUS_ERROR(write_atomically("/dev/full", [](OutputFile& f) { f.write("x"); }), "E-FILE",
                      "/dev/full: cannot write: No space left on device\n  hint: free some space");
}

// The nearest to a full disk that needs no privileges: the process may write 4096 bytes to a file.
class SmallFiles {
 public:
  SmallFiles() : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit small = before_;
    small.rlim_cur = 4096;
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_;
  void (*handler_)(int);
};

TEST(WriteAtomically, a_write_that_fails_half_way_keeps_the_old_file) {
  TempDir dir;
  dir.write("f", "old");
  const std::string big(1 << 20, 'x');
  {
    SmallFiles limit;
    EXPECT_GRADUS_ERROR(write_atomically(dir.path("f"), [&](OutputFile& f) { f.write(big); }), "E-FILE",
                        dir.path("f") + ": cannot write: File too large");
  }
  EXPECT_EQ(dir.read("f"), "old");
  EXPECT_EQ(dir.file_count(), 1u);
}

TEST(WriteAtomically, a_missing_folder_is_named) {
  TempDir dir;
  EXPECT_GRADUS_ERROR(write_atomically(dir.path("no/f"), [](OutputFile&) {}), "E-FILE",
                      dir.path("no/f") + ": cannot create a temporary file beside it");
}

TEST(WriteAtomically, paths_that_the_system_refuses_are_named) {
  TempDir dir;
  const std::string name(300, 'a');
  std::filesystem::create_symlink("loop", dir.path("loop"));
  EXPECT_GRADUS_ERROR(write_atomically(dir.path(name), [](OutputFile&) {}), "E-FILE",
                      dir.path(name) + ": cannot create a temporary file beside it: File name too long");
  write_atomically(dir.path("loop"), [](OutputFile& f) { f.write("new"); });  // leads nowhere: is replaced
  EXPECT_EQ(dir.read("loop"), "new");
}

TEST(WriteAtomically, writes_through_a_symbolic_link) {
  TempDir dir;
  dir.write("target", "old");
  std::filesystem::create_symlink("target", dir.path("link"));
  write_atomically(dir.path("link"), [](OutputFile& f) { f.write("new"); });
  EXPECT_TRUE(std::filesystem::is_symlink(dir.path("link")));
  EXPECT_EQ(dir.read("target"), "new");
}

}  // namespace
}  // namespace gradus
