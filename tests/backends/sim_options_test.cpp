// What the environment may say of the simulated device, and what it may not.
#include <gradus/backends/sim/options.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/expect_error.h"

namespace gradus::sim {
namespace {

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(SimOptions, read_from_the_environment) {
  const Variable devices("GRADUS_SIM_DEVICES", "8"), memory("GRADUS_SIM_MEMORY", "1.5GiB"),
      link("GRADUS_SIM_LINK", "12GB"), jitter("GRADUS_SIM_JITTER", "2.5"), races("GRADUS_SIM_RACES", "1"),
      allocation("GRADUS_SIM_FAIL_ALLOCATION", "3"), loss("GRADUS_SIM_LOSE_DEVICE", "100");
  const Options o = options_from_environment();
  EXPECT_EQ(o.devices, 8);
  EXPECT_EQ(o.memory, size_t{3} << 29);
  EXPECT_EQ(o.link, 12e9);
  EXPECT_EQ(o.jitter_us, 2.5);
  EXPECT_TRUE(o.races);
  EXPECT_EQ(o.fail_allocation, 3);
  EXPECT_EQ(o.lose_device, 100);
  EXPECT_FALSE(o.launch_blocking);
}

TEST(SimOptions, launch_blocking_has_cudas_name_too_and_ours_wins) {
  const Variable cuda("CUDA_LAUNCH_BLOCKING", "1");
  EXPECT_TRUE(options_from_environment().launch_blocking);
  const Variable ours("GRADUS_LAUNCH_BLOCKING", "0");
  EXPECT_FALSE(options_from_environment().launch_blocking);
}

TEST(SimOptions, an_empty_variable_is_as_none) {
  const Variable devices("GRADUS_SIM_DEVICES", "");
  EXPECT_EQ(options_from_environment().devices, Options().devices);
}

TEST(SimOptions, refuse_what_they_cannot_read_and_name_it) {
  struct Row {
    const char *variable, *value, *meaning;
  };
  for (const Row& row : {Row{"GRADUS_SIM_DEVICES", "0", "a number of devices from 1 to 8"},
                         {"GRADUS_SIM_DEVICES", "9", "a number of devices from 1 to 8"},
                         {"GRADUS_SIM_DEVICES", "2.5", "a number of devices from 1 to 8"},
                         {"GRADUS_SIM_DEVICES", "two", "a number of devices from 1 to 8"},
                         {"GRADUS_SIM_MEMORY", "17GiB", "a size from 1MiB to 16GiB"},
                         {"GRADUS_SIM_MEMORY", "-1", "a size from 1MiB to 16GiB"},
                         {"GRADUS_SIM_MEMORY", "nan", "a size from 1MiB to 16GiB"},
                         {"GRADUS_SIM_MEMORY", "4 GiB", "a size from 1MiB to 16GiB"},
                         {"GRADUS_SIM_MEMORY", "1e999", "a size from 1MiB to 16GiB"},
                         {"GRADUS_SIM_LINK", "fast", "a number of bytes a second"},
                         {"GRADUS_SIM_JITTER", "1e9", "a number of microseconds"},
                         {"GRADUS_SIM_RACES", "yes", "0 or 1"},
                         {"CUDA_LAUNCH_BLOCKING", "2", "0 or 1"}}) {
    const Variable variable(row.variable, row.value);
    EXPECT_GRADUS_ERROR(options_from_environment(), "E-ENVIRONMENT",
                        str(row.variable, ": '", row.value, "' is not ", row.meaning));
  }
}

TEST(SimOptions, configure_refuses_what_is_out_of_range_and_changes_nothing) {
  Options wrong = options();
  wrong.devices = 9;
  EXPECT_GRADUS_ERROR(configure(wrong), "E-ARG", "devices must be from 1 to 8, got 9");
  wrong = options();
  wrong.memory = 0;
  EXPECT_GRADUS_ERROR(configure(wrong), "E-ARG", "memory must be from 1 byte");
  wrong = options();
  wrong.jitter_us = -1;
  EXPECT_GRADUS_ERROR(configure(wrong), "E-ARG", "jitter_us must be from 0 to 1e+06, got -1");
  wrong = options();
  wrong.link = 1e-9;
  EXPECT_GRADUS_ERROR(configure(wrong), "E-ARG", "link must be 0 or at least 1 byte a second, got 1e-09");
  EXPECT_EQ(options().devices, Options().devices);
}

}  // namespace
}  // namespace gradus::sim
