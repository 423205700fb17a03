// How host 0 judges what another host has, and whether a folder is shared.

#include "agents/host_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "holdfast/base/error.h"
#include "links/link_token.h"
#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

HostFacts facts() {
  return {.version = "0.1.0",
          .arithmetic = "isa avx2",
          .replicas = 2,
          .program = "a1b2",
          .command = "./train --epochs 3",
          .run_directory = "/shared/run"};
}

std::vector<std::string> problems_of(const HostFacts& theirs) {
  std::vector<std::string> problems;
  for (const HostCheck& check : compare(facts(), theirs, 1)) {
    EXPECT_EQ(check.host, 1);
    EXPECT_EQ(check.problem.empty(), check.remedy.empty()) << check.what;
    EXPECT_EQ(check.problem.empty(), !check.found.empty()) << check.what;
    if (!check.problem.empty()) problems.push_back(check.what + ": " + check.problem);
  }
  return problems;
}

TEST(HostFacts, AreLikeThoseOfTheFirstHost) {
  EXPECT_THAT(problems_of(facts()), IsEmpty());
  EXPECT_EQ(compare(facts(), facts(), 1).size(), 6U);
}

TEST(HostFacts, ThatDifferAreNamedOneByOne) {
  HostFacts other = facts();
  other.version = "0.2.0";
  other.arithmetic = "isa avx512_core";
  other.replicas = 3;
  other.program = "c3d4";
  other.command = "./train";
  other.run_directory = "/home/run";

  EXPECT_THAT(
      problems_of(other),
      ElementsAre("Holdfast: it has Holdfast 0.2.0, and host 0 has 0.1.0",
                  "arithmetic: it computes with isa avx512_core, and host 0 with isa avx2, which gives other bits",
                  "replicas: it would start 3, and host 0 would start 2",
                  "command: it is \"./train\" there and \"./train --epochs 3\" on host 0",
                  "program: its file is not that of host 0",
                  "run directory: it is /home/run there and /shared/run on host 0"));
}

TEST(HostFacts, SayWhyTheFolderIsOfNoUse) {
  HostFacts other = facts();
  other.folder_problem = "it cannot write there";

  EXPECT_THAT(problems_of(other), ElementsAre("run directory: /shared/run: it cannot write there"));
}

TEST(HostFacts, HaveFoldersOfOneKind) {
  HostFacts other = facts();
  other.has_own_folder = true;
  HostFacts head = other;
  other.run_directory = "/home/run";

  EXPECT_THAT(problems_of(other), ElementsAre("run directory: it has one of its own, and host 0 shares one"));
  for (const HostCheck& check : compare(head, other, 1)) EXPECT_EQ(check.problem, "") << check.what;
}

TEST(HostFacts, CompareNoProgramIfThereIsNone) {
  HostFacts without = facts();
  without.program = without.command = "";

  EXPECT_EQ(compare(without, without, 1).size(), 4U);
  EXPECT_THAT(problems_of(without), ElementsAre("command: it is not given there and \"./train --epochs 3\" on host 0"));
}

TEST(HostFacts, ComeAsTheyWereSent) {
  HostFacts sent = facts();
  sent.folder_problem = "it is full";

  const HostFacts came = parse_facts(facts_message(sent));

  EXPECT_EQ(facts_message(came), facts_message(sent));
}

TEST(HostFacts, AreRefusedFromAWrongMessage) {
  nlohmann::json message = facts_message(facts());
  message["replicas"] = 1e20;
  EXPECT_THROW(parse_facts(message), Error);
  message.erase("replicas");
  EXPECT_THROW(parse_facts(message), nlohmann::json::exception);
}

TEST(LinksMessage, ComesAsItWasSent) {
  const LinkPeer peer{.host = 3, .address = {.host = "10.0.0.7", .port = 41234}, .key = new_link_key()};

  const std::vector<LinkPeer> came = parse_links(links_message({peer}));

  ASSERT_EQ(came.size(), 1U);
  EXPECT_EQ(came[0].host, 3);
  EXPECT_EQ(came[0].address, peer.address);
  EXPECT_EQ(came[0].key, peer.key);
  EXPECT_THROW(parse_links({{"peers", {{{"host", 1}, {"address", "a"}, {"port", 1}, {"key", "no key"}}}}}), Error);
}

TEST(DoctorMark, IsFoundByAHostThatSharesTheFolder) {
  const TemporaryFolder folder;
  const DoctorMark mark(folder / "run");

  EXPECT_EQ(why_folder_is_of_no_use({.run_directory = folder / "run"}, mark.text(), 1), "");
  EXPECT_THAT(why_folder_is_of_no_use({.run_directory = folder / "run"}, "another", 1),
              HasSubstr("another file than the one"));
  EXPECT_THAT(why_folder_is_of_no_use({.run_directory = folder / "other"}, mark.text(), 1),
              HasSubstr("does not find there"));
}

TEST(DoctorMark, MayNotBeFoundByAHostWithAFolderOfItsOwn) {
  const TemporaryFolder folder;
  const DoctorMark mark(folder / "run");
  std::ofstream(folder / "file") << "no folder";

  EXPECT_EQ(why_folder_is_of_no_use({.run_directory = folder / "own", .has_own_folder = true}, mark.text(), 1), "");
  EXPECT_FALSE(fs::exists(folder / "own"));
  EXPECT_THAT(why_folder_is_of_no_use({.run_directory = folder / "run", .has_own_folder = true}, mark.text(), 1),
              HasSubstr("it is the folder of host 0"));
  EXPECT_THAT(why_folder_is_of_no_use({.run_directory = folder / "file", .has_own_folder = true}, mark.text(), 1),
              HasSubstr("it cannot write there"));
}

TEST(DoctorMark, IsGoneWithAllFoldersThatWereMadeForIt) {
  const TemporaryFolder folder;

  { const DoctorMark mark(folder / "runs/first"); }

  EXPECT_FALSE(fs::exists(folder / "runs"));
}

// The folders were left, and a later check took the run directory for one that the user had made.
TEST(DoctorMark, LeavesNoFolderWhenItCannotBeWritten) {
  const TemporaryFolder folder;
  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = 0, .rlim_max = old_limit.rlim_max};

  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_THROW(DoctorMark(folder / "run"), Error);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);

  EXPECT_FALSE(fs::exists(folder / "run"));
}

TEST(DoctorMark, ChangesNothingOfARun) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "run/hosts");
  std::ofstream(folder / "run/hosts/head") << "mark";

  { const DoctorMark mark(folder / "run"); }

  EXPECT_TRUE(fs::exists(folder / "run/hosts/head"));
  EXPECT_FALSE(fs::exists(folder / "run/hosts/doctor"));
}

}  // namespace
}  // namespace holdfast::recovery
