// Messages between head and agents, there and back, and those that cannot be.

#include "agents/host_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/base/error.h"
#include "support/thrown.h"

namespace holdfast::recovery {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HostMessages, CarryAGeneration) {
  const HostAgent::Generation generation = parse_generation(
      generation_message({.number = 4, .members = {7, 5}, .shards = {3, 1}, .may_use_snapshots = false}));

  EXPECT_EQ(generation.number, 4);
  EXPECT_THAT(generation.members, ElementsAre(7, 5));
  EXPECT_THAT(generation.shards, ElementsAre(3, 1));
  EXPECT_FALSE(generation.may_use_snapshots);
}

HostAgent::Generation over_hosts() {
  return {.number = 4,
          .members = {7, 5, 9},
          .hosts = {1, 1, 0},
          .host = 1,
          .peers = {{.host = 0, .address = {"10.0.0.7", 41234}, .key = new_link_key()}}};
}

TEST(HostMessages, CarryAGenerationOverSeveralHosts) {
  const HostAgent::Generation sent = over_hosts();

  const HostAgent::Generation generation = parse_generation(generation_message(sent));

  EXPECT_THAT(generation.hosts, ElementsAre(1, 1, 0));
  EXPECT_EQ(generation.host, 1);
  ASSERT_EQ(generation.peers.size(), 1U);
  EXPECT_EQ(generation.peers[0].host, 0);
  EXPECT_EQ(generation.peers[0].address, sent.peers[0].address);
  EXPECT_EQ(generation.peers[0].key, sent.peers[0].key);
}

TEST(HostMessages, RefuseAGenerationWhoseHostsDoNotFit) {
  std::vector<HostAgent::Generation> wrong(6, over_hosts());
  wrong[0].hosts = {1, 0};
  wrong[1].hosts = {1, 0, 1};
  wrong[2].hosts = {0, 0, 0};
  wrong[3].hosts = {1, 1, 2};
  wrong[4].peers.clear();
  wrong[5].hosts.clear();

  for (std::size_t i = 0; i < wrong.size(); ++i) {
    EXPECT_THAT(sentence_thrown_by([&] { parse_generation(generation_message(wrong[i])); }),
                HasSubstr("opened generation 4 with hosts that do not fit"))
        << i;
  }
}

TEST(HostMessages, CarryWhatLivesAndWhatHasEnded) {
  const Presence presence = parse_presence(
      presence_message({.members = {7}, .steps = {12}, .ended = {{.member = 8, .status = {.code = 0, .signal = 9}}}}));

  EXPECT_THAT(presence.members, ElementsAre(7));
  EXPECT_THAT(presence.steps, ElementsAre(12));
  ASSERT_EQ(presence.ended.size(), 1U);
  EXPECT_EQ(presence.ended[0].member, 8);
  EXPECT_EQ(presence.ended[0].status.signal, 9);
  EXPECT_FALSE(presence.ended[0].crash.has_value());
}

TEST(HostMessages, TellOfARunThatAFolderOffers) {
  const Presence presence = parse_presence(presence_message({.offered = OfferedRun{.run = "a1b2", .choices = "{}"}}));

  ASSERT_TRUE(presence.offered.has_value());
  EXPECT_EQ(presence.offered->run, "a1b2");
  EXPECT_EQ(presence.offered->choices, "{}");
  EXPECT_FALSE(parse_presence(presence_message({})).offered.has_value());
}

TEST(HostMessages, RefuseAPresenceThatCannotBe) {
  EXPECT_THAT(sentence_thrown_by([] {
                parse_presence(presence_message({.members = {7, 8}, .steps = {12}}));
              }),
              HasSubstr("named 2 processes and the states of 1"));
  EXPECT_THAT(sentence_thrown_by([] {
                parse_presence(presence_message({.members = {7, 7}, .steps = {12, 3}}));
              }),
              HasSubstr("named a process twice"));
}

TEST(HostMessages, RefuseNumbersThatAreNotEnumerators) {
  for (const char* key : {"phase", "join_state"}) {
    for (const nlohmann::json& number : {nlohmann::json(-1), nlohmann::json(1000), nlohmann::json(1.5)}) {
      nlohmann::json status = status_message({});
      status[key] = number;

      EXPECT_EQ(code_thrown_by([&] { parse_status(status); }), ErrorCode::input_output) << status;
    }
  }
  EXPECT_EQ(code_thrown_by([] { code_in({{"code", 99}}); }), ErrorCode::input_output);
  EXPECT_EQ(code_in({{"code", static_cast<int>(ErrorCode::disk_full)}}), ErrorCode::disk_full);
}

TEST(HostMessages, RefuseNumbersThatTheirTypeCannotBe) {
  for (const char* number : {"-1", "1e300", "18446744073709551616", "true", "null", "[]"}) {
    const nlohmann::json message{{"samples", nlohmann::json::parse(number)}};

    EXPECT_EQ(code_thrown_by([&] { whole_number_in<std::uint64_t>(message, "samples"); }), ErrorCode::input_output)
        << message;
  }
  EXPECT_EQ(whole_number_in<std::uint64_t>({{"samples", ~std::uint64_t{0}}}, "samples"), ~std::uint64_t{0});
  EXPECT_EQ(whole_number_in<std::int64_t>({{"step", -1}}, "step"), -1);
  EXPECT_EQ(code_thrown_by([] {
              whole_number_in<int>({{"member", std::int64_t{1} << 31}}, "member");
            }),
            ErrorCode::input_output);
  EXPECT_EQ(code_thrown_by([] { whole_numbers_in<int>({{"members", {1, "2"}}}, "members"); }), ErrorCode::input_output);
}

// A process writes it into shared memory, and another one reads it half-written.
TEST(HostMessages, CarryTextsThatAreNotUtf8) {
  const ProcessStatus status = parse_status(nlohmann::json::parse(status_message({.in_background = "a\xFF"}).dump()));

  EXPECT_EQ(status.in_background, "a\\xff");
}

}  // namespace
}  // namespace holdfast::recovery
