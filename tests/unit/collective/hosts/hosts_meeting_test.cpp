#include "collective/hosts/hosts_meeting.h"

#include <gtest/gtest.h>

#include <vector>

#include "collective/memory/memory_communicator.h"
#include "unit/collective/hosts/support/summed.h"

namespace holdfast {
namespace {

// The places of ranks on pretended hosts, as agents would tell them.
HostsMeeting meeting_of(HostGroup& group, ThreadGroup& memory) {
  return HostsMeeting([&](const CommunicatorShape& shape, const std::shared_ptr<SharedMemory>& blocks) {
    CommunicatorShape local = shape;
    local.rank = group.layout().local_rank(shape.rank);
    local.size = group.layout().ranks_of(group.layout().host_of(shape.rank));
    HostsMeeting::Admission place{.layout = group.layout(), .generation = 3, .memory = memory.memory_for(local)};
    place.memory.own_blocks = blocks;
    place.sockets = group.sockets_of(shape.rank);
    return place;
  });
}

}  // namespace

TEST(HostsMeeting, ConnectsRanksOfSeveralHosts) {
  const ShardAssignment assignment({2, 3});
  const auto expected = expected_bits(5, 64, {0, 64}, 0);
  HostGroup group(HostLayout({1, 1}), [] { return tcp_pair(); });
  std::atomic<int> wrong = 0;

  run_host_ranks(group, [&](int rank) {
    ThreadGroup memory(1);
    HostsMeeting meeting = meeting_of(group, memory);
    const CommunicatorShape shape = shape_for(rank, assignment, 64);
    meeting.prepare(shape, 1);
    for (int generation = 0; generation < 3; ++generation) {
      const auto communicator = meeting.connect(shape);
      if (summed_bits(*communicator, assignment, {0, 64}, 0) != expected) ++wrong;
    }
  });

  EXPECT_EQ(wrong, 0);
}

TEST(HostsMeeting, NeedsNoSocketOnOneHost) {
  HostGroup group(HostLayout({1}), []() -> SocketPair { throw Error(ErrorCode::refused, "a socket was made"); });
  ThreadGroup memory(1);
  HostsMeeting meeting = meeting_of(group, memory);

  const auto communicator = meeting.connect(shape_for(0, ShardAssignment::even(1, 1), 64));

  EXPECT_NE(dynamic_cast<MemoryCommunicator*>(communicator.get()), nullptr);
}

TEST(HostsMeeting, RefusesAPlaceWithoutTheSocketsOfItsLane) {
  ThreadGroup memory(1);
  HostsMeeting meeting([&](const CommunicatorShape& shape, const std::shared_ptr<SharedMemory>&) {
    CommunicatorShape local = shape;
    local.size = 1;
    return HostsMeeting::Admission{.layout = HostLayout({1, 1}), .memory = memory.memory_for(local)};
  });

  EXPECT_THROW(meeting.connect(shape_for(0, ShardAssignment::even(2, 2), 64)), Error);
}

}  // namespace holdfast
