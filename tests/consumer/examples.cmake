# Installs BUILD without the CUDA back end into a fresh prefix, and builds all installed examples against it.
file(REMOVE_RECURSE ${WORK})
set(installed ${WORK}/prefix/share/doc/holdfast/examples)
foreach(step "--install;${BUILD};--prefix;${WORK}/prefix;--component;Unspecified"
             "-S;${installed};-B;${WORK}/build;-G;Ninja;-DCMAKE_PREFIX_PATH=${WORK}/prefix;${LAUNCHER}"
             "--build;${WORK}/build")
  execute_process(COMMAND ${CMAKE_COMMAND} ${step} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(GLOB folders LIST_DIRECTORIES true RELATIVE ${EXAMPLES} ${EXAMPLES}/*)
foreach(folder ${folders})
  file(GLOB programs ${WORK}/build/*${folder}*)
  if(IS_DIRECTORY ${EXAMPLES}/${folder} AND NOT programs)
    message(FATAL_ERROR "examples/${folder} was not built against the installed package")
  endif()
endforeach()
file(REMOVE_RECURSE ${WORK})
