// What posix_file_system() does when system calls fail, are interrupted, or do only part of the work.

#include "holdfast/base/system_calls.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"
#include "support/text_bytes.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Interrupts or shortens the calls that it passes on.
class UnsteadyCalls : public SystemCalls {
 public:
  int open(const char* path, int flags, unsigned mode) override {
    return is_interrupted() ? -1 : SystemCalls::open(path, flags, mode);
  }
  std::ptrdiff_t pwrite(int descriptor, const void* bytes, std::size_t count, std::int64_t offset) override {
    ++writes;
    if (is_interrupted()) return -1;
    return SystemCalls::pwrite(descriptor, bytes, std::min(count, most_bytes), offset);
  }
  std::ptrdiff_t pread(int descriptor, void* bytes, std::size_t count, std::int64_t offset) override {
    if (is_interrupted()) return -1;
    return SystemCalls::pread(descriptor, bytes, std::min(count, most_bytes), offset);
  }
  std::ptrdiff_t preadv(int descriptor, const iovec* places, int count, std::int64_t offset) override {
    if (is_interrupted()) return -1;
    if (most_bytes == SIZE_MAX) return SystemCalls::preadv(descriptor, places, count, offset);
    // Fills a part of the first place alone.
    return SystemCalls::pread(descriptor, places->iov_base, std::min(places->iov_len, most_bytes), offset);
  }
  int fsync(int descriptor) override { return is_interrupted() ? -1 : SystemCalls::fsync(descriptor); }

  int interruptions = 0;  // still to come
  std::size_t most_bytes = SIZE_MAX;
  int writes = 0;

 private:
  bool is_interrupted() {
    if (interruptions == 0) return false;
    --interruptions;
    errno = EINTR;
    return true;
  }
};

// Fails one kind of call with one error, as often as the test says.
class FailingCalls : public SystemCalls {
 public:
  std::ptrdiff_t pwrite(int descriptor, const void* bytes, std::size_t count, std::int64_t offset) override {
    ++writes;
    return fails("pwrite") ? -1 : SystemCalls::pwrite(descriptor, bytes, count, offset);
  }
  int sync_file_range(int descriptor, std::int64_t offset, std::int64_t count, unsigned flags) override {
    ranges.emplace_back(offset, count);
    last_flags = flags;
    return fails("sync_file_range") ? -1 : SystemCalls::sync_file_range(descriptor, offset, count, flags);
  }
  int fsync(int descriptor) override {
    ++syncs;
    return fails("fsync") ? -1 : SystemCalls::fsync(descriptor);
  }

  std::string failing;
  int error_number = EIO;
  int failures = 1;
  int writes = 0;
  int syncs = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  unsigned last_flags = 0;

 private:
  bool fails(const std::string& name) {
    if (name != failing || failures == 0) return false;
    --failures;
    errno = error_number;
    return true;
  }
};

std::optional<Error> error_of(const std::function<void()>& action) {
  try {
    action();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

class SystemCallsTest : public ::testing::Test {
 protected:
  std::string content() const {
    std::ifstream stream(path_);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "a";
};

using PosixFileOverUnsteadyCalls = SystemCallsTest;
using PosixFileOverFailingCalls = SystemCallsTest;

TEST_F(PosixFileOverUnsteadyCalls, WritesAndReadsAllBytesOneByteAtATime) {
  UnsteadyCalls calls;
  calls.most_bytes = 1;
  const auto files = posix_file_system(calls);
  const auto file = files->create(path_);

  file->write_at(2, bytes_of("holdfast"));
  std::string text(9, ' ');
  const std::size_t read = file->read_at(1, std::as_writable_bytes(std::span(text)));

  EXPECT_EQ(calls.writes, 8);
  EXPECT_EQ(read, 9U);
  EXPECT_EQ(text, std::string("\0holdfast", 9));
  EXPECT_EQ(content(), std::string("\0\0holdfast", 10));
}

TEST_F(PosixFileOverUnsteadyCalls, FillsSeveralPlacesAlthoughCallsDoPartOfTheWork) {
  UnsteadyCalls calls;
  const auto files = posix_file_system(calls);
  const auto file = files->create(path_);
  file->write_at(0, bytes_of("holdfast"));
  for (const std::size_t most : {1, 2, 3, 4}) {
    calls.most_bytes = most;
    calls.interruptions = 2;
    std::string first(3, ' ');
    std::string second(4, ' ');
    const std::vector<std::span<std::byte>> places{std::as_writable_bytes(std::span(first)),
                                                   std::as_writable_bytes(std::span(second))};

    EXPECT_EQ(file->scatter_at(0, places), 7U);
    EXPECT_EQ(first + second, "holdfas");
    EXPECT_EQ(file->scatter_at(4, places), 4U);
    EXPECT_EQ(first + second, "fastfas");
  }
}

TEST_F(PosixFileOverUnsteadyCalls, ContinuesAfterInterruptions) {
  UnsteadyCalls calls;
  const auto files = posix_file_system(calls);

  calls.interruptions = 3;
  const auto file = files->create(path_);
  EXPECT_EQ(calls.interruptions, 0);
  calls.interruptions = 3;
  file->write_at(0, bytes_of("holdfast"));
  EXPECT_EQ(calls.interruptions, 0);
  calls.interruptions = 3;
  file->sync();
  EXPECT_EQ(calls.interruptions, 0);
  calls.interruptions = 3;
  files->sync_folder(folder_.path());
  EXPECT_EQ(calls.interruptions, 0);
  calls.interruptions = 3;
  std::string text(8, ' ');
  file->read_at(0, std::as_writable_bytes(std::span(text)));

  EXPECT_EQ(calls.interruptions, 0);
  EXPECT_EQ(text, "holdfast");
}

TEST_F(PosixFileOverUnsteadyCalls, GivesUpWhenEveryCallIsInterrupted) {
  UnsteadyCalls calls;
  const auto files = posix_file_system(calls);
  const auto file = files->create(path_);
  constexpr int kForEver = 1'000'000;

  calls.interruptions = kForEver;
  const auto error = error_of([&] { file->write_at(0, bytes_of("x")); });

  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::input_output);
  EXPECT_THAT(error->what(), HasSubstr("Interrupted system call"));
  EXPECT_GT(calls.interruptions, kForEver / 2);
}

TEST_F(PosixFileOverUnsteadyCalls, TreatsAWriteOfNoBytesAsAnError) {
  UnsteadyCalls calls;
  const auto files = posix_file_system(calls);
  const auto file = files->create(path_);

  calls.most_bytes = 0;
  const auto error = error_of([&] { file->write_at(0, bytes_of("x")); });

  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::input_output);
}

TEST_F(PosixFileOverFailingCalls, DoesNotSyncAgainAfterAFailedSync) {
  FailingCalls calls;
  const auto files = posix_file_system(calls);
  const auto file = files->create(path_);
  file->write_at(0, bytes_of("x"));
  calls.failing = "fsync";

  const auto first = error_of([&] { file->sync(); });
  const auto second = error_of([&] { file->sync(); });
  const auto write = error_of([&] { file->write_at(1, bytes_of("y")); });
  const auto write_back = error_of([&] { file->start_write_back(0, 1); });

  ASSERT_TRUE(first && second && write && write_back);
  EXPECT_EQ(calls.syncs, 1);
  EXPECT_EQ(calls.writes, 1);
  EXPECT_TRUE(calls.ranges.empty());
  EXPECT_EQ(second->code(), ErrorCode::input_output);
  EXPECT_THAT(second->what(), StartsWith(path_ + " is given up"));
  EXPECT_THAT(second->what(), HasSubstr(first->what()));
}

TEST_F(PosixFileOverFailingCalls, RefusesToSyncAfterAFailedWrite) {
  FailingCalls calls;
  const auto files = posix_file_system(calls);
  const auto file = files->create(path_);
  calls.failing = "pwrite";
  calls.error_number = ENOSPC;

  const auto first = error_of([&] { file->write_at(0, bytes_of("x")); });
  const auto sync = error_of([&] { file->sync(); });

  ASSERT_TRUE(first && sync);
  EXPECT_EQ(first->code(), ErrorCode::disk_full);
  EXPECT_EQ(sync->code(), ErrorCode::disk_full);
  EXPECT_EQ(calls.syncs, 0);
}

TEST_F(PosixFileOverFailingCalls, StaysReadableAfterAFailedWrite) {
  FailingCalls calls;
  const auto files = posix_file_system(calls);
  const auto file = files->create(path_);
  file->write_at(0, bytes_of("hold"));
  calls.failing = "pwrite";
  ASSERT_TRUE(error_of([&] { file->write_at(4, bytes_of("fast")); }));

  std::string text(8, ' ');
  EXPECT_EQ(file->read_at(0, std::as_writable_bytes(std::span(text))), 4U);
  EXPECT_EQ(file->size_bytes(), 4U);
}

TEST_F(PosixFileOverFailingCalls, DoesNotSpreadToOtherFiles) {
  FailingCalls calls;
  const auto files = posix_file_system(calls);
  const auto file = files->create(path_);
  const auto other = files->create(path_ + "b");
  calls.failing = "fsync";
  ASSERT_TRUE(error_of([&] { file->sync(); }));

  other->write_at(0, bytes_of("x"));
  other->sync();

  EXPECT_EQ(calls.syncs, 2);
}

TEST_F(PosixFileOverFailingCalls, StartsToWriteBackExactlyTheGivenRange) {
  FailingCalls calls;
  const auto files = posix_file_system(calls);
  const auto file = files->create(path_);
  file->write_at(0, bytes_of(std::string(10'000, 'x')));

  file->start_write_back(4096, 5000);

  EXPECT_EQ(calls.ranges, (std::vector<std::pair<std::int64_t, std::int64_t>>{{4096, 5000}}));
  EXPECT_EQ(calls.last_flags, static_cast<unsigned>(SYNC_FILE_RANGE_WRITE));
}

TEST_F(PosixFileOverFailingCalls, IgnoresThatTheHintIsNotTaken) {
  for (const int error_number : {EINVAL, ENOSYS, ESPIPE, EPERM, EINTR}) {
    FailingCalls calls;
    const auto files = posix_file_system(calls);
    const auto file = files->create(path_ + std::to_string(error_number));
    calls.failing = "sync_file_range";
    calls.error_number = error_number;

    file->start_write_back(0, 1);
    file->write_at(0, bytes_of("x"));
    file->sync();

    EXPECT_EQ(calls.failures, 0) << error_number;
  }
}

TEST_F(PosixFileOverFailingCalls, IsDeadAfterAWriteBackThatFindsTheDiskFailedOrFull) {
  for (const auto& [error_number, code] :
       {std::pair{EIO, ErrorCode::input_output}, {ENOSPC, ErrorCode::disk_full}, {EDQUOT, ErrorCode::disk_full}}) {
    FailingCalls calls;
    const auto files = posix_file_system(calls);
    const auto file = files->create(path_ + std::to_string(error_number));
    file->write_at(0, bytes_of("x"));
    calls.failing = "sync_file_range";
    calls.error_number = error_number;

    const auto error = error_of([&] { file->start_write_back(0, 1); });
    const auto sync = error_of([&] { file->sync(); });

    ASSERT_TRUE(error && sync) << error_number;
    EXPECT_EQ(error->code(), code) << error_number;
    EXPECT_EQ(calls.syncs, 0) << error_number;
  }
}

TEST_F(PosixFileOverFailingCalls, SyncsTheParentOfEachFolderThatItCreates) {
  FailingCalls calls;
  const auto files = posix_file_system(calls);

  files->create_folders(folder_ / "x/y/z/");
  EXPECT_EQ(calls.syncs, 3);
  files->create_folders(folder_ / "x/y/z");
  EXPECT_EQ(calls.syncs, 3);
  calls.failing = "fsync";
  const auto error = error_of([&] { files->create_folders(folder_ / "x/y/w"); });

  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::input_output);
}

}  // namespace
}  // namespace holdfast
