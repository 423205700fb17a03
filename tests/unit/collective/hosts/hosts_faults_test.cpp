// Something goes wrong at each byte of an exchange, in each direction. No rank may hang or return a wrong sum, and each
// must be told what a trainer can use.

#include "collective/hosts/hosts_communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <vector>

#include "unit/collective/hosts/support/faulty_link.h"
#include "unit/collective/hosts/support/summed.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kFaultFloats = 32;
constexpr FloatRange kAll{0, kFaultFloats};

// What two ranks on two hosts got of a sum and a broadcast.
struct Outcome {
  std::vector<std::exception_ptr> thrown;
  std::vector<std::vector<std::uint32_t>> sums = std::vector<std::vector<std::uint32_t>>(2);
  std::size_t moved = 0;  // bytes of the link of rank 0, in one direction

  std::optional<ErrorCode> code(int rank) const {
    if (!thrown[static_cast<std::size_t>(rank)]) return std::nullopt;
    try {
      std::rethrow_exception(thrown[static_cast<std::size_t>(rank)]);
    } catch (const Error& error) {
      return error.code();
    }
  }
};

class HostsFaults : public testing::Test {
 protected:
  using Strike = std::function<void(HostGroup&)>;

  // `strike` happens on rank 0 at the byte.
  static Outcome run(FaultyLink::Direction direction, std::size_t at, const Strike& strike,
                     const std::function<Deadline()>& deadline) {
    HostGroup group(HostLayout({1, 1}));
    group.set_piece_floats(16);
    Outcome outcome;
    group.wrap_links([&](std::unique_ptr<Link> link, int rank, int) -> std::unique_ptr<Link> {
      if (rank == 1) return link;
      return std::make_unique<FaultyLink>(std::move(link), direction, at, outcome.moved, [&] { strike(group); });
    });
    outcome.thrown = run_each_rank(2, [&](int rank) {
      const ShardAssignment assignment({3, 2});
      const auto communicator = group.connect(shape_for(rank, assignment, kFaultFloats));
      outcome.sums[static_cast<std::size_t>(rank)] = summed_bits(*communicator, assignment, kAll, 0, deadline());
      std::vector<std::byte> bytes(20);
      communicator->broadcast(bytes, 0, true, deadline());
    });
    return outcome;
  }

  // Calls `check` with the outcome of a fault at each byte of an exchange.
  static void strike_at_each_byte(const Strike& strike, const std::function<Deadline()>& deadline,
                                  const std::function<void(const Outcome&)>& check) {
    const auto expected = expected_bits(5, kFaultFloats, kAll, 0);
    for (const auto direction : {FaultyLink::Direction::sending, FaultyLink::Direction::receiving}) {
      constexpr std::size_t kNever = 1'000'000;
      const std::size_t bytes = run(direction, kNever, strike, long_enough).moved;
      // Three messages of the sum, one of the gathering, and where rank 0 sends, one of the broadcast.
      ASSERT_GE(bytes, 300U);
      for (std::size_t at = 0; at < bytes; ++at) {
        const Outcome outcome = run(direction, at, strike, deadline);

        SCOPED_TRACE(testing::Message() << "byte " << at << " of " << bytes);
        for (const auto& sum : outcome.sums) EXPECT_TRUE(sum.empty() || sum == expected);
        check(outcome);
      }
    }
  }

  static void expect_one_of(std::optional<ErrorCode> code, std::initializer_list<ErrorCode> codes) {
    ASSERT_TRUE(code.has_value());
    EXPECT_NE(std::find(codes.begin(), codes.end(), *code), codes.end()) << to_string(*code);
  }
};

}  // namespace

TEST_F(HostsFaults, ALinkThatEndsEndsTheGenerationOnBothSides) {
  strike_at_each_byte([](HostGroup&) { throw LinkClosed("the test says so"); }, long_enough,
                      [](const Outcome& outcome) {
                        EXPECT_EQ(outcome.code(0), ErrorCode::cancelled);
                        // The other side may have got all that it needs before.
                        if (outcome.code(1)) EXPECT_EQ(outcome.code(1), ErrorCode::cancelled);
                      });
}

TEST_F(HostsFaults, AConnectionThatIsShutDownEndsTheGenerationOnBothSides) {
  strike_at_each_byte(
      [](HostGroup& group) {
        group.shut_down_sockets();
        throw LinkClosed("it is shut down");
      },
      long_enough,
      [](const Outcome& outcome) {
        EXPECT_EQ(outcome.code(0), ErrorCode::cancelled);
        if (outcome.code(1)) EXPECT_EQ(outcome.code(1), ErrorCode::cancelled);
      });
}

TEST_F(HostsFaults, ACancelledGenerationEndsForAll) {
  strike_at_each_byte([](HostGroup& group) { group.cancel_words(); }, long_enough,
                      [](const Outcome& outcome) {
                        EXPECT_EQ(outcome.code(0), ErrorCode::cancelled);
                        if (outcome.code(1)) EXPECT_EQ(outcome.code(1), ErrorCode::cancelled);
                      });
}

// The link stands still, and so both ranks wait for each other.
TEST_F(HostsFaults, ALinkThatStandsStillEndsAtTheDeadline) {
  const auto deadline = [] { return Deadline::after(1ms); };
  strike_at_each_byte([](HostGroup&) {}, deadline,
                      [](const Outcome& outcome) {
                        expect_one_of(outcome.code(0), {ErrorCode::deadline_exceeded, ErrorCode::cancelled});
                        if (outcome.code(1))
                          expect_one_of(outcome.code(1), {ErrorCode::deadline_exceeded, ErrorCode::cancelled});
                      });
}

TEST_F(HostsFaults, AFailureOfTheSystemIsThrownAndEndsTheGenerationOfThePeer) {
  strike_at_each_byte([](HostGroup&) { throw Error(ErrorCode::out_of_memory, "no buffers"); }, long_enough,
                      [](const Outcome& outcome) {
                        EXPECT_EQ(outcome.code(0), ErrorCode::out_of_memory);
                        if (outcome.code(1)) EXPECT_EQ(outcome.code(1), ErrorCode::cancelled);
                      });
}

// The peer is a stranger that sends random bytes, from each byte of a right exchange on.
TEST_F(HostsFaults, GarbageIsRefused) {
  Random random(4, Purpose::user, 0, 0);
  for (int trial = 0; trial < 200; ++trial) {
    SocketPair ends = unix_pair();
    HostConnections connections{.layout = HostLayout({1, 1}), .generation = 1};
    ThreadGroup memory(1);
    CommunicatorShape shape = shape_for(0, ShardAssignment::even(2, 2), kFaultFloats);
    CommunicatorShape local = shape;
    local.size = 1;
    connections.memory = memory.memory_for(local);
    connections.links.resize(2);
    connections.links[1] = std::make_unique<SocketLink>(std::move(ends.first));
    HostsCommunicator communicator(shape, std::move(connections));
    std::vector<std::byte> garbage(1 + random.below(5000));
    for (std::byte& byte : garbage) byte = static_cast<std::byte>(random.below(256));
    ASSERT_EQ(::send(ends.second.value(), garbage.data(), garbage.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(garbage.size()));
    checked(::shutdown(ends.second.value(), SHUT_WR));
    const int slot = 0;

    try {
      communicator.reduce(std::span(&slot, 1), kAll, long_enough());
      FAIL() << "garbage was added";
    } catch (const FrameError& error) {
      EXPECT_EQ(error.fault(), FrameFault::garbage);
    } catch (const GenerationEnded&) {
      EXPECT_LT(garbage.size(), kFrameHeaderBytes);
    }
    EXPECT_TRUE(communicator.is_cancelled());
  }
}

}  // namespace holdfast
