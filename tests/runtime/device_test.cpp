#include <gradus/base/stats.h>
#include <gradus/runtime/backend.h>
#include <gradus/runtime/device.h>
#include <gtest/gtest.h>

#include <string>

#include "support/expect_error.h"

namespace gradus {
namespace {

// The message and code of what f throws; "" if it throws nothing.
template <class F>
std::pair<std::string, std::string> thrown(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return {e.code(), e.what()};
  }
  return {};
}

TEST(Device, good_names) {
  const struct {
    const char* text;
    DeviceType type;
    int index;
    const char* written;
  } rows[] = {{"cpu", DeviceType::cpu, 0, "cpu"},
              {"cpu:0", DeviceType::cpu, 0, "cpu"},
              {"sim", DeviceType::sim, 0, "sim:0"},
              {"sim:1", DeviceType::sim, 1, "sim:1"},
              {"cuda", DeviceType::cuda, 0, "cuda:0"},
              {"cuda:7", DeviceType::cuda, 7, "cuda:7"},
              {"cuda:127", DeviceType::cuda, 127, "cuda:127"}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.text);
    const Device device(row.text);
    EXPECT_EQ(device, Device(row.type, row.index));
    EXPECT_EQ(device.type(), row.type);
    EXPECT_EQ(device.index(), row.index);
    EXPECT_EQ(to_string(device), row.written);
    EXPECT_EQ(device.is_cpu(), row.type == DeviceType::cpu);
    EXPECT_EQ(device.is_sim(), row.type == DeviceType::sim);
    EXPECT_EQ(device.is_cuda(), row.type == DeviceType::cuda);
  }
  EXPECT_EQ(Device(), Device("cpu"));
  EXPECT_FALSE(Device("cuda:0") == Device("cuda:1"));
}

TEST(Device, bad_names) {
  for (const char* text : {"",         " ",       "gpu",      "CPU",      "Cuda",
                           "cpu ",     " cpu",    "cuda:",    "cuda:-1",  "cuda:+1",
                           "cuda:1x",  "cuda: 1", "cuda:1.0", "cuda:128", "cuda:99999999999",
                           "cuda:0:1", "cuda1",   ":",        ":0",       "cpu:1",
                           "auto",     "mps",     "mps:0",    "xpu"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(thrown([&] { Device{text}; }).first, "E-DEVICE-NAME");
  }
}

TEST(Device, indices_that_cannot_be_are_refused_where_they_are_made) {
  static_assert(Device(DeviceType::cuda, 127).index() == 127);
  EXPECT_GRADUS_ERROR(Device(DeviceType::cuda, -1), "E-DEVICE-ORDINAL", "invalid device ordinal: cuda:-1");
  EXPECT_GRADUS_ERROR(Device(DeviceType::sim, 128), "E-DEVICE-ORDINAL", "invalid device ordinal: sim:128");
}

TEST(Device, messages_say_what_is_wrong) {
  auto message = [](const char* text) { return thrown([&] { Device{text}; }).second; };
  EXPECT_EQ(message("gpu"),
            "device: 'gpu' is not a device\n  hint: use cpu, sim, cuda, or one with an index such as cuda:1");
  EXPECT_EQ(message("mps"),
            "device: 'mps' needs Apple's Metal, which only macOS has\n  hint: use cpu, sim or cuda");
  EXPECT_EQ(message("cuda:x"),
            "device: 'cuda:x' has no valid index after the colon\n  hint: an index is a number from 0, as in "
            "cuda:1");
  EXPECT_EQ(message("cpu:1"), "device: 'cpu:1' does not exist: there is one cpu\n  hint: use cpu");
}

TEST(Device, select_device_takes_what_is_there) {
  EXPECT_EQ(select_device("cpu"), Device("cpu"));
  EXPECT_EQ(select_device("auto").is_cuda(), device_count(DeviceType::cuda) > 0);
  EXPECT_EQ(select_device(), select_device("auto"));
  EXPECT_EQ(thrown([] { select_device("mps"); }).first, "E-DEVICE-NAME");
}

TEST(Device, select_device_refuses_what_is_not_there) {
  for (const DeviceType type : {DeviceType::sim, DeviceType::cuda}) {
    const std::string name = to_string(type);
    const auto [code, text] = thrown([&] { select_device(name + ":100"); });
    if (device_count(type) > 0) {
      EXPECT_EQ(code, "E-DEVICE-ORDINAL");
      EXPECT_NE(text.find("invalid device ordinal: " + name + ":100"), std::string::npos) << text;
    } else {
      EXPECT_EQ(code, "E-DEVICE-UNAVAILABLE");
      EXPECT_NE(text.find("device: " + name + ":100 is not available: "), std::string::npos) << text;
      EXPECT_NE(text.find("--device cpu"), std::string::npos) << text;
    }
  }
}

TEST(Device, the_cpu_is_there) {
  EXPECT_EQ(device_count(DeviceType::cpu), 1);
  runtime::Backend& cpu = runtime::backend(Device());
  EXPECT_EQ(cpu.unavailable_reason(), "");
  EXPECT_FALSE(cpu.properties(0).name.empty());
  EXPECT_GE(cpu.properties(0).multiprocessors, 1);
  const MemoryInfo info = cpu.memory_info(0);
  EXPECT_GT(info.free, 0u);
  EXPECT_LE(info.free, info.total);
}

TEST(Device, synchronize_is_counted) {
  const Stats before = stats();
  synchronize();
  EXPECT_EQ((stats() - before).synchronizations, 1);
}

}  // namespace
}  // namespace gradus
