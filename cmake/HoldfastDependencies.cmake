# Everything that Holdfast stands on, found once, and one line for each optional part.

include(GNUInstallDirs)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(dnnl REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
# Not FindHDF5: that needs a C compiler in every project which uses Holdfast.
pkg_check_modules(hdf5 REQUIRED IMPORTED_TARGET hdf5>=1.10)

if(HOLDFAST_BUILD_TESTS)
  find_package(GTest 1.12 REQUIRED)
endif()
if(HOLDFAST_BUILD_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()

find_package(CUDAToolkit QUIET)
find_path(HOLDFAST_CUDNN_INCLUDE cudnn.h PATHS ${CUDAToolkit_INCLUDE_DIRS})
find_path(HOLDFAST_NCCL_INCLUDE nccl.h PATHS ${CUDAToolkit_INCLUDE_DIRS})

function(holdfast_report name found meaning_found meaning_missing)
  if(found)
    message(STATUS "Holdfast: ${name} found: ${meaning_found}")
  else()
    message(STATUS "Holdfast: ${name} not found: ${meaning_missing}")
  endif()
endfunction()
holdfast_report(CUDA "${CUDAToolkit_FOUND}" "version ${CUDAToolkit_VERSION}; this version has no CUDA back end yet, so training runs on CPUs"
                "training runs on CPUs")
holdfast_report(cuDNN "${HOLDFAST_CUDNN_INCLUDE}" "unused until the CUDA back end exists" "not needed on CPUs")
holdfast_report(NCCL "${HOLDFAST_NCCL_INCLUDE}" "unused until the CUDA back end exists; replicas meet in shared memory"
                "replicas meet in shared memory")
