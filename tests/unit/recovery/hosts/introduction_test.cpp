// What an agent says of itself, and which differences send it home.

#include "hosts/introduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Introduction of_host(int host) {
  return {.version = "0.1.0",
          .run_id = "812",
          .hosts = 3,
          .host = host,
          .replicas = 2,
          .port = 41234,
          .program = "a1b2",
          .choices = {{"seed", "7"}, {"shards", "8"}}};
}

std::string difference_of(const std::function<void(Introduction&)>& change) {
  Introduction theirs = of_host(1);
  change(theirs);
  return difference(of_host(0), theirs);
}

bool is_refused(const nlohmann::json& message) {
  try {
    parse_introduction(message);
  } catch (const Error& error) {
    return error.code() == ErrorCode::input_output;
  }
  return false;
}

TEST(Introduction, IsReadAsItWasWritten) {
  const Introduction read = parse_introduction(introduction_message(of_host(2)));

  EXPECT_EQ(introduction_message(read), introduction_message(of_host(2)));
  EXPECT_EQ(read.host, 2);
  EXPECT_EQ(read.port, 41234);
  EXPECT_EQ(read.choices.at("seed"), "7");
}

TEST(Introduction, IsRefusedWhenSomethingIsMissingOrImpossible) {
  const nlohmann::json whole = introduction_message(of_host(1));
  for (const auto& [key, value] : whole.items()) {
    nlohmann::json lacks = whole;
    lacks.erase(key);
    EXPECT_TRUE(is_refused(lacks)) << key;
    nlohmann::json other = whole;
    other[key] = nlohmann::json::array({1});
    EXPECT_TRUE(is_refused(other)) << key;
  }
  for (const auto& [key, value] : {std::pair("hosts", 513), std::pair("hosts", 0), std::pair("host", -1),
                                   std::pair("replicas", 0), std::pair("port", 65536), std::pair("protocol", 0)}) {
    nlohmann::json impossible = whole;
    impossible[key] = value;
    EXPECT_TRUE(is_refused(impossible)) << key << " " << value;
  }
  nlohmann::json large = whole;
  large["hosts"] = 18446744073709551615U;
  EXPECT_TRUE(is_refused(large));
}

TEST(Introduction, TellsOnlyItsProtocolWhenThatIsAnother) {
  const Introduction theirs = parse_introduction({{"kind", "introduction"}, {"protocol", 99}, {"something", "new"}});

  EXPECT_THAT(difference(of_host(0), theirs), AllOf(HasSubstr("version 99"), HasSubstr("install the same version")));
}

TEST(Introduction, TakesAnAgentThatDiffersInNothing) {
  EXPECT_EQ(difference_of([](Introduction&) {}), "");
  EXPECT_EQ(difference_of([](Introduction& theirs) { theirs.replicas = 5; }), "");
}

TEST(Introduction, SaysWhatDiffersAndWhatToDo) {
  EXPECT_THAT(difference_of([](Introduction& theirs) { theirs.run_id = ""; }),
              AllOf(HasSubstr("another run"), HasSubstr("is none"), HasSubstr("\"812\"")));
  EXPECT_THAT(difference_of([](Introduction& theirs) { theirs.version = "0.2.0"; }),
              AllOf(HasSubstr("0.2.0"), HasSubstr("0.1.0")));
  EXPECT_THAT(difference_of([](Introduction& theirs) { theirs.hosts = 2; }), HasSubstr("--nnodes the same number"));
  EXPECT_THAT(difference_of([](Introduction& theirs) { theirs.host = 3; }), HasSubstr("--node-rank, from 0 to 2"));
  EXPECT_THAT(difference_of([](Introduction& theirs) { theirs.host = 0; }), HasSubstr("another --node-rank"));
  EXPECT_THAT(difference_of([](Introduction& theirs) { theirs.program = "c3"; }), HasSubstr("copy the same file"));
}

TEST(Introduction, DiffersWhereOneHostSharesItsRunDirectoryAndTheOtherDoesNot) {
  EXPECT_THAT(difference_of([](Introduction& theirs) { theirs.has_separate_folders = true; }),
              AllOf(HasSubstr("it has a run directory of its own, and host 0 shares one"),
                    HasSubstr("give --separate-run-dirs on all hosts or on none")));
}

TEST(Introduction, NamesTheChoiceThatDiffers) {
  EXPECT_THAT(difference_of([](Introduction& theirs) { theirs.choices["seed"] = "8"; }),
              HasSubstr("seed is 8 there and 7 on host 0"));
  EXPECT_THAT(difference_of([](Introduction& theirs) { theirs.choices.erase("shards"); }),
              HasSubstr("shards is none there and 8 on host 0"));
  EXPECT_THAT(difference_of([](Introduction& theirs) { theirs.choices["precision"] = "bf16"; }),
              HasSubstr("precision is bf16 there and none on host 0"));
}

}  // namespace
}  // namespace holdfast::recovery
