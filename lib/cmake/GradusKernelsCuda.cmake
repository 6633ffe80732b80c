# Compiles the matmul ladder's kernels as CUDA, one file each, where there is nvcc: no operation uses them. Nothing is run:
# the check is that device code accepts them, and what ptxas says of their registers.

file(GLOB_RECURSE kernels CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/kernels/ladder/*.cuh)
# Step 9 of the matmul ladder has instructions of sm_90a alone, so it is a target of its own.
set(for_90a kernels/ladder/matmul/9_warpgroup.cuh)
list(REMOVE_ITEM kernels ${for_90a})
set(sources)
foreach(kernel IN LISTS kernels)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/kernels_cuda/${kernel}.cu)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include <${kernel}>\n")
  list(APPEND sources ${source})
endforeach()

set(source_90a ${CMAKE_CURRENT_BINARY_DIR}/kernels_cuda/${for_90a}.cu)
file(CONFIGURE OUTPUT ${source_90a} CONTENT "#include <${for_90a}>\n")

function(gradus_check_kernels target)
  add_library(${target} OBJECT ${ARGN})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/lib ${PROJECT_SOURCE_DIR}
    ${PROJECT_BINARY_DIR}/lib/generated)
  target_compile_options(${target} PRIVATE "SHELL:--Werror all-warnings")
endfunction()
gradus_check_kernels(kernels_cuda_check ${sources})
gradus_check_kernels(kernels_cuda_check_90a ${source_90a})
set_target_properties(kernels_cuda_check_90a PROPERTIES CUDA_ARCHITECTURES 90a-real)
