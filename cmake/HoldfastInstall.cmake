include(CMakePackageConfigHelpers)
install(TARGETS holdfast_base holdfast_format holdfast_exchange holdfast_recovery holdfast_resilience_testing holdfast_sdk EXPORT HoldfastTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS holdfast_worker EXPORT HoldfastTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(HOLDFAST_BUILDS_PARQUET)
  install(TARGETS holdfast_parquet EXPORT HoldfastTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(HOLDFAST_BUILDS_TORCH)
  # A component of its own, as that of CUDA, with targets of its own: the package is whole without it.
  install(TARGETS holdfast_torch EXPORT HoldfastTorchTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT torch)
  install(DIRECTORY sdk/torch/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT torch FILES_MATCHING PATTERN "*.h")
  install(EXPORT HoldfastTorchTargets NAMESPACE Holdfast:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Holdfast COMPONENT torch)
endif()
if(HOLDFAST_BUILDS_CUDA)
  # Names no folder of this machine: cuDNN is where the loader looks, or CMAKE_INSTALL_RPATH says where.
  # A component of its own: a test installs the rest where this was not built. An install of all components needs it.
  install(TARGETS holdfast_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cuda)
endif()
install(TARGETS holdfast RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS holdfast-hdf5-reader RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/holdfast)
foreach(part base format exchange recovery testing sdk)
  install(DIRECTORY ${part}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
endforeach()
# Documents with the links between them, the sources of the examples, and the API reference where it was built.
set(documents ${CMAKE_INSTALL_DATAROOTDIR}/doc/holdfast)
install(FILES README.md CHANGELOG.md CONTRIBUTING.md ARCHITECTURE.md SECURITY.md LICENSE DESTINATION ${documents})
install(DIRECTORY docs examples DESTINATION ${documents})
install(DIRECTORY ${CMAKE_BINARY_DIR}/reference DESTINATION ${documents} OPTIONAL)
install(EXPORT HoldfastTargets NAMESPACE Holdfast:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Holdfast)
configure_package_config_file(cmake/HoldfastConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/HoldfastConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Holdfast)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/HoldfastConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/HoldfastConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/HoldfastConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Holdfast)
