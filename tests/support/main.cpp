// main() of the test programs: as gmock_main's, with the simulated device's race detector on, and
// convolutions of every device in full float32. On a GPU streams get queues of their own, as many as there
// are: two in one queue may wait for each other, which tests of their order would take for a fault.
#include <gmock/gmock.h>
#include <gradus/runtime/math_mode.h>

#include <cstdlib>

int main(int argc, char** argv) {
  ::setenv("GRADUS_SIM_RACES", "1", /*overwrite=*/0);
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
  gradus::backends::cudnn::allow_tf32 = false;
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
