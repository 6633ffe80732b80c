# The libraries that Gradus uses. `./gradus setup` installs them on Debian and Ubuntu; elsewhere these are the names.

set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)  # so that a project which adds this folder can link gradus
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(dnnl CONFIG REQUIRED)
find_package(fmt CONFIG REQUIRED)
find_package(Gloo CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(ZLIB REQUIRED)
if(NOT GRADUS_SANITIZE STREQUAL "thread")
  find_package(OpenMP REQUIRED COMPONENTS CXX)
endif()

if(GRADUS_BUILD_LESSONS OR GRADUS_BUILD_BENCHMARKS)
  find_package(CLI11 CONFIG REQUIRED)
endif()
if(GRADUS_BUILD_TESTS)
  find_package(GTest REQUIRED)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()
if(GRADUS_BUILD_BENCHMARKS)
  find_package(benchmark CONFIG REQUIRED)
endif()
