# Installs BUILD as a user does, and looks for the CUDA back end next to the rest.
file(REMOVE_RECURSE ${WORK})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
foreach(file ${LIBRARIES}/libholdfast_cuda.so ${LIBRARIES}/libholdfast_sdk.a bin/holdfast)
  if(NOT EXISTS ${WORK}/${file})
    message(FATAL_ERROR "cmake --install left out ${file}")
  endif()
endforeach()
file(REMOVE_RECURSE ${WORK})
