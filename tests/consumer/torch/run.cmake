# Installs BUILD and its part for LibTorch into a fresh prefix, and builds and runs a program against it. Then a prefix
# without that part must say what is missing.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --component Unspecified)
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/without -G Ninja -DCMAKE_PREFIX_PATH=${WORK}/prefix
                RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE said)
if(result EQUAL 0 OR NOT said MATCHES "built[ \n]+without[ \n]+LibTorch")
  message(FATAL_ERROR "without the part for LibTorch, find_package() said: ${said}")
endif()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --component torch)
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=${WORK}/prefix ${LAUNCHER})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer WORKING_DIRECTORY ${WORK})

# The program of docs/torch.md, undisturbed and with a replica killed.
run(gzip images labels WORKING_DIRECTORY ${WORK})
run(${WORK}/build/train WORKING_DIRECTORY ${WORK})
file(RENAME ${WORK}/run ${WORK}/undisturbed)
run(${CMAKE_COMMAND} -E env HOLDFAST_FAULTS=rank=1,step=7,fault=kill ${WORK}/build/train WORKING_DIRECTORY ${WORK})
file(GLOB savepoints ${WORK}/undisturbed/savepoint-*.h5 ${WORK}/run/savepoint-*.h5)
run(${WORK}/prefix/bin/holdfast diff ${savepoints})
file(REMOVE_RECURSE ${WORK})
