// What a process of this host inherits. That replicas are watched and ended is tested with real runs.

#include "process/local_replicas.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "holdfast/base/error.h"
#include "holdfast/base/shared_memory.h"
#include "unit/recovery/support/loopback.h"

namespace holdfast::recovery {
namespace {

// Exits with the number of descriptors in its variable, if the last of them is open.
constexpr const char* kExitWithTheirNumber =
    "IFS=,; set -- $HOLDFAST_WORKER; eval last=\\$$#; test -e /proc/self/fd/$last && exit $#";

int descriptors_of_a_process(const Fence* fence) {
  Loopback loopback;
  // Stands for the lock of a run directory.
  const SharedMemory lock = SharedMemory::create("lock", 1);
  const auto starter = local_replicas(
      loopback.io, lock.descriptor(), [] {}, fence);
  std::optional<ExitStatus> end;
  const auto process =
      starter->start({.executable = "/bin/sh", .arguments = {"sh", "-c", kExitWithTheirNumber}, .member = 0},
                     {.on_message = [](Message&) {},
                      .on_bad_message = [](const std::string& what) { ADD_FAILURE() << what; },
                      .on_death = [] {},
                      .on_exit = [&](ExitStatus status) { end = status; },
                      .on_swept = [](int, bool) {}});
  loopback.run_until([&] { return end.has_value(); }, "the end of the process");
  return end->code;
}

TEST(LocalReplicas, InheritNoFenceOnASingleHost) {
  EXPECT_EQ(descriptors_of_a_process(nullptr), 3);
}

TEST(LocalReplicas, InheritTheFenceOfTheirHost) {
  const Fence fence;

  EXPECT_EQ(descriptors_of_a_process(&fence), 4);
}

// What a process reports that is not waited for.
struct NotWaitedFor {
  std::optional<ExitStatus> end{};
  std::optional<Error> failure{};

  explicit NotWaitedFor(const std::string& executable) {
    Loopback loopback;
    const SharedMemory lock = SharedMemory::create("lock", 1);
    const auto starter = local_replicas(loopback.io, lock.descriptor(), [] {});
    const auto process = starter->start(
        {.executable = executable, .arguments = {"sh", "-c", "exit 3"}, .member = 0, .is_waited_for = false},
        {.on_message = [](Message&) {},
         .on_bad_message = [](const std::string& what) { ADD_FAILURE() << what; },
         .on_death = [] {},
         .on_exit = [this](ExitStatus status) { end = status; },
         .on_swept = [](int, bool) {},
         .on_start_failed = [this](const Error& error) { failure = error; }});
    EXPECT_FALSE(end || failure);
    loopback.run_until([this] { return end || failure; }, "the end of the process");
    // Nothing follows a failure.
    loopback.io.restart();
    loopback.io.poll();
  }
};

TEST(LocalReplicas, AreNotWaitedForWhereTheOwnerHasMoreToDo) {
  const NotWaitedFor process("/bin/sh");

  EXPECT_FALSE(process.failure.has_value());
  EXPECT_EQ(process.end.value().code, 3);
}

TEST(LocalReplicas, ReportAProgramThatCannotRun) {
  const NotWaitedFor process("/no/such/program");

  EXPECT_EQ(process.failure.value().code(), ErrorCode::not_found);
  EXPECT_FALSE(process.end.has_value());
}

}  // namespace
}  // namespace holdfast::recovery
