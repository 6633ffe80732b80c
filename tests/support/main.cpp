// main() of the test programs: as gmock_main's, with the simulated device's race detector on, and
// convolutions of every device in full float32.
#include <gmock/gmock.h>
#include <gradus/runtime/math_mode.h>

#include <cstdlib>

int main(int argc, char** argv) {
  ::setenv("GRADUS_SIM_RACES", "1", /*overwrite=*/0);
  gradus::backends::cudnn::allow_tf32 = false;
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
