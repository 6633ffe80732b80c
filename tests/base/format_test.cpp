#include <gradus/base/format.h>
#include <gtest/gtest.h>

namespace gradus {
namespace {

TEST(FormatBytes, units) {
  const struct {
    int64_t bytes;
    const char* text;
  } rows[] = {{0, "0 bytes"},
              {1023, "1023 bytes"},
              {1024, "1.00 KiB"},
              {1536, "1.50 KiB"},
              {(1 << 20) - 1, "1024.00 KiB"},
              {1 << 20, "1.00 MiB"},
              {int64_t{5} << 30, "5.00 GiB"},
              {(int64_t{3} << 40) / 2, "1.50 TiB"},
              {int64_t{1} << 55, "32768.00 TiB"}};
  for (const auto& row : rows) EXPECT_EQ(format_bytes(row.bytes), row.text);
}

}  // namespace
}  // namespace gradus
