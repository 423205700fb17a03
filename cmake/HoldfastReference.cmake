# The API reference, HTML pages that are installed with the headers. Built by default where Doxygen is found, and again when
# a header changes. It fails where a public member has no comment.

find_program(HOLDFAST_DOXYGEN doxygen)
if(NOT HOLDFAST_DOXYGEN OR NOT PROJECT_IS_TOP_LEVEL OR HOLDFAST_SANITIZE)
  return()
endif()
set(patterns scripts/doc/*)
foreach(part base format exchange recovery testing sdk)
  list(APPEND patterns ${part}/include/*.h)
endforeach()
file(GLOB_RECURSE documented CONFIGURE_DEPENDS ${patterns})
set(pages ${CMAKE_BINARY_DIR}/reference)
add_custom_command(OUTPUT ${pages}/index.html COMMAND ${CMAKE_SOURCE_DIR}/scripts/reference ${pages}
                   DEPENDS ${documented} ${CMAKE_SOURCE_DIR}/scripts/reference VERBATIM
                   COMMENT "Making the API reference")
add_custom_target(reference ALL DEPENDS ${pages}/index.html)
