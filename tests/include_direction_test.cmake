# Sees include_direction.cmake refuse each kind of wrong include. Run as: cmake -DDIR=<scratch folder> -P this file

function(expect_refused path include words)
  file(REMOVE_RECURSE ${DIR})
  file(WRITE ${DIR}/lib/gradus/base/good.h "#include <vector>\n")
  file(WRITE ${DIR}/${path} "// A comment.\n#include ${include}\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${DIR} -P ${CMAKE_CURRENT_LIST_DIR}/include_direction.cmake
    RESULT_VARIABLE status ERROR_VARIABLE text OUTPUT_QUIET)
  if(status EQUAL 0)
    message(SEND_ERROR "${path} with ${include} was accepted")
  elseif(NOT text MATCHES "${words}")
    message(SEND_ERROR "${path} with ${include}: expected '${words}' in: ${text}")
  endif()
endfunction()

expect_refused(lib/gradus/base/a.h "<gradus/tensor/tensor.h>" "must not include")
expect_refused(lib/gradus/tensor/a.cpp "\"gradus/ops/add.h\"" "must not include")
expect_refused(lib/gradus/ops/a.cpp "<gradus/backends/cpu/conv.h>" "must not include")
expect_refused(lib/gradus/backends/cpu/a.cpp "<gradus/backends/sim/sim.h>" "must not include")
expect_refused(lib/gradus/nn/a.h "<gradus/optim/sgd.h>" "must not include")
expect_refused(kernels/a.cuh "<gradus/tensor/tensor.h>" "must not include")
expect_refused(lib/gradus/data/a.h "<gradus/gradus.h>" "umbrella")
expect_refused(lib/gradus/ops/a.h "<cuda_runtime.h>" "CUDA headers")
expect_refused(lib/gradus/io/a.h "<nlohmann/json.hpp>" "nlohmann-json")
