# Finds nvcc. Sets GRADUS_HAVE_CUDA; AUTO is silent where there is none, ON fails. HOST needs CUDA's headers only: it
# compiles the backend's sources with the host compiler, against a CUDA runtime on the CPU (tests/cuda_on_host/), so that
# tests can run them without a GPU and under a sanitizer.

# The one list of GPUs that device code is compiled for, in CMake's words: 80-real is a binary for capability 8.0, 90 a
# binary for 9.0 and PTX that the driver compiles for newer GPUs. "release" is every GPU since 7.5.
set(GRADUS_CUDA_ARCHS "80-real;90" CACHE STRING "GPUs to compile for: 80-real;90 (the default), 90a-real, …, or release")
set(GRADUS_RELEASE_ARCHS 75-real 80-real 86-real 89-real 90-real 100-real 120)

function(gradus_cuda_architectures)
  if(CMAKE_CUDA_ARCHITECTURES)  # named by a project of which this one is a part
    return()
  endif()
  set(archs ${GRADUS_CUDA_ARCHS})
  if(archs STREQUAL "release")
    set(archs ${GRADUS_RELEASE_ARCHS})
  endif()
  foreach(arch IN LISTS archs)
    if(NOT arch MATCHES "^[1-9][0-9]+[af]?(-real|-virtual)?$")
      message(FATAL_ERROR "GRADUS_CUDA_ARCHS: expected a list such as 80-real;90 or the word release, got '${GRADUS_CUDA_ARCHS}'")
    endif()
  endforeach()
  set(CMAKE_CUDA_ARCHITECTURES ${archs} PARENT_SCOPE)
endfunction()

set(GRADUS_HAVE_CUDA OFF)
if(NOT GRADUS_CUDA MATCHES "^(AUTO|ON|OFF|HOST)$")
  message(FATAL_ERROR "GRADUS_CUDA: expected AUTO, ON, OFF or HOST, got '${GRADUS_CUDA}'")
endif()
# cuDNN's header lies beside CUDA's, or, in NVIDIA's Python wheels, in a folder of its own. GRADUS_CUDA_INCLUDE_DIRS are
# the headers, GRADUS_CUDA_LIBRARY_FOLDERS ("a:b") where the libraries are looked for when the loader knows of none.
macro(gradus_find_cuda_libraries)
  set(required ${CMAKE_MINIMUM_REQUIRED_VERSION})
  set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)  # else CMake 3.25 deprecates nvToolsExt, which CUDA 13 has not, and fails
  find_package(CUDAToolkit 12.4 REQUIRED)
  set(CMAKE_MINIMUM_REQUIRED_VERSION ${required})
  find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
    ${CUDAToolkit_BIN_DIR}/../../cudnn/include)
  set(GRADUS_CUDA_INCLUDE_DIRS ${CUDAToolkit_INCLUDE_DIRS} ${CUDNN_INCLUDE_DIR})
  list(REMOVE_DUPLICATES GRADUS_CUDA_INCLUDE_DIRS)
  set(folders ${CUDAToolkit_LIBRARY_DIR})
  foreach(library cudnn nccl)
    get_filename_component(folder ${CUDAToolkit_BIN_DIR}/../../${library}/lib ABSOLUTE)
    if(IS_DIRECTORY ${folder})
      list(APPEND folders ${folder})
    endif()
  endforeach()
  list(JOIN folders ":" GRADUS_CUDA_LIBRARY_FOLDERS)
endmacro()

if(GRADUS_CUDA MATCHES "^(AUTO|ON)$" AND NOT GRADUS_SANITIZE)
  include(CheckLanguage)
  gradus_cuda_architectures()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.4)
      message(STATUS "CUDA ${CMAKE_CUDA_COMPILER_VERSION} is too old: 12.4 or newer is needed")
    else()
      gradus_find_cuda_libraries()
      if(CUDNN_INCLUDE_DIR)
        set(GRADUS_HAVE_CUDA ON)
      else()
        message(STATUS "cuDNN's header, cudnn.h, was not found beside CUDA's; CUDNN_INCLUDE_DIR names its folder")
      endif()
    endif()
  endif()
  if(GRADUS_CUDA STREQUAL "ON" AND NOT GRADUS_HAVE_CUDA)
    message(FATAL_ERROR "GRADUS_CUDA=ON, but no nvcc 12.4 or newer with cuDNN was found; set CUDACXX to its path")
  endif()
elseif(GRADUS_CUDA STREQUAL "HOST")
  gradus_find_cuda_libraries()
  set(GRADUS_CUDA_LIBRARY_FOLDERS "")  # what stands in for them is linked
endif()
message(STATUS "CUDA code: ${GRADUS_HAVE_CUDA}")

# gradus_compile_cuda_on_host(name sources...): CUDA sources as an object library for the CPU, where launch_cuda.cuh and
# the vendor libraries are those of tests/cuda_on_host/.
function(gradus_compile_cuda_on_host name)
  set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX)
  add_library(${name} OBJECT ${ARGN})
  target_include_directories(${name} BEFORE PRIVATE ${PROJECT_SOURCE_DIR}/tests/cuda_on_host/include
    ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/lib ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/lib/generated)
  target_include_directories(${name} SYSTEM PRIVATE ${GRADUS_CUDA_INCLUDE_DIRS})
  target_link_libraries(${name} PRIVATE Threads::Threads fmt::fmt)
  if(OpenMP_CXX_FOUND)
    target_link_libraries(${name} PRIVATE OpenMP::OpenMP_CXX)
  endif()
  target_compile_definitions(${name} PRIVATE GRADUS_CUDA_ON_HOST)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)  # compiled often, run briefly
endfunction()

# gradus_cuda_on_host(name): the whole CUDA backend so.
function(gradus_cuda_on_host name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lib/gradus/backends/cuda/*.cu
    ${PROJECT_SOURCE_DIR}/lib/gradus/backends/cuda/*.cpp ${PROJECT_SOURCE_DIR}/tests/cuda_on_host/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  gradus_compile_cuda_on_host(${name} ${sources})
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
  # What ptxas says of each kernel (registers, shared memory, spills) is kept beside the object, as x.cu.o.ptxas;
  # lib/driver/registers.py reads it.
  find_package(Python3 QUIET COMPONENTS Interpreter)
  if(Python3_FOUND)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/lib/cmake/keep_ptxas_output.py
      ${CMAKE_CUDA_COMPILER_LAUNCHER})
    add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xptxas -v>")
  endif()
endif()
