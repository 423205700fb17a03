# Installs BUILD without the CUDA back end into a fresh prefix, builds the consumer project and two of the installed
# examples against it, and runs the programs of the project.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed: ${ARGN}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
# CMake's name for what has no component.
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --component Unspecified)
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G Ninja -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer ${WORK}/run)
run(${WORK}/build/reader ${WORK}/run/savepoint-0000000012.h5)
run(${WORK}/prefix/bin/holdfast verify ${WORK}/run)
run(${WORK}/prefix/bin/holdfast run --replicas 2 --run-dir ${WORK}/worker-run -- ${WORK}/build/worker)
# The first program of the documents, and one in C. The others are built by examples.cmake.
set(examples ${WORK}/prefix/share/doc/holdfast/examples)
# Not optimised, which takes half of the time.
run(${CMAKE_COMMAND} -S ${examples} -B ${WORK}/examples -G Ninja -DCMAKE_PREFIX_PATH=${WORK}/prefix ${LAUNCHER}
    -DCMAKE_CXX_FLAGS_RELEASE=-O0 -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON)
run(${CMAKE_COMMAND} --build ${WORK}/examples --target readme c_worker)
# The library is neither next to the program nor in the loader's folders. A program in a build folder must find it, and
# an installed one, too.
run(${CMAKE_COMMAND} -E copy ${WORK}/build/backend/libholdfast_cuda.so ${WORK}/prefix/lib/libholdfast_cuda.so)
run(${CMAKE_COMMAND} --install ${WORK}/build --prefix ${WORK}/elsewhere)
run(${WORK}/build/devices)
run(${WORK}/elsewhere/bin/devices)
