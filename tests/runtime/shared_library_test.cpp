#include <gmock/gmock.h>
#include <gradus/runtime/shared_library.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/temp_dir.h"

namespace gradus::runtime {
namespace {

using ::testing::HasSubstr;

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(SharedLibrary, found_by_its_name) {
  const SharedLibrary library({"libz.so.1"});
  ASSERT_TRUE(library.found()) << library.error();
  EXPECT_EQ(library.file(), "libz.so.1");
  EXPECT_EQ(std::filesystem::path(library.path()).filename(), "libz.so.1");
  EXPECT_TRUE(std::filesystem::exists(library.path()));
  auto* version = library.function<const char*()>("zlibVersion");
  ASSERT_TRUE(version);
  EXPECT_EQ(std::string(version()).substr(0, 2), "1.");
  EXPECT_FALSE(library.function<void()>("no_such_function"));
}

TEST(SharedLibrary, none_there_is_no_error) {
  const SharedLibrary library({"libgradus_first.so.9", "libgradus_second.so.8"});
  EXPECT_FALSE(library.found());
  EXPECT_EQ(library.file(), "libgradus_first.so.9");
  EXPECT_EQ(library.path(), "");
  EXPECT_EQ(library.error(), "");
  EXPECT_FALSE(library.function<void()>("anything"));
  EXPECT_FALSE(SharedLibrary(std::vector<std::string>{}).found());
}

TEST(SharedLibrary, the_first_that_is_there) {
  EXPECT_EQ(SharedLibrary({"libgradus_first.so.9", "libz.so.1", "libm.so.6"}).file(), "libz.so.1");
}

// As of a toolkit that was installed as Python wheels.
TEST(SharedLibrary, found_in_a_folder_where_the_loader_does_not_look) {
  const testing::TempDir folder;
  const std::string name = "libgradus_wheel.so.3";
  std::filesystem::copy_file(SharedLibrary({"libz.so.1"}).path(), folder.path(name));
  const SharedLibrary library({"libgradus_other.so.4", name}, {"/no/such/folder", folder.path()});
  ASSERT_TRUE(library.found()) << library.error();
  EXPECT_EQ(library.file(), name);
  EXPECT_TRUE(std::filesystem::equivalent(library.path(), folder.path(name))) << library.path();
  EXPECT_FALSE(SharedLibrary({name}, {}).found());
  folder.write("libgradus_broken.so.1", "no library");
  const SharedLibrary broken({"libgradus_broken.so.1"}, {folder.path()});
  EXPECT_FALSE(broken.found());
  EXPECT_THAT(broken.error(), HasSubstr("file too short"));
}

// Damaged files: the loader's words for some; it dies of others.
TEST(SharedLibrary, damaged_files_are_facts) {
  const testing::TempDir folder;
  const std::string whole = bytes_of(SharedLibrary({"libz.so.1"}).path());
  ASSERT_GT(whole.size(), 50000u);
  const struct {
    const char* name;
    std::string bytes;
    const char* error;
  } rows[] = {{"empty", "", "file too short"},
              {"page", "<!DOCTYPE html>" + std::string(5000, ' '), "invalid ELF header"},
              {"header", whole.substr(0, 64), "cannot read file data"},
              {"cut", whole.substr(0, 20000), "loading it ends with signal 7 (Bus error)"}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const std::string path = folder.path(row.name);
    std::ofstream(path, std::ios::binary) << row.bytes;
    const SharedLibrary library({path});
    EXPECT_FALSE(library.found());
    EXPECT_EQ(library.file(), path);
    EXPECT_THAT(library.error(), HasSubstr(row.error));
  }
  EXPECT_THAT(SharedLibrary({folder.path("")}).error(), HasSubstr("Is a directory"));
}

TEST(SharedLibrary, a_damaged_one_does_not_hide_the_next) {
  const testing::TempDir folder;
  const std::string damaged = folder.path("libz.so.1");
  std::ofstream(damaged) << "garbage";
  const SharedLibrary library({damaged, "libz.so.1"});
  EXPECT_TRUE(library.found());
  EXPECT_EQ(library.error(), "");
  const SharedLibrary neither({"libgradus_first.so.9", damaged, "libgradus_second.so.8"});
  EXPECT_EQ(neither.file(), damaged);
  EXPECT_THAT(neither.error(), HasSubstr("file too short"));
}

}  // namespace
}  // namespace gradus::runtime
