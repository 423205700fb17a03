# Fails if LIBRARY, which programs load, defines more than the one symbol that it hands out. A program that links another
# copy of the standard library would replace the others. NM lists the symbols.
execute_process(COMMAND ${NM} --dynamic --defined-only --demangle ${LIBRARY} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
if(NOT symbols MATCHES "^[0-9a-f]+ T holdfast_cuda_library\n$")
  message(FATAL_ERROR "${LIBRARY} defines more than holdfast_cuda_library: ${symbols}")
endif()
