// Built against an installed Gradus by install_test.cmake.
#include <cstdio>
#include <gradus/base/version.h>
#include <gradus/runtime/device.h>

int main() {
  const gradus::Device device = gradus::select_device("cpu");
  std::printf("Gradus %s on %s\n", GRADUS_VERSION, to_string(device).c_str());
  return device.is_cpu() ? 0 : 1;
}
