# Compiler flags of every target in this project.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# No contraction: fused and separate operations must give the same numbers on every device (fma is written out where
# it is wanted). No errno: nothing reads it after a math call, and without it sqrt and its like vectorise.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off;-fno-math-errno;-Wall;-Wextra>")
if(GRADUS_NATIVE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-march=native>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)  # false alarms on std::string (GCC bug 105651)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-pass-failed>)  # "omp simd" asks, also where double's exp is a call
endif()
if(GRADUS_WERROR)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(CMAKE_GENERATOR STREQUAL "Ninja")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fdiagnostics-color=always>)
endif()

# -O1 after the build type's own level: with a sanitizer, -O3 takes twice as long to compile and runs no faster.
if(GRADUS_SANITIZE)
  add_compile_options(-O1)
endif()
if(GRADUS_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(GRADUS_SANITIZE STREQUAL "thread")
  # ThreadSanitizer cannot see libgomp's synchronisation: parallel loops run on std::thread instead, and of OpenMP
  # only the simd pragmas remain.
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -fopenmp-simd)
  add_link_options(-fsanitize=thread)
  add_compile_definitions(GRADUS_STD_THREADS)
elseif(GRADUS_SANITIZE)
  message(FATAL_ERROR "GRADUS_SANITIZE: expected address, thread or nothing, got '${GRADUS_SANITIZE}'")
endif()
