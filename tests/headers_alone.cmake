# Compiles each public header alone: it must include all that it needs.

file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/lib ${PROJECT_SOURCE_DIR}/lib/gradus/*.h)
file(GLOB_RECURSE kernels CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/kernels/*.cuh ${PROJECT_SOURCE_DIR}/kernels/*.h)
# The CUDA backend's own headers need CUDA's, and its .cu files include each of them; launch_cuda.cuh is for nvcc.
list(FILTER headers EXCLUDE REGEX "/backends/cuda/.*")
list(FILTER kernels EXCLUDE REGEX "/launch_cuda\\.cuh$")
set(sources)
foreach(header IN LISTS headers kernels)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/headers_alone/${header}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include <${header}>\n")
  list(APPEND sources ${source})
endforeach()

add_library(headers_alone OBJECT ${sources})
target_link_libraries(headers_alone PRIVATE gradus DNNL::dnnl)
target_compile_options(headers_alone PRIVATE -O0)
add_test(NAME headers_alone COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target headers_alone)
set_tests_properties(headers_alone PROPERTIES LABELS unit)
