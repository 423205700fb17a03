// The C interface with bad arguments. Programs in C test it with good ones.

#include "holdfast/recovery/worker_c.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>

#include "worker/worker_status.h"

namespace holdfast::recovery {
namespace {

using ::testing::HasSubstr;

TEST(WorkerInC, CannotJoinWithoutAWatchdog) {
  holdfast_worker* worker = nullptr;

  EXPECT_EQ(holdfast_is_worker(), 0);
  EXPECT_EQ(holdfast_worker_join(1, &worker), HOLDFAST_INVALID_ARGUMENT);

  EXPECT_EQ(worker, nullptr);
  EXPECT_THAT(holdfast_last_error(), HasSubstr("watchdog"));
}

TEST(WorkerInC, NamesTheArgumentThatIsNull) {
  EXPECT_EQ(holdfast_worker_join(1, nullptr), HOLDFAST_INVALID_ARGUMENT);
  EXPECT_STREQ(holdfast_last_error(), "worker is NULL");
  EXPECT_EQ(holdfast_worker_report_finished(nullptr), HOLDFAST_INVALID_ARGUMENT);
  EXPECT_EQ(holdfast_worker_report_work(nullptr, 1, 1), HOLDFAST_INVALID_ARGUMENT);
  EXPECT_STREQ(holdfast_last_error(), "worker is NULL");
  EXPECT_EQ(holdfast_arenas_wait_for(nullptr, 0, 1, 1), HOLDFAST_INVALID_ARGUMENT);
  EXPECT_STREQ(holdfast_last_error(), "arenas is NULL");
}

TEST(WorkerInC, RefusesAnInvalidTime) {
  holdfast_worker* worker = nullptr;
  for (const double seconds : {-1.0, std::nan("")}) {
    EXPECT_EQ(holdfast_worker_join(seconds, &worker), HOLDFAST_INVALID_ARGUMENT);
    EXPECT_THAT(holdfast_last_error(), HasSubstr("seconds"));
  }
}

TEST(WorkerInC, AcceptsNullWhereItFrees) {
  holdfast_worker_leave(nullptr);
  holdfast_arenas_free(nullptr);
}

TEST(WorkerInC, KeepsAnErrorForEachThread) {
  EXPECT_EQ(holdfast_worker_join(1, nullptr), HOLDFAST_INVALID_ARGUMENT);
  std::string of_the_other = "not read";

  std::thread([&] { of_the_other = holdfast_last_error(); }).join();

  EXPECT_EQ(of_the_other, "");
}

TEST(WorkerInC, TellsWhatIsNotImplementedFromAFailure) {
  EXPECT_EQ(status_of(ErrorCode::unsupported), HOLDFAST_UNSUPPORTED);
  EXPECT_EQ(status_of(ErrorCode::diverged), HOLDFAST_FAILED);
}

}  // namespace
}  // namespace holdfast::recovery
