// Every system call of saving, rotating, deleting and setting aside fails, once or from then on. The newest savepoint
// that was durable still loads bit for bit, the error has a type, and nothing is left that a start does not remove.

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <set>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/system_calls.h"
#include "holdfast/format/catalogue.h"
#include "holdfast/format/savepoint_keeper.h"
#include "support/temporary_folder.h"
#include "unit/format/support/array_files.h"
#include "unit/format/support/savepoints.h"

namespace holdfast::format {
namespace {

using testing::read_bytes;
using testing::read_savepoint;
using testing::write_bytes;
using testing::write_savepoint;

enum class Call { open, create, write, read, write_back, sync, rename, remove, make_folder };

struct Fault {
  std::string name;
  std::set<Call> calls;  // that the fault can hit
  int error_number;      // 0: half of the work is done
};

const std::vector<Fault> kFaults = {
    {"EIO",
     {Call::open, Call::create, Call::write, Call::read, Call::write_back, Call::sync, Call::rename, Call::remove,
      Call::make_folder},
     EIO},
    {"ENOSPC", {Call::create, Call::write, Call::write_back, Call::sync, Call::rename, Call::make_folder}, ENOSPC},
    {"EINTR", {Call::open, Call::create, Call::write, Call::read, Call::write_back, Call::sync}, EINTR},
    {"short", {Call::write, Call::read}, 0},
    {"fsync", {Call::sync}, EIO},
};

// Hits the n-th call that the fault can hit, or all calls from there on. fsync does nothing: what reaches the disk is
// the subject of other tests.
class FaultyCalls : public SystemCalls {
 public:
  FaultyCalls(Fault fault, int first, bool for_ever) : fault_(std::move(fault)), first_(first), for_ever_(for_ever) {}

  bool has_struck() const { return seen_ > first_; }

  int open(const char* path, int flags, unsigned mode) override {
    return strikes((flags & O_CREAT) != 0 ? Call::create : Call::open) ? -1 : SystemCalls::open(path, flags, mode);
  }
  std::ptrdiff_t pwrite(int descriptor, const void* bytes, std::size_t count, std::int64_t offset) override {
    if (strikes(Call::write)) {
      if (fault_.error_number != 0) return -1;
      count = std::max<std::size_t>(count / 2, 1);
    }
    return SystemCalls::pwrite(descriptor, bytes, count, offset);
  }
  std::ptrdiff_t pread(int descriptor, void* bytes, std::size_t count, std::int64_t offset) override {
    if (strikes(Call::read)) {
      if (fault_.error_number != 0) return -1;
      count = std::max<std::size_t>(count / 2, 1);
    }
    return SystemCalls::pread(descriptor, bytes, count, offset);
  }
  int sync_file_range(int, std::int64_t, std::int64_t, unsigned) override { return strikes(Call::write_back) ? -1 : 0; }
  int fsync(int) override { return strikes(Call::sync) ? -1 : 0; }
  int rename(const char* from, const char* to) override {
    return strikes(Call::rename) ? -1 : SystemCalls::rename(from, to);
  }
  int unlink(const char* path) override { return strikes(Call::remove) ? -1 : SystemCalls::unlink(path); }
  int mkdir(const char* path, unsigned mode) override {
    return strikes(Call::make_folder) ? -1 : SystemCalls::mkdir(path, mode);
  }

 private:
  bool strikes(Call call) {
    if (!fault_.calls.contains(call)) return false;
    const int index = seen_++;
    if (index != first_ && !(for_ever_ && index > first_)) return false;
    errno = fault_.error_number;
    return true;
  }

  const Fault fault_;
  const int first_;
  const bool for_ever_;
  std::atomic<int> seen_{0};
};

class Faults : public ::testing::Test {
 protected:
  Faults() : calls_(Fault{}, 0, false), healthy_(posix_file_system(calls_)) {}

  std::string path(std::int64_t step) const { return folder() + "/" + savepoint_name(step); }
  std::string folder() const { return root_ / "run"; }
  std::vector<std::string> folders() const { return {folder(), root_ / "copy"}; }

  void reset(const std::vector<std::int64_t>& steps) {
    for (const std::string& each : folders()) {
      healthy_->create_folders(each);
      for (const std::string& name : healthy_->list(each)) healthy_->remove(each + "/" + name);
    }
    healthy_->create(folder() + "/run.json");
    for (const std::int64_t step : steps) write_savepoint(*healthy_, path(step), step, static_cast<double>(step));
    durable_ = steps.empty() ? -1 : steps.back();
  }

  // Does what a run does at its next start.
  std::int64_t recover() {
    std::int64_t step = -1;
    find_newest_savepoint(*healthy_, folders(),
                          [&](const std::string& found) { step = read_savepoint(*healthy_, found); },
                          {.is_owner = true});
    return step;
  }

  // Calls act(files) on the files that `prepare` makes, for each fault at each call. `durable_`, or something newer of
  // `allowed`, must be found afterwards.
  void strike_everywhere(const std::function<void()>& prepare, const std::function<void(FileSystem&)>& act,
                         const std::set<std::int64_t>& allowed) {
    for (const Fault& fault : kFaults) {
      for (const bool for_ever : {false, true}) {
        int call = 0;
        while (!HasFailure() && strike(fault, call, for_ever, prepare, act, allowed)) ++call;
        EXPECT_GE(call, 1) << fault.name << " never struck";
      }
    }
  }

  std::int64_t durable_ = -1;

 private:
  // Returns false when there were fewer calls than that.
  bool strike(const Fault& fault, int call, bool for_ever, const std::function<void()>& prepare,
              const std::function<void(FileSystem&)>& act, const std::set<std::int64_t>& allowed) {
    SCOPED_TRACE(fault.name + " at call " + std::to_string(call) + (for_ever ? " and all later ones" : ""));
    prepare();
    FaultyCalls calls(fault, call, for_ever);
    const auto files = posix_file_system(calls);
    try {
      act(*files);
    } catch (const Error& failure) {
      const ErrorCode expected = fault.error_number == ENOSPC ? ErrorCode::disk_full : ErrorCode::input_output;
      EXPECT_EQ(failure.code(), expected) << failure.what();
      EXPECT_NE(std::string(failure.what()).find(root_.path()), std::string::npos) << failure.what();
      EXPECT_FALSE(fault.name == "short" || (fault.name == "EINTR" && !for_ever)) << failure.what();
    }
    const std::int64_t found = recover();
    EXPECT_GE(found, durable_);
    EXPECT_TRUE(allowed.contains(found)) << found;
    for (const std::string& each : folders()) {
      for (const std::string& name : healthy_->list(each)) EXPECT_EQ(name.find(".tmp"), std::string::npos) << name;
    }
    EXPECT_TRUE(healthy_->exists(folder() + "/run.json"));
    return calls.has_struck();
  }

  TemporaryFolder root_;
  FaultyCalls calls_;
  std::unique_ptr<FileSystem> healthy_;
};

TEST_F(Faults, LoseNothingWhileAnotherStepIsSaved) {
  strike_everywhere([&] { reset({1}); },
                    [&](FileSystem& files) {
                      write_savepoint(files, path(2), 2);
                      durable_ = 2;
                    },
                    {1, 2});
}

TEST_F(Faults, LoseNothingWhileAnOldFileIsReplaced) {
  strike_everywhere([&] { reset({1}); },
                    [&](FileSystem& files) {
                      write_savepoint(files, path(1), 2);
                      durable_ = 2;
                    },
                    {1, 2});
}

TEST_F(Faults, LoseNothingDuringRotationAndCopying) {
  strike_everywhere(
      [&] {
        reset({1, 2});
      },
      [&](FileSystem& files) {
        SavepointKeeper keeper(
            files, folder(),
            {.copies = {folders()[1]}, .retention = {.keep_last = 1, .keep_best = 1}, .best_by = "loss"});
        for (const std::int64_t step : {3, 4}) {
          write_savepoint(files, path(step), step, static_cast<double>(step));
          durable_ = step;
          keeper.keep(savepoint_name(step));
        }
      },
      {2, 3, 4});
}

TEST_F(Faults, LoseNothingDuringDeletion) {
  strike_everywhere(
      [&] {
        reset({1, 2, 3, 4});
      },
      [&](FileSystem& files) { SavepointKeeper(files, folder(), {.retention = {.keep_last = 1}}).prune(); }, {4});
}

TEST_F(Faults, LoseNothingWhileAFileIsSetAside) {
  const auto prepare = [&] {
    reset({1, 2});
    std::vector<std::byte> bytes = read_bytes(path(2));
    bytes[bytes.size() / 2] ^= std::byte{1};
    write_bytes(path(2), bytes);
    durable_ = 1;
  };
  const auto act = [&](FileSystem& files) {
    find_newest_savepoint(files, folders(), [&](const std::string& found) { read_savepoint(files, found); },
                          {.is_owner = true});
  };

  strike_everywhere(prepare, act, {1});
}

}  // namespace
}  // namespace holdfast::format
