# Compiles the write-once kernel bodies as CUDA, one file each, where there is nvcc. Nothing is run: the check is that
# device code accepts them. tests/kernels/*.cu instantiate the templates.

file(GLOB_RECURSE kernels CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/kernels/*.cuh)
file(GLOB instantiations CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/kernels/*.cu)
set(sources ${instantiations})
foreach(kernel IN LISTS kernels)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/kernels_cuda/${kernel}.cu)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include <${kernel}>\n")
  list(APPEND sources ${source})
endforeach()

if(sources)
  add_library(kernels_cuda_check OBJECT ${sources})
  target_include_directories(kernels_cuda_check PRIVATE ${PROJECT_SOURCE_DIR}/lib ${PROJECT_SOURCE_DIR}
    ${PROJECT_BINARY_DIR}/lib/generated)
  target_compile_options(kernels_cuda_check PRIVATE "SHELL:--Werror all-warnings")
endif()
