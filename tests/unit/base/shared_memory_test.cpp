// Shared memory between mappings and between processes: who may write it, and how long it exists.

#include "holdfast/base/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

constexpr std::size_t kBytes = 10'000;  // not a multiple of a page

bool is_open_descriptor(int descriptor) {
  return ::fcntl(descriptor, F_GETFD) >= 0;
}

TEST(FileDescriptor, ClosesWhatItOwns) {
  int value = -1;
  {
    const FileDescriptor descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    value = descriptor.value();

    ASSERT_TRUE(is_open_descriptor(value));
  }

  EXPECT_FALSE(is_open_descriptor(value));
}

TEST(FileDescriptor, HasExactlyOneOwner) {
  FileDescriptor first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int value = first.value();

  FileDescriptor second(std::move(first));
  FileDescriptor third;
  third = std::move(second);

  EXPECT_EQ(third.value(), value);
  EXPECT_TRUE(is_open_descriptor(value));
  const int released = third.release();
  EXPECT_FALSE(third.is_open());
  EXPECT_TRUE(is_open_descriptor(released));
  ::close(released);
}

TEST(SharedMemory, StartsZeroed) {
  const SharedMemory memory = SharedMemory::create("test", kBytes);

  const auto bytes = memory.readable();

  EXPECT_EQ(bytes.size(), kBytes);
  EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(SharedMemory, ShowsInOneMappingWhatIsWrittenThroughAnother) {
  SharedMemory memory = SharedMemory::create("test", kBytes);
  const SharedMemory view = SharedMemory::map_read_only(memory.read_only_descriptor(), kBytes);

  memory.writable()[kBytes - 1] = std::byte{42};

  EXPECT_EQ(view.readable()[kBytes - 1], std::byte{42});
}

TEST(SharedMemory, ShowsInAnotherProcessWhatThisOneWrites) {
  SharedMemory memory = SharedMemory::create("test", kBytes);
  memory.writable()[17] = std::byte{42};

  const pid_t child = ::fork();
  if (child == 0) {
    // Only calls that are safe after fork() in a process with threads: no test macros, no return.
    memory.writable()[18] = static_cast<std::byte>(std::to_integer<int>(memory.readable()[17]) + 1);
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);

  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory.readable()[18], std::byte{43});
}

TEST(SharedMemory, CannotBeMappedForWritingThroughAReadOnlyDescriptor) {
  const SharedMemory memory = SharedMemory::create("test", kBytes);

  EXPECT_THROW(SharedMemory::map_writable(memory.read_only_descriptor(), kBytes), Error);
}

TEST(SharedMemory, StaysReadOnlyInAReadOnlyMapping) {
  const SharedMemory memory = SharedMemory::create("test", kBytes);
  const SharedMemory view = SharedMemory::map_read_only(memory.read_only_descriptor(), kBytes);
  auto* address = const_cast<std::byte*>(view.readable().data());

  EXPECT_EQ(::mprotect(address, kBytes, PROT_READ | PROT_WRITE), -1);
  EXPECT_EQ(errno, EACCES);
}

TEST(SharedMemoryDeathTest, AssertsThatAReadOnlyMappingIsNotWritten) {
  const SharedMemory memory = SharedMemory::create("test", kBytes);
  SharedMemory view = SharedMemory::map_read_only(memory.read_only_descriptor(), kBytes);

  EXPECT_DEATH(static_cast<void>(view.writable()), "broken promise: is_writable_");
}

TEST(SharedMemory, IsNotMappedBeyondItsEnd) {
  const SharedMemory memory = SharedMemory::create("test", kBytes);

  try {
    SharedMemory::map_read_only(memory.read_only_descriptor(), kBytes + 1);
    FAIL() << "mapped more than there is";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  }
}

TEST(SharedMemory, ReportsADescriptorThatDoesNotExist) {
  EXPECT_THROW(SharedMemory::map_read_only(FileDescriptor(), kBytes), Error);
}

TEST(SharedMemory, ReportsASizeThatTheSystemRefuses) {
  EXPECT_THROW(SharedMemory::create("test", std::size_t{1} << 62), Error);
}

TEST(SharedMemory, OutlivesItsCreatorThroughAnyDescriptor) {
  FileDescriptor descriptor;
  {
    SharedMemory memory = SharedMemory::create("test", kBytes);
    memory.writable()[0] = std::byte{7};
    descriptor = memory.read_only_descriptor();
  }

  const SharedMemory view = SharedMemory::map_read_only(std::move(descriptor), kBytes);

  EXPECT_EQ(view.readable()[0], std::byte{7});
}

TEST(SharedMemory, DistinguishesTheSameMemoryFromOtherMemory) {
  const SharedMemory memory = SharedMemory::create("test", kBytes);
  const SharedMemory other = SharedMemory::create("test", kBytes);

  EXPECT_TRUE(memory.is_same_as(memory.read_only_descriptor()));
  EXPECT_FALSE(memory.is_same_as(other.read_only_descriptor()));
}

TEST(SharedMemory, MovesWithItsContent) {
  SharedMemory first = SharedMemory::create("test", kBytes);
  first.writable()[3] = std::byte{9};

  SharedMemory second(std::move(first));
  SharedMemory third;
  third = std::move(second);

  EXPECT_EQ(third.size_bytes(), kBytes);
  EXPECT_EQ(third.readable()[3], std::byte{9});
}

}  // namespace
}  // namespace holdfast
