// The fence as an agent moves it and as its processes see it, through two mappings of one memory.

#include "memory/fence.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <chrono>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

using std::chrono::hours;

TEST(Fence, HasRunOutUntilItIsSet) {
  const Fence fence;
  const FenceView seen(fence.for_processes());

  EXPECT_TRUE(fence.has_run_out());
  EXPECT_TRUE(seen.has_run_out());
}

TEST(Fence, IsSeenByAProcessThatHadItBefore) {
  Fence fence;
  const FenceView seen(fence.for_processes());

  fence.set(boot_time_now() + hours(1));
  EXPECT_FALSE(seen.has_run_out());
  EXPECT_FALSE(fence.has_run_out());

  fence.set(boot_time_now());
  EXPECT_TRUE(seen.has_run_out());
}

TEST(Fence, CannotBeMovedByAProcess) {
  const Fence fence;
  const FileDescriptor given = fence.for_processes();

  EXPECT_EQ(::mmap(nullptr, 8, PROT_READ | PROT_WRITE, MAP_SHARED, given.value(), 0), MAP_FAILED);
  EXPECT_EQ(errno, EACCES);
}

TEST(Fence, RefusesMemoryThatIsTooSmall) {
  SharedMemory small = SharedMemory::create("small", 1);

  EXPECT_THROW(FenceView(small.read_only_descriptor()), Error);
}

}  // namespace
}  // namespace holdfast::recovery
