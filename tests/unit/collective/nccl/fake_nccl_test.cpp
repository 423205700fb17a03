// The fake must refuse what NCCL refuses and wait where NCCL waits. Code that only works with the fake would fail on a
// GPU.

#include "support/fake_nccl/fake_nccl.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "holdfast/base/error.h"
#include "support/comes_true.h"
#include "unit/collective/nccl/support/nccl_test.h"

namespace holdfast {

using namespace std::chrono_literals;

class FakeNcclTest : public NcclTest {
 protected:
  static constexpr std::size_t kFloats = 8;

  // A rank that calls NCCL itself.
  class Member {
   public:
    Member(std::shared_ptr<NcclLibrary> library, int ranks, const nccl::UniqueId& id, int rank)
        : library_(std::move(library)) {
      nccl::Config config;
      config.blocking = 0;
      EXPECT_EQ(library_->comm_init_rank_config(&comm_, ranks, id, rank, &config), nccl::Result::in_progress);
    }
    ~Member() {
      if (comm_ != nullptr) abort();
    }

    nccl::Result send(int peer, std::size_t floats = kFloats) {
      return library_->send(array_.data(), floats, nccl::DataType::float32, peer, comm_, handle());
    }
    nccl::Result receive(int peer, std::size_t floats = kFloats) {
      return library_->recv(array_.data(), floats, nccl::DataType::float32, peer, comm_, handle());
    }
    nccl::Result broadcast(int root, std::size_t floats) {
      return library_->broadcast(array_.data(), array_.data(), floats, nccl::DataType::float32, root, comm_, handle());
    }
    nccl::Result state() {
      nccl::Result state = nccl::Result::success;
      EXPECT_EQ(library_->comm_get_async_error(comm_, &state), nccl::Result::success);
      return state;
    }
    bool settles() {
      return comes_true([this] { return state() == nccl::Result::success; });
    }
    nccl::Result revoke() { return library_->comm_revoke(comm_, 0); }
    void abort() { EXPECT_EQ(library_->comm_abort(std::exchange(comm_, nullptr)), nccl::Result::success); }

   private:
    void* handle() { return static_cast<FakeStream*>(&stream_); }

    const std::shared_ptr<NcclLibrary> library_;
    nccl::Comm* comm_ = nullptr;
    std::vector<float> array_ = std::vector<float>(kFloats);
    ThreadStream stream_;
  };

  // Connects the first `joined` of `ranks` ranks.
  std::vector<std::unique_ptr<Member>> join(int joined, int ranks) {
    nccl::UniqueId id{};
    EXPECT_EQ(library()->get_unique_id(&id), nccl::Result::success);
    std::vector<std::unique_ptr<Member>> members;
    for (int rank = 0; rank < joined; ++rank) {
      members.push_back(std::make_unique<Member>(library(), ranks, id, rank));
    }
    return members;
  }

  std::vector<std::unique_ptr<Member>> connect() {
    auto members = join(2, 2);
    for (const auto& member : members) EXPECT_TRUE(member->settles());
    return members;
  }

  enum class Call { send, receive, broadcast };
  using Groups = std::vector<std::vector<Call>>;

  // Two ranks queue these groups of calls with each other. Returns how each ends, empty on success. Rank 0 is the root
  // of broadcasts.
  std::vector<std::optional<ErrorCode>> errors_of(const std::vector<Groups>& groups,
                                                  std::chrono::milliseconds patience) {
    library();
    ThreadGroup threads(2);
    std::vector<std::optional<ErrorCode>> errors(2);
    run_ranks(2, threads, [&](int rank) {
      const auto control = connect_control(threads, rank, 2);
      const auto own = static_cast<std::size_t>(rank);
      std::vector<float> sent(kFloats);
      std::vector<float> received(kFloats);
      NcclConnection connection(library(), std::make_shared<FakeCollectiveStream>(), *control, nullptr, {}, soon());
      const Deadline deadline = Deadline::after(patience);
      try {
        for (const std::vector<Call>& group : groups[own]) {
          const auto calls = [&] {
            for (const Call call : group) {
              if (call == Call::send) connection.send(sent.data(), kFloats, 1 - rank);
              if (call == Call::receive) connection.receive(received.data(), kFloats, 1 - rank);
              if (call == Call::broadcast) connection.broadcast(received.data(), kFloats, 0);
            }
          };
          connection.queue("exchange", calls, deadline);
        }
        if (!groups[own].empty()) connection.wait("exchange", deadline);
      } catch (const Error& failure) {
        errors[own] = failure.code();
      }
      control->barrier(soon());
    });
    return errors;
  }

  static constexpr std::optional<ErrorCode> kWell = std::nullopt;
  static constexpr std::optional<ErrorCode> kLate = ErrorCode::deadline_exceeded;
  using Errors = std::vector<std::optional<ErrorCode>>;
};

TEST_F(FakeNcclTest, RefusesACallBeforeThePreviousOneHasSucceeded) {
  const auto members = connect();
  EXPECT_EQ(members[0]->receive(1), nccl::Result::in_progress);

  EXPECT_EQ(members[0]->receive(1), nccl::Result::invalid_argument);

  EXPECT_EQ(members[0]->state(), nccl::Result::invalid_argument);
  EXPECT_EQ(members[0]->receive(1), nccl::Result::invalid_argument);
}

TEST_F(FakeNcclTest, TakesACallOnceThePreviousOneHasSucceeded) {
  const auto members = connect();
  EXPECT_EQ(members[0]->receive(1), nccl::Result::in_progress);
  EXPECT_TRUE(members[0]->settles());

  EXPECT_EQ(members[0]->send(1), nccl::Result::in_progress);
}

TEST_F(FakeNcclTest, RefusesACallWhileRanksConnect) {
  const auto members = join(1, 2);

  EXPECT_EQ(members[0]->receive(1), nccl::Result::invalid_argument);
}

TEST_F(FakeNcclTest, LetsWhatIsInProgressBeRevokedAndAborted) {
  const auto members = connect();
  obey("busy=ncclGroupEnd");
  EXPECT_EQ(members[0]->receive(1), nccl::Result::in_progress);

  EXPECT_EQ(members[0]->revoke(), nccl::Result::in_progress);
  members[0]->abort();

  EXPECT_EQ(fake_nccl_running(), 0);
}

TEST_F(FakeNcclTest, RefusesACallAfterAnError) {
  const auto members = connect();
  obey("async=6@0");

  EXPECT_EQ(members[0]->receive(1), nccl::Result::remote_error);
}

TEST_F(FakeNcclTest, QueuesNothingOfAGroupOfWhichACallFailed) {
  const auto members = connect();
  obey("fail=ncclRecv:4@0");

  EXPECT_EQ(library()->group_start(), nccl::Result::success);
  EXPECT_EQ(members[0]->send(1), nccl::Result::success);
  EXPECT_EQ(members[0]->receive(1), nccl::Result::invalid_argument);
  EXPECT_EQ(library()->group_end(), nccl::Result::invalid_argument);

  EXPECT_EQ(fake_nccl_running(), 0);
}

TEST_F(FakeNcclTest, EndsTheProcessWhereRanksCountDifferently) {
  const auto until_all_have_ended = [] { return comes_true([] { return fake_nccl_running() == 0; }); };

  EXPECT_DEATH(
      {
        const auto members = connect();
        members[0]->send(1, 8);
        members[1]->receive(0, 4);
        until_all_have_ended();
      },
      "rank 0 sent 8 floats by ncclSend of which rank 1 expects 4");
  EXPECT_DEATH(
      {
        const auto members = connect();
        members[0]->broadcast(0, 3);
        members[1]->broadcast(0, 4);
        until_all_have_ended();
      },
      "rank 0 sent 3 floats by ncclBroadcast of which rank 1 expects 4");
}

TEST_F(FakeNcclTest, EndsASendThatIsReceived) {
  const Groups sends_first = {{Call::send}, {Call::receive}};
  const Groups receives_first = {{Call::receive}, {Call::send}};

  EXPECT_EQ(errors_of({sends_first, receives_first}, 10min), (Errors{kWell, kWell}));
}

TEST_F(FakeNcclTest, DoesNotEndASendThatNobodyReceives) {
  EXPECT_EQ(errors_of({Groups{{Call::send}}, Groups{}}, 50ms), (Errors{kLate, kWell}));
}

TEST_F(FakeNcclTest, DoesNotEndWhereRanksFirstSendToEachOther) {
  const Groups sends_first = {{Call::send}, {Call::receive}};

  EXPECT_EQ(errors_of({sends_first, sends_first}, 50ms), (Errors{kLate, kLate}));
}

TEST_F(FakeNcclTest, EndsWhereRanksSendToEachOtherInAGroup) {
  const Groups at_once = {{Call::send, Call::receive}};

  EXPECT_EQ(errors_of({at_once, at_once}, 10min), (Errors{kWell, kWell}));
}

TEST_F(FakeNcclTest, DoesNotEndWhereRanksMakeDifferentCalls) {
  EXPECT_EQ(errors_of({Groups{{Call::broadcast}}, Groups{{Call::receive}}}, 50ms), (Errors{kLate, kLate}));
}

TEST_F(FakeNcclTest, DoesNotEndWhereRanksMakeTheSameCallsInAnotherOrder) {
  const Groups sends_first = {{Call::send}, {Call::broadcast}};
  const Groups broadcasts_first = {{Call::broadcast}, {Call::receive}};

  EXPECT_EQ(errors_of({sends_first, broadcasts_first}, 50ms), (Errors{kLate, kLate}));
}

// The sender's memory may be freed by then.
TEST_F(FakeNcclTest, NeverDeliversWhatAnAbortHasStopped) {
  const auto members = connect();
  library()->group_start();
  members[0]->send(1);
  members[0]->receive(1);
  library()->group_end();
  // Once it is received, rank 0 has begun to send too.
  members[1]->send(0);
  ASSERT_TRUE(comes_true([] { return fake_nccl_ended(1) == 1; }));
  ASSERT_TRUE(members[1]->settles());

  members[0]->abort();
  EXPECT_EQ(members[1]->receive(0), nccl::Result::in_progress);

  const Deadline deadline = Deadline::after(50ms);
  while (!deadline.has_passed()) std::this_thread::yield();
  EXPECT_EQ(fake_nccl_ended(1), 1);
}

}  // namespace holdfast
