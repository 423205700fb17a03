// Every way in which NCCL can fail or hang, with the fake NCCL: each call must end by its deadline or with the
// generation, and the process must know whether it can connect again.

#include "collective/nccl/nccl_connection.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>
#include <thread>
#include <vector>

#include "holdfast/base/error.h"
#include "unit/collective/nccl/support/nccl_test.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

bool says(const Error& error, const std::string& text) {
  return std::string(error.what()).find(text) != std::string::npos;
}

bool is_generation_ended(const Error& error) {
  return error.code() == ErrorCode::cancelled;
}

}  // namespace

class NcclConnectionTest : public NcclTest {
 protected:
  // Rank 0 runs in the test's own thread. Rank 1 runs in another thread, which ends once it is connected.
  struct Pair {
    explicit Pair(NcclConnectionTest& test) : group(2), control(connect_control(group, 0, 2)) {
      test.library();
      peer_thread = std::thread([&] {
        peer_control = connect_control(group, 1, 2);
        peer.emplace(test.library(), std::make_shared<FakeCollectiveStream>(), *peer_control, nullptr, NcclBounds{},
                     soon());
      });
      connection.emplace(test.library(), stream, *control, nullptr, test.bounds, soon());
      peer_thread.join();
    }

    // Only a peer could end this.
    void queue_receive() {
      connection->queue(
          "reception", [&] { connection->receive(received.data(), received.size(), 1); }, soon());
    }

    ThreadGroup group;
    std::unique_ptr<MemoryCommunicator> control;
    std::unique_ptr<MemoryCommunicator> peer_control;
    std::shared_ptr<FakeCollectiveStream> stream = std::make_shared<FakeCollectiveStream>();
    std::thread peer_thread;
    std::vector<float> received = std::vector<float>(8);
    std::optional<NcclConnection> peer;
    std::optional<NcclConnection> connection;
  };

  // Rank 0 of two: rank 1 receives the unique id but does not connect.
  Error connect_alone(const std::function<void(ThreadGroup&)>& meanwhile, Deadline deadline) {
    ThreadGroup group(2);
    const auto control = connect_control(group, 0, 2);
    std::thread peer([&] {
      const auto peer_control = connect_control(group, 1, 2);
      peer_control->barrier(soon());
      std::vector<std::byte> id(sizeof(nccl::UniqueId));
      peer_control->broadcast(id, 0, true, soon());
      meanwhile(group);
    });
    const Error error = error_of([&] {
      const NcclConnection connection(library(), std::make_shared<FakeCollectiveStream>(), *control, nullptr, bounds,
                                      deadline);
    });
    peer.join();
    return error;
  }

  static void cancel_once_connecting(ThreadGroup& group) {
    while (fake_nccl_calls("ncclCommInitRankConfig", 0) == 0) std::this_thread::yield();
    group.cancel_all();
  }

  NcclBounds bounds{};
};

TEST_F(NcclConnectionTest, ConnectsRanksOfOneGeneration) {
  Pair pair(*this);

  EXPECT_EQ(fake_nccl_calls("ncclGetUniqueId", -1), 1);
  EXPECT_EQ(fake_nccl_calls("ncclCommInitRankConfig", -1), 2);
}

// Each id has a thread and a socket. If not all ranks connect, NCCL keeps them until the process ends.
TEST_F(NcclConnectionTest, AsksForNoIdBeforeAllRanksAreHere) {
  ThreadGroup group(2);
  library();
  const auto control = connect_control(group, 0, 2);
  const auto peer_control = connect_control(group, 1, 2);
  group.cancel_all();

  const Error error = error_of([&] {
    const NcclConnection connection(library(), std::make_shared<FakeCollectiveStream>(), *control, nullptr, bounds,
                                    soon());
  });

  EXPECT_TRUE(is_generation_ended(error)) << error.what();
  EXPECT_EQ(fake_nccl_calls("ncclGetUniqueId", -1), 0);
}

TEST_F(NcclConnectionTest, EndsByItsDeadlineWhenAPeerDoesNotConnect) {
  Error error(ErrorCode::cancelled, "");
  // Before connecting, a rank broadcasts the id, which takes until the other thread receives it.
  for (auto patience = 50ms; fake_nccl_calls("ncclCommInitRankConfig", 0) == 0; patience *= 4) {
    error = connect_alone([](ThreadGroup&) {}, Deadline::after(patience));
  }

  EXPECT_EQ(error.code(), ErrorCode::deadline_exceeded);
  EXPECT_TRUE(says(error, "connecting") && says(error, "rank 0 of 2") && says(error, "fake:0")) << error.what();
  EXPECT_EQ(fake_nccl_calls("ncclCommAbort", 0), 1);
}

TEST_F(NcclConnectionTest, EndsAtOnceWhenTheGenerationDoesWhileItConnects) {
  const Error error = connect_alone(cancel_once_connecting, Deadline::after(10min));

  EXPECT_TRUE(is_generation_ended(error)) << error.what();
}

// There must be no revoke: NCCL would use the job of the call after it is freed.
TEST_F(NcclConnectionTest, EndsByItsDeadlineWhenNcclStaysInProgress) {
  Pair pair(*this);
  obey("busy=ncclGroupEnd@0");

  const Error error = error_of([&] {
    pair.connection->queue(
        "reception", [&] { pair.connection->receive(pair.received.data(), 8, 1); }, Deadline::after(50ms));
  });

  EXPECT_EQ(error.code(), ErrorCode::deadline_exceeded);
  EXPECT_TRUE(says(error, "reception")) << error.what();
  EXPECT_FALSE(library()->is_poisoned());
  EXPECT_EQ(fake_nccl_calls("ncclCommRevoke", 0), 0);
  EXPECT_EQ(fake_nccl_calls("ncclCommAbort", 0), 1);
}

// NCCL does not report the death of a peer on the same host.
TEST_F(NcclConnectionTest, EndsAtOnceWhenAPeerDiedAndNcclSaysNothing) {
  Pair pair(*this);
  pair.queue_receive();
  pair.group.cancel_all();

  const Error error = error_of([&] { pair.connection->wait("reception", Deadline::after(10min)); });

  EXPECT_TRUE(is_generation_ended(error)) << error.what();
  EXPECT_FALSE(library()->is_poisoned());
}

TEST_F(NcclConnectionTest, EndsByItsDeadlineWhenNothingIsSent) {
  Pair pair(*this);
  pair.queue_receive();

  const Error error = error_of([&] { pair.connection->wait("reception", Deadline::after(50ms)); });

  EXPECT_EQ(error.code(), ErrorCode::deadline_exceeded);
  EXPECT_TRUE(says(error, "reception") && says(error, "rank 0 of 2")) << error.what();
}

// The abort of a lone survivor may take longer than a step, so the watchdog must know about it.
TEST_F(NcclConnectionTest, SaysThatItLeavesBeforeItAborts) {
  std::vector<int> aborts_when_told;
  bounds.leaving = [&] { aborts_when_told.push_back(fake_nccl_calls("ncclCommAbort", 0)); };
  Pair pair(*this);
  pair.queue_receive();
  pair.group.cancel_all();

  EXPECT_THROW(pair.connection->wait("reception", soon()), GenerationEnded);

  EXPECT_EQ(aborts_when_told, std::vector<int>{0});
  EXPECT_EQ(fake_nccl_calls("ncclCommAbort", 0), 1);
}

TEST_F(NcclConnectionTest, ConnectsAgainAfterAnAbort) {
  {
    Pair pair(*this);
    pair.queue_receive();
    pair.group.cancel_all();
    EXPECT_THROW(pair.connection->wait("reception", soon()), GenerationEnded);
  }

  Pair again(*this);

  EXPECT_FALSE(again.stream->is_device_lost());
}

TEST_F(NcclConnectionTest, AsksToBeReplacedWhenAnAbortHangs) {
  bounds.abort = 50ms;
  Pair pair(*this);
  pair.queue_receive();
  obey("hang=ncclCommAbort@0");
  pair.group.cancel_all();

  const Error error = error_of([&] { pair.connection->wait("reception", soon()); });

  EXPECT_EQ(error.code(), ErrorCode::device_failed);
  EXPECT_TRUE(says(error, "must be replaced")) << error.what();
  EXPECT_TRUE(library()->is_poisoned());
  EXPECT_TRUE(pair.stream->is_device_lost()) << "freeing memory would wait for the kernel";
}

TEST_F(NcclConnectionTest, AsksToBeReplacedWhenARevokeHangs) {
  bounds.abort = 50ms;
  Pair pair(*this);
  pair.queue_receive();
  obey("hang=ncclCommRevoke@0");
  pair.group.cancel_all();

  const Error error = error_of([&] { pair.connection->wait("reception", soon()); });

  EXPECT_TRUE(says(error, "must be replaced")) << error.what();
}

// The kernel does not notice the abort.
TEST_F(NcclConnectionTest, AsksToBeReplacedWhenAKernelDoesNotEnd) {
  bounds.abort = 50ms;
  Pair pair(*this);
  obey("kernel=stuck@0");
  pair.queue_receive();
  pair.group.cancel_all();

  const Error error = error_of([&] { pair.connection->wait("reception", soon()); });

  EXPECT_TRUE(says(error, "must be replaced")) << error.what();
  EXPECT_TRUE(library()->is_poisoned());
}

TEST_F(NcclConnectionTest, AsksToBeReplacedWhenAnAbortFails) {
  Pair pair(*this);
  pair.queue_receive();
  obey("fail=ncclCommAbort:1@0");
  pair.group.cancel_all();

  const Error error = error_of([&] { pair.connection->wait("reception", soon()); });
  obey("");

  EXPECT_TRUE(says(error, "must be replaced")) << error.what();
}

// The first step of a generation may take longer than the bound of an abort, and an abort cannot end before the earlier
// work of the stream. A survivor that does not wait for it would lose a good state.
TEST_F(NcclConnectionTest, WaitsForTrainingBeforeTheBoundOfAnAbortBegins) {
  bounds.abort = 500ms;
  FakeCollectiveStream::Training training;
  std::promise<void> step;
  training.enqueue([end = step.get_future().share()] { end.wait(); });
  Pair pair(*this);
  pair.stream->set_training(training);
  pair.stream->mark_training(0);
  pair.stream->follow_training(0);
  pair.queue_receive();
  pair.group.cancel_all();
  std::thread long_step([&] {
    const Deadline end = Deadline::after(2 * bounds.abort);
    while (!end.has_passed()) std::this_thread::sleep_until(end.moment());
    step.set_value();
  });

  const Error error = error_of([&] { pair.connection->wait("reception", soon()); });
  long_step.join();

  EXPECT_TRUE(is_generation_ended(error)) << error.what();
  EXPECT_FALSE(library()->is_poisoned());
}

TEST_F(NcclConnectionTest, AsksToBeReplacedWhenTrainingDoesNotEnd) {
  bounds.training = 50ms;
  FakeCollectiveStream::Training training;
  std::promise<void> step;
  training.enqueue([end = step.get_future().share()] { end.wait(); });
  Pair pair(*this);
  pair.stream->set_training(training);
  pair.stream->mark_training(0);
  pair.stream->follow_training(0);
  pair.queue_receive();
  pair.group.cancel_all();

  const Error error = error_of([&] { pair.connection->wait("reception", soon()); });
  step.set_value();

  EXPECT_EQ(error.code(), ErrorCode::device_failed);
  EXPECT_TRUE(says(error, "the work that training had queued before did not end within 50 ms")) << error.what();
  EXPECT_TRUE(says(error, "must be replaced")) << error.what();
  EXPECT_TRUE(library()->is_poisoned());
  EXPECT_TRUE(pair.stream->is_device_lost());
}

// Freeing memory that a kernel still writes would wait for the kernel, or corrupt memory.
TEST_F(NcclConnectionTest, KeepsWhatADeviceMayStillUse) {
  bounds.abort = 50ms;
  ThreadGroup group(2);
  const auto memory = std::make_shared<int>(7);
  library();
  std::unique_ptr<MemoryCommunicator> controls[] = {connect_control(group, 0, 2), connect_control(group, 1, 2)};
  run_ranks(2, group, [&](int rank) {
    const NcclConnection connection(library(), std::make_shared<FakeCollectiveStream>(), *controls[rank],
                                    rank == 0 ? std::shared_ptr<void>(memory) : nullptr, bounds, soon());
    controls[rank]->barrier(soon());
    obey("hang=ncclCommAbort@0");
    controls[rank]->barrier(soon());
  });
  EXPECT_EQ(memory.use_count(), 2);

  obey("");

  EXPECT_EQ(memory.use_count(), 2);
}

TEST_F(NcclConnectionTest, IsDestroyedInBoundedTime) {
  bounds.abort = 50ms;
  Pair pair(*this);
  obey("hang=ncclCommAbort@0");

  pair.connection.reset();

  EXPECT_TRUE(library()->is_poisoned());
}

TEST_F(NcclConnectionTest, DoesNotConnectAgainAfterNcclWasLost) {
  library()->poison(nullptr);
  ThreadGroup group(2);
  const auto control = connect_control(group, 0, 2);

  const Error error = error_of([&] {
    const NcclConnection connection(library(), std::make_shared<FakeCollectiveStream>(), *control, nullptr, bounds,
                                    soon());
  });

  EXPECT_EQ(error.code(), ErrorCode::device_failed);
  EXPECT_TRUE(says(error, "must be replaced")) << error.what();
}

// A single rank needs no NCCL.
TEST_F(NcclConnectionTest, LeavesTheDeviceUsableIfNothingIsStuckAndNoAbortIsTried) {
  obey("version=22805");
  Pair pair(*this);

  pair.connection.reset();

  EXPECT_TRUE(library()->is_poisoned());
  EXPECT_FALSE(pair.stream->is_device_lost());
}

TEST_F(NcclConnectionTest, LosesTheDeviceIfSomethingIsStuckAndNoAbortIsTried) {
  obey("version=22805");
  bounds.abort = 50ms;
  Pair pair(*this);
  pair.queue_receive();

  pair.connection.reset();

  EXPECT_TRUE(pair.stream->is_device_lost());
  // Otherwise the test would not end.
  const std::vector<float> sent(pair.received.size());
  pair.peer->queue(
      "sending", [&] { pair.peer->send(sent.data(), sent.size(), 0); }, soon());
  pair.peer->wait("sending", soon());
}

// These versions crash when a process connects again.
TEST_F(NcclConnectionTest, AsksForAnotherProcessWhereTheVersionDoesNotSurviveAnAbort) {
  obey("version=22805");

  const Error error = connect_alone(cancel_once_connecting, soon());

  EXPECT_EQ(error.code(), ErrorCode::device_failed);
  EXPECT_TRUE(says(error, "must be replaced") && says(error, "2.28.9 or newer")) << error.what();
  EXPECT_EQ(fake_nccl_calls("ncclCommAbort", 0), 0);
}

TEST_F(NcclConnectionTest, RevokesBeforeItAbortsWhereTheVersionCan) {
  { const Pair pair(*this); }

  EXPECT_EQ(fake_nccl_calls("ncclCommRevoke", -1), 2);
  EXPECT_EQ(fake_nccl_calls("ncclCommAbort", -1), 2);
}

TEST_F(NcclConnectionTest, AbortsAloneWhereTheVersionCannotRevoke) {
  obey("version=21903");
  { const Pair pair(*this); }

  EXPECT_EQ(fake_nccl_calls("ncclCommRevoke", -1), 0);
  EXPECT_EQ(fake_nccl_calls("ncclCommAbort", -1), 2);
}

// The socket to a peer breaks before the watchdog has said that the peer died.
TEST_F(NcclConnectionTest, LetsTheWatchdogJudgeABrokenConnection) {
  Pair pair(*this);
  pair.queue_receive();
  obey("async=6@0");
  std::thread watchdog([&] {
    // The generation ends only after the abort, when the connection waits for the watchdog.
    while (fake_nccl_calls("ncclCommAbort", 0) == 0) std::this_thread::yield();
    pair.group.cancel_all();
  });

  const Error error = error_of([&] { pair.connection->wait("reception", soon()); });
  watchdog.join();

  EXPECT_TRUE(is_generation_ended(error)) << error.what();
}

TEST_F(NcclConnectionTest, FailsWhenTheGenerationDoesNotEndInTime) {
  bounds.verdict = 10ms;
  Pair pair(*this);
  pair.queue_receive();
  obey("async=6@0");

  const Error error = error_of([&] { pair.connection->wait("reception", soon()); });

  EXPECT_EQ(error.code(), ErrorCode::device_failed);
  EXPECT_TRUE(says(error, "remote process exited") && says(error, "the fake's last error")) << error.what();
}

// The driver fails to import the memory of a peer that died.
TEST_F(NcclConnectionTest, LetsTheWatchdogJudgeAnErrorOfCudaInWhatIsBeingQueued) {
  Pair pair(*this);
  obey("fail=ncclRecv:1@0");
  std::thread watchdog([&] {
    while (fake_nccl_calls("ncclCommAbort", 0) == 0) std::this_thread::yield();
    pair.group.cancel_all();
  });

  const Error error = error_of([&] { pair.queue_receive(); });
  watchdog.join();

  EXPECT_TRUE(is_generation_ended(error)) << error.what();
}

TEST_F(NcclConnectionTest, NamesTheCallThatFailed) {
  bounds.verdict = 10ms;
  Pair pair(*this);
  obey("fail=ncclRecv:1@0");

  const Error error = error_of([&] { pair.queue_receive(); });

  EXPECT_EQ(error.code(), ErrorCode::device_failed);
  EXPECT_TRUE(says(error, "ncclRecv of the reception failed for rank 0 of 2 on fake:0")) << error.what();
}

// NCCL may refuse two ranks on one GPU. It would refuse a new process too.
TEST_F(NcclConnectionTest, DistinguishesARefusalToConnectFromAFailure) {
  obey("fail=ncclCommInitRankConfig:5@0");

  const Error error = connect_alone([](ThreadGroup&) {}, soon());

  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_TRUE(says(error, "invalid usage")) << error.what();
}

TEST_F(NcclConnectionTest, DoesNotWaitForNcclWhenTheDeviceIsLost) {
  Pair pair(*this);
  pair.queue_receive();
  obey("hang=ncclCommAbort@0");
  pair.stream->lose();

  const Error error = error_of([&] { pair.connection->wait("reception", soon()); });

  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_TRUE(says(error, "illegal memory access")) << error.what();
  EXPECT_EQ(fake_nccl_calls("ncclCommAbort", 0), 0);
  // The peer sends the missing message, so that the fake's kernel ends.
  const std::vector<float> sent(8);
  pair.peer->queue(
      "sending", [&] { pair.peer->send(sent.data(), sent.size(), 0); }, soon());
  while (fake_nccl_running() > 0) std::this_thread::yield();
}

}  // namespace holdfast
