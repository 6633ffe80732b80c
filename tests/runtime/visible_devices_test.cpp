#include <gmock/gmock.h>
#include <gradus/runtime/visible_devices.h>

#include <cstdlib>

namespace gradus::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kUuids = {"GPU-aaaa-1", "GPU-aaaa-2", "GPU-bbbb-1"};

TEST(VisibleDevices, ENV_03_unset_shows_all) {
  const VisibleDevices v = parse_visible_devices(std::nullopt, 4);
  EXPECT_THAT(v.devices, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(v.warning, "");
}

TEST(VisibleDevices, ENV_03_empty_hides_all) {
  for (const char* text : {"", "  "}) {
    const VisibleDevices v = parse_visible_devices(text, 4);
    EXPECT_THAT(v.devices, IsEmpty());
    EXPECT_EQ(v.warning, std::string("CUDA_VISIBLE_DEVICES='") + text + "' hides all 4 devices");
  }
}

TEST(VisibleDevices, ENV_03_one_device_is_renumbered) {
  const VisibleDevices v = parse_visible_devices("2", 4);
  EXPECT_THAT(v.devices, ElementsAre(2));  // the program sees it as index 0
  EXPECT_EQ(v.warning, "");
}

TEST(VisibleDevices, ENV_03_an_invalid_entry_ends_the_list) {
  const VisibleDevices v = parse_visible_devices("0,2,-1,1", 4);
  EXPECT_THAT(v.devices, ElementsAre(0, 2));
  EXPECT_EQ(v.warning,
            "CUDA_VISIBLE_DEVICES='0,2,-1,1' shows 2 of 4 devices: it ends at '-1', which is none");
  EXPECT_THAT(parse_visible_devices("1,x,2", 4).devices, ElementsAre(1));
  EXPECT_THAT(parse_visible_devices("3,,2", 4).devices, ElementsAre(3));
  EXPECT_THAT(parse_visible_devices("3,4,2", 4).devices, ElementsAre(3));
  EXPECT_THAT(parse_visible_devices("1,99999999999999999999", 4).devices, ElementsAre(1));
}

TEST(VisibleDevices, ENV_03_a_device_named_twice_hides_all) {
  const VisibleDevices v = parse_visible_devices("1,1", 4);
  EXPECT_THAT(v.devices, IsEmpty());
  EXPECT_EQ(v.warning, "CUDA_VISIBLE_DEVICES='1,1' hides all 4 devices: it names device 1 twice");
  EXPECT_THAT(parse_visible_devices("0,1,2,1", 4).devices, IsEmpty());
  EXPECT_THAT(parse_visible_devices("0,-1,0", 4).devices, ElementsAre(0));  // the list ended before
}

TEST(VisibleDevices, ENV_03_an_index_out_of_range_hides_all_and_warns) {
  const VisibleDevices v = parse_visible_devices("2", 1);
  EXPECT_THAT(v.devices, IsEmpty());
  EXPECT_EQ(v.warning, "CUDA_VISIBLE_DEVICES='2' hides the one device: there is no device '2'");
}

TEST(VisibleDevices, ENV_03_set_after_the_first_query_it_is_ignored) {
  const std::optional<std::string> before = cuda_visible_devices();
  ASSERT_EQ(setenv("CUDA_VISIBLE_DEVICES", "3,1", 1), 0);
  EXPECT_EQ(cuda_visible_devices(), before);
  if (before) {
    setenv("CUDA_VISIBLE_DEVICES", before->c_str(), 1);
  } else {
    unsetenv("CUDA_VISIBLE_DEVICES");
  }
}

TEST(VisibleDevices, order_blanks_and_text_after_digits) {
  EXPECT_THAT(parse_visible_devices("3,0", 4).devices, ElementsAre(3, 0));
  EXPECT_THAT(parse_visible_devices(" 1 , 2\t", 4).devices, ElementsAre(1, 2));
  EXPECT_THAT(parse_visible_devices("1gpu,+2", 4).devices, ElementsAre(1, 2));
  EXPECT_THAT(parse_visible_devices("0,1,", 2).devices, ElementsAre(0, 1));
}

TEST(VisibleDevices, uuids_by_their_beginning) {
  EXPECT_THAT(parse_visible_devices("GPU-b,GPU-aaaa-1", 3, kUuids).devices, ElementsAre(2, 0));
  EXPECT_THAT(parse_visible_devices("GPU-aaaa", 3, kUuids).devices, IsEmpty());  // two begin so
  EXPECT_THAT(parse_visible_devices("GPU-bbbb-1,GPU-b", 3, kUuids).devices, IsEmpty());
  EXPECT_EQ(parse_visible_devices("GPU-c", 3, kUuids).warning,
            "CUDA_VISIBLE_DEVICES='GPU-c' hides all 3 devices: there is no device 'GPU-c'");
}

TEST(VisibleDevices, without_devices_there_is_nothing_to_hide) {
  for (const char* text : {"", "0", "0,0", "x"}) {
    const VisibleDevices v = parse_visible_devices(text, 0);
    EXPECT_THAT(v.devices, IsEmpty());
    EXPECT_EQ(v.warning, "");
  }
}

}  // namespace
}  // namespace gradus::runtime
