#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "collective/nccl/nccl_exchange.h"
#include "support/fake_nccl/fake_nccl.h"
#include "support/rank_threads.h"
#include "unit/collective/nccl/support/fake_collective_stream.h"

namespace holdfast {

// Returns the Error that `body` must throw.
inline Error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& failure) {
    return failure;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorCode::invalid_argument, "nothing was thrown");
}

// The fake NCCL with its own rules for each test. At the end, lost calls and kernels are released and waited for.
class NcclTest : public testing::Test {
 protected:
  NcclTest() { fake_nccl_obey(""); }
  ~NcclTest() override {
    fake_nccl_obey("");
    const std::weak_ptr<NcclLibrary> gone = library_;
    library_.reset();
    const Deadline deadline = soon();
    while (!gone.expired() && !deadline.has_passed()) std::this_thread::yield();
    EXPECT_TRUE(gone.expired()) << "a call of NCCL did not come back";
  }

  static Deadline soon() { return Deadline::after(std::chrono::seconds(30)); }

  // Rules about the version must be set before the first use of library().
  static void obey(const std::string& rules) { fake_nccl_obey(rules.c_str()); }
  const std::shared_ptr<NcclLibrary>& library() {
    if (!library_) library_ = std::make_shared<NcclLibrary>(FAKE_NCCL_PATH);
    return library_;
  }

  static std::unique_ptr<MemoryCommunicator> connect_control(ThreadGroup& group, int rank, int ranks) {
    return group.connect({.rank = rank,
                          .size = ranks,
                          .assignment = ShardAssignment::even(ranks, ranks),
                          .slots = 1,
                          .float_count = 16});
  }

 private:
  std::shared_ptr<NcclLibrary> library_;
};

}  // namespace holdfast
