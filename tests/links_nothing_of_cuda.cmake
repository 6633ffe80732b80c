# A program starts, and runs on cpu and sim, where there is no driver, cuBLAS, cuDNN or NCCL: it loads them when they are
# wanted and is linked to none. Run as: cmake -DREADELF=readelf -DPROGRAM=<file> -P links_nothing_of_cuda.cmake
execute_process(COMMAND ${READELF} -d ${PROGRAM} OUTPUT_VARIABLE dynamic RESULT_VARIABLE failed)
if(failed OR NOT dynamic MATCHES "NEEDED")
  message(FATAL_ERROR "${READELF} says nothing of ${PROGRAM}")
endif()
if(dynamic MATCHES "\\[(lib(cu[a-z]+|nccl|nvidia)[^]]*)\\]")
  message(FATAL_ERROR "${PROGRAM} needs ${CMAKE_MATCH_1} to start")
endif()
