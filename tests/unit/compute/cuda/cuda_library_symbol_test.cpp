// The shared library's one symbol, as far as it works without a device.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/device_communicator.h"
#include "compute/cuda_library.h"
#include "holdfast/core/memory_space.h"
#include "support/rank_threads.h"

extern "C" holdfast::compute::CudaLibrary* holdfast_cuda_library(const char* interface,
                                                                 holdfast::compute::CudaLibraryLog log);

namespace holdfast {
namespace {

compute::CudaLibrary* library_of(const char* interface) {
  return holdfast_cuda_library(interface, [](LogLevel, std::string_view) {});
}

TEST(CudaLibrarySymbol, HandsNothingOutToAProgramOfAnotherBuild) {
  EXPECT_EQ(library_of("holdfast cuda interface 0"), nullptr);
  EXPECT_NE(library_of(compute::CudaLibrary::kInterface), nullptr);
}

// An application's own Trainable has such memory. The failure was a std::bad_cast, which did not end the run.
TEST(CudaLibrarySymbol, RefusesReplicasWhoseMemoryIsNotHoldfasts) {
  ThreadGroup group(2);
  const ShardAssignment assignment = ShardAssignment::even(2, 2);
  auto host = group.connect({.rank = 0, .size = 2, .assignment = assignment, .slots = 1, .float_count = 16});

  try {
    library_of(compute::CudaLibrary::kInterface)
        ->make_communicator(std::move(host), host_memory(), {.assignment = assignment, .gradient_floats = 16});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("a memory() of its own (cpu)"));
    EXPECT_THAT(error.what(), testing::HasSubstr("docs/gpu.md"));
  }
}

}  // namespace
}  // namespace holdfast
