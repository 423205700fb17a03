// The exchange without processes: the test plays the requests of all ranks, and maps the descriptors of the replies as
// ranks would.

#include "channel/arena_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <limits>
#include <string>
#include <thread>

#include "channel/messages.h"
#include "holdfast/base/error.h"
#include "holdfast/base/signal_word.h"
#include "support/comes_true.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::size_t kArenaBytes = 4096;
SharedMemory take_read_only(ArenaExchange::Reply& reply, std::size_t owner) {
  return SharedMemory::map_read_only(std::move(reply.message.descriptors.at(owner)), kArenaBytes);
}

SharedMemory take_writable(ArenaExchange::Reply& reply, std::size_t owner) {
  return SharedMemory::map_writable(std::move(reply.message.descriptors.at(owner)), kArenaBytes);
}

const SignalWord& signal_of(const SharedMemory& memory) {
  return *reinterpret_cast<const SignalWord*>(memory.readable().data());
}

ErrorCode refusal(const std::vector<ArenaExchange::Reply>& replies, const std::string& part) {
  try {
    check_arena_reply(replies.at(0).message.body);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(part));
    return error.code();
  }
  ADD_FAILURE() << "not refused";
  return ErrorCode::unsupported;
}

TEST(ArenaExchange, WaitsUntilAllRanksHaveAsked) {
  ArenaExchange exchange(0, 3);

  EXPECT_TRUE(exchange.request(2, 0, kArenaBytes).empty());
  EXPECT_TRUE(exchange.request(0, 0, kArenaBytes).empty());
  EXPECT_EQ(exchange.request(1, 0, kArenaBytes).size(), 3U);
}

TEST(ArenaExchange, KeepsExchangesApart) {
  ArenaExchange exchange(0, 2);

  EXPECT_TRUE(exchange.request(0, 0, kArenaBytes).empty());
  EXPECT_TRUE(exchange.request(0, 1, 2 * kArenaBytes).empty());
  EXPECT_EQ(exchange.request(1, 0, kArenaBytes).size(), 2U);
  EXPECT_EQ(exchange.request(1, 1, 2 * kArenaBytes).size(), 2U);
}

TEST(ArenaExchange, ShowsPeersWhatTheOwnerWrites) {
  ArenaExchange exchange(0, 2);
  exchange.request(0, 0, kArenaBytes);
  std::vector<ArenaExchange::Reply> replies = exchange.request(1, 0, kArenaBytes);
  SharedMemory own = take_writable(replies.at(1), 1);
  const SharedMemory seen_by_peer = take_read_only(replies.at(0), 1);

  std::memcpy(own.writable().data() + 100, "abc", 4);

  EXPECT_STREQ(reinterpret_cast<const char*>(seen_by_peer.readable().data() + 100), "abc");
}

TEST(ArenaExchange, GivesPeersNoWritableMemory) {
  ArenaExchange exchange(0, 2);
  exchange.request(0, 0, kArenaBytes);
  std::vector<ArenaExchange::Reply> replies = exchange.request(1, 0, kArenaBytes);

  EXPECT_THROW(take_writable(replies.at(0), 1), Error);
  EXPECT_THROW(take_writable(replies.at(1), 0), Error);
}

TEST(ArenaExchange, CountsTheSignalsOfARankInAllItsArenas) {
  ArenaExchange exchange(0, 2);
  for (int number = 0; number < 2; ++number) {
    exchange.request(0, number, kArenaBytes);
    std::vector<ArenaExchange::Reply> replies = exchange.request(1, number, kArenaBytes);
    SharedMemory own = take_writable(replies.at(1), 1);
    reinterpret_cast<SignalWord*>(own.writable().data())->count_up();
  }

  EXPECT_EQ(exchange.arrivals(0), 0U);
  EXPECT_EQ(exchange.arrivals(1), 2U);
}

TEST(ArenaExchange, EndsWaitsAtOnceWhenItIsCancelled) {
  ArenaExchange exchange(0, 2);
  exchange.request(0, 0, kArenaBytes);
  std::vector<ArenaExchange::Reply> replies = exchange.request(1, 0, kArenaBytes);
  const SharedMemory peer = take_read_only(replies.at(0), 1);
  SignalWord::Outcome outcome = SignalWord::Outcome::reached;
  std::thread waiter([&] { outcome = signal_of(peer).wait_until(1, Deadline::after(kPatience)); });

  exchange.cancel();
  waiter.join();

  EXPECT_EQ(outcome, SignalWord::Outcome::cancelled);
}

TEST(ArenaExchange, RefusesRequestsOfAnEndedGeneration) {
  ArenaExchange exchange(3, 2);
  exchange.request(0, 0, kArenaBytes);
  exchange.cancel();

  const auto replies = exchange.request(1, 0, kArenaBytes);

  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].rank, 1);
  EXPECT_EQ(refusal(replies, "generation 3"), ErrorCode::cancelled);
}

TEST(ArenaExchange, PassesOnWhatEachRankShows) {
  const SharedMemory first = SharedMemory::create("first", kArenaBytes);
  SharedMemory second = SharedMemory::create("second", kArenaBytes);
  second.writable()[7] = std::byte{9};
  ArenaExchange exchange(0, 2);
  exchange.request(0, 0, kArenaBytes, first.read_only_descriptor());

  std::vector<ArenaExchange::Reply> replies = exchange.request(1, 0, kArenaBytes, second.read_only_descriptor());

  ASSERT_EQ(replies.at(0).message.descriptors.size(), 4U);
  EXPECT_TRUE(first.is_same_as(replies.at(1).message.descriptors.at(2)));
  const SharedMemory seen = take_read_only(replies.at(0), 3);
  EXPECT_EQ(seen.readable()[7], std::byte{9});
}

TEST(ArenaExchange, RefusesWhenSomeShowMemoryAndOthersDoNot) {
  const SharedMemory memory = SharedMemory::create("memory", kArenaBytes);
  ArenaExchange exchange(0, 2);
  exchange.request(0, 0, kArenaBytes, memory.read_only_descriptor());

  EXPECT_EQ(refusal(exchange.request(1, 0, kArenaBytes), "some do not"), ErrorCode::incompatible);
}

// A peer would read beyond the end of the smaller one.
TEST(ArenaExchange, RefusesShownMemoriesOfDifferentSizes) {
  const SharedMemory small = SharedMemory::create("small", kArenaBytes);
  const SharedMemory large = SharedMemory::create("large", 2 * kArenaBytes);
  ArenaExchange exchange(0, 2);
  exchange.request(0, 0, kArenaBytes, small.read_only_descriptor());

  const auto replies = exchange.request(1, 0, kArenaBytes, large.read_only_descriptor());

  EXPECT_EQ(replies.size(), 2U);
  EXPECT_EQ(refusal(replies, "rank 0: " + std::to_string(kArenaBytes) + ", rank 1: " + std::to_string(2 * kArenaBytes)),
            ErrorCode::incompatible);
}

TEST(ArenaExchange, NamesTheSizesThatDiffer) {
  ArenaExchange exchange(0, 2);
  exchange.request(0, 0, 4096);

  const auto replies = exchange.request(1, 0, 8192);

  EXPECT_EQ(replies.size(), 2U);
  EXPECT_EQ(refusal(replies, "rank 0: 4096, rank 1: 8192"), ErrorCode::incompatible);
}

TEST(ArenaExchange, RefusesMemoryWithoutRoomForASignalWord) {
  ArenaExchange exchange(0, 1);

  EXPECT_EQ(refusal(exchange.request(0, 0, 3), "3 bytes"), ErrorCode::invalid_argument);
  EXPECT_EQ(refusal(exchange.request(0, 1, 0), "0 bytes"), ErrorCode::invalid_argument);
}

TEST(ArenaExchange, ReportsThatMemoryIsExhausted) {
  ArenaExchange exchange(0, 1);
  const std::size_t bytes = std::numeric_limits<std::int64_t>::max();

  EXPECT_THROW(check_arena_reply(exchange.request(0, 0, bytes).at(0).message.body), Error);
}

}  // namespace
}  // namespace holdfast::recovery
