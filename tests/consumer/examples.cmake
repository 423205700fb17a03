# Installs BUILD without the CUDA back end into a fresh prefix, and builds all installed examples against it.
file(REMOVE_RECURSE ${WORK})
set(installed ${WORK}/prefix/share/doc/holdfast/examples)
# The part for LibTorch is a component of its own, which was built if LibTorch was found.
set(torch "-E;true")
if(TORCH)
  set(torch "--install;${BUILD};--prefix;${WORK}/prefix;--component;torch")
endif()
foreach(step "--install;${BUILD};--prefix;${WORK}/prefix;--component;Unspecified" "${torch}"
             "-S;${installed};-B;${WORK}/build;-G;Ninja;-DCMAKE_PREFIX_PATH=${WORK}/prefix;${LAUNCHER}"
             "--build;${WORK}/build")
  execute_process(COMMAND ${CMAKE_COMMAND} ${step} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(GLOB folders LIST_DIRECTORIES true RELATIVE ${EXAMPLES} ${EXAMPLES}/*)
if(NOT TORCH)
  list(REMOVE_ITEM folders libtorch)
endif()
foreach(folder ${folders})
  file(GLOB programs ${WORK}/build/*${folder}*)
  if(IS_DIRECTORY ${EXAMPLES}/${folder} AND NOT programs)
    message(FATAL_ERROR "examples/${folder} was not built against the installed package")
  endif()
endforeach()
file(REMOVE_RECURSE ${WORK})
