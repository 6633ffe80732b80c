# Installs a build into a scratch folder, then configures, builds and runs tests/install/ against it.
# Run as: cmake -DBUILD=<build folder> -DDIR=<scratch folder> -DCXX=<compiler> -DSYSROOT=<GRADUS_SYSROOT> -P install_test.cmake

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

if(SYSROOT)
  file(GLOB libraries ${SYSROOT}/usr/lib/*-linux-gnu)
  set(ENV{CMAKE_PREFIX_PATH} ${SYSROOT}/usr)
  set(ENV{LD_LIBRARY_PATH} ${libraries})
endif()

file(REMOVE_RECURSE ${DIR})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${DIR}/prefix)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/install -B ${DIR}/build -G Ninja
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${DIR}/prefix)
run(${CMAKE_COMMAND} --build ${DIR}/build)
run(${DIR}/build/consumer)
run(${DIR}/prefix/bin/gradus-run --nproc-per-node 2 ${DIR}/build/consumer)
