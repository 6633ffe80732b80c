// main() of the test programs: as gmock_main's, with the simulated device's race detector on.
#include <gmock/gmock.h>

#include <cstdlib>

int main(int argc, char** argv) {
  ::setenv("GRADUS_SIM_RACES", "1", /*overwrite=*/0);
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
