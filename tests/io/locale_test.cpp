// Files must not depend on the language of the machine that writes them.
#include <gradus/io/checkpoint.h>
#include <gradus/io/npy.h>
#include <gradus/io/safetensors.h>

#include <clocale>
#include <locale>

#include "support/temp_dir.h"
#include "support/tensors.h"

namespace gradus {
namespace {

using namespace testing;

// 2,621,401 and 1,5: what a C++ stream writes under it, and with it a careless writer.
struct Grouping : std::numpunct<char> {
  char do_thousands_sep() const override { return ','; }
  std::string do_grouping() const override { return "\3"; }
  char do_decimal_point() const override { return ','; }
};

class OtherLocale {
 public:
  OtherLocale() : before_(std::locale::global(std::locale(std::locale(), new Grouping))) {
    std::setlocale(LC_ALL, "de_DE.UTF-8");  // where it is installed
  }
  ~OtherLocale() {
    std::locale::global(before_);
    std::setlocale(LC_ALL, "C");
  }

 private:
  std::locale before_;
};

std::string written(const std::function<void(const std::string&)>& write) {
  TempDir dir;
  write(dir.path("f"));
  return dir.read("f");
}

TEST(Locale, FMT_13_files_are_the_same_under_another_locale) {
  const Tensor bytes = empty({1234567}, kUInt8), wide = empty({2621, 401}, kUInt8);
  std::fill_n(bytes.data<uint8_t>(), bytes.numel(), uint8_t{1});
  std::fill_n(wide.data<uint8_t>(), wide.numel(), uint8_t{2});
  Checkpoint checkpoint;
  checkpoint["progress"].values = {{"epoch", int64_t{1234567}}, {"lr", 1234.5}};
  const std::function<void(const std::string&)> writers[] = {
      [&](const std::string& path) { save_npy(path, wide); },
      [&](const std::string& path) {
        save_safetensors(path, {{"b", bytes}});
      },
      [&](const std::string& path) { save_checkpoint(path, checkpoint); },
  };
  for (const auto& write : writers) {
    const std::string plain = written(write);
    OtherLocale other;
    EXPECT_EQ(written(write), plain);
  }
  EXPECT_NE(written(writers[0]).find("(2621, 401)"), std::string::npos);
}

TEST(Locale, FMT_13_files_are_read_under_another_locale) {
  TempDir dir;
  save_npy(dir.path("n"), empty({2621, 401}, kUInt8));
  Checkpoint checkpoint;
  checkpoint["progress"].values = {{"lr", 0.001}};
  save_checkpoint(dir.path("c"), checkpoint);
  OtherLocale other;
  EXPECT_EQ(load_npy(dir.path("n")).sizes(), (Shape{2621, 401}));
  EXPECT_EQ(load_checkpoint(dir.path("c")).at("progress").get_double("lr"), 0.001);
}

}  // namespace
}  // namespace gradus
