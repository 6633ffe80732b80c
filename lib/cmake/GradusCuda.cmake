# Finds nvcc. Sets GRADUS_HAVE_CUDA; AUTO is silent where there is none, ON fails. HOST needs CUDA's headers only: it
# compiles the backend's sources with the host compiler, against a CUDA runtime on the CPU (tests/cuda_on_host/), so that
# tests can run them without a GPU and under a sanitizer.

set(GRADUS_HAVE_CUDA OFF)
if(NOT GRADUS_CUDA MATCHES "^(AUTO|ON|OFF|HOST)$")
  message(FATAL_ERROR "GRADUS_CUDA: expected AUTO, ON, OFF or HOST, got '${GRADUS_CUDA}'")
endif()
if(GRADUS_CUDA MATCHES "^(AUTO|ON)$" AND NOT GRADUS_SANITIZE)
  include(CheckLanguage)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.4)
      set(GRADUS_HAVE_CUDA ON)
    else()
      message(STATUS "CUDA ${CMAKE_CUDA_COMPILER_VERSION} is too old: 12.4 or newer is needed")
    endif()
  endif()
  if(GRADUS_CUDA STREQUAL "ON" AND NOT GRADUS_HAVE_CUDA)
    message(FATAL_ERROR "GRADUS_CUDA=ON, but no nvcc 12.4 or newer was found; set CUDACXX to its path")
  endif()
endif()
message(STATUS "CUDA code: ${GRADUS_HAVE_CUDA}")
if(GRADUS_HAVE_CUDA OR GRADUS_CUDA STREQUAL "HOST")
  find_package(CUDAToolkit 12.4 REQUIRED)
endif()

# gradus_cuda_on_host(name): the CUDA backend as an object library for the CPU, with the runtime and the vendor libraries
# that stand in for CUDA's.
function(gradus_cuda_on_host name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lib/gradus/backends/cuda/*.cu
    ${PROJECT_SOURCE_DIR}/lib/gradus/backends/cuda/*.cpp ${PROJECT_SOURCE_DIR}/tests/cuda_on_host/*.cpp)
  set_source_files_properties(${sources} PROPERTIES LANGUAGE CXX)
  add_library(${name} OBJECT ${sources})
  target_include_directories(${name} BEFORE PRIVATE ${PROJECT_SOURCE_DIR}/tests/cuda_on_host/include
    ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/lib ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/lib/generated)
  target_include_directories(${name} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(${name} PRIVATE Threads::Threads fmt::fmt)
  target_compile_definitions(${name} PRIVATE GRADUS_CUDA_ON_HOST)
  if(NOT GRADUS_SANITIZE)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O2>)
  endif()
endfunction()

if(GRADUS_HAVE_CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 knows nvcc up to C++17
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  # The CPU's flags in nvcc's words.
  add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;--expt-relaxed-constexpr;--extended-lambda>")
  add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xcompiler -ffp-contract=off>")
  if(GRADUS_WERROR)
    add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:SHELL:--Werror all-warnings>")
  endif()
endif()
