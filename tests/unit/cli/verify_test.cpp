// `holdfast verify` on whole, damaged and foreign files in memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/format/exchange/npz.h"
#include "unit/cli/support/command_test.h"

namespace holdfast::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using Verify = testing::CommandTest;

TEST_F(Verify, SaysThatAFileIsWhole) {
  write("/d/a.h5", {{"a", {2}, {1, 2}}});

  EXPECT_EQ(run({"verify", "/d/a.h5"}), kDone);

  EXPECT_THAT(out(), MatchesRegex("/d/a.h5: whole, 1 array, [0-9]+ bytes, digest [0-9a-f]{32}\n"));
  EXPECT_EQ(problems(), "");
}

TEST_F(Verify, FindsTheDamagedFileOfAFolder) {
  write("/d/a.h5", {{"a", {2}, {1, 2}}});
  write("/d/b.h5", {{"a", {2}, {1, 2}}});
  write("/d/c.h5", {{"a", {2}, {1, 2}}});
  damage("/d/b.h5");

  EXPECT_EQ(run({"verify", "/d"}), kDamaged);

  EXPECT_THAT(out(), HasSubstr("/d/a.h5: whole"));
  EXPECT_THAT(out(), HasSubstr("/d/c.h5: whole"));
  EXPECT_THAT(out(), Not(HasSubstr("/d/b.h5")));
  EXPECT_THAT(problems(), MatchesRegex("holdfast: .*/d/b.h5.*\n"));
}

TEST_F(Verify, MentionsWhatWritersLeftAndWhatWasSetAside) {
  write("/d/a.h5", {{"a", {2}, {1, 2}}});
  write_text("/d/b.h5.tmp-0123456789abcdef", "part");
  write_text("/d/c.h5.damaged", "bad");
  write_text("/d/c.h5.damaged.txt", "why");

  EXPECT_EQ(run({"verify", "/d"}), kDone);

  EXPECT_THAT(problems(), HasSubstr("/d/b.h5.tmp-0123456789abcdef is being written"));
  EXPECT_THAT(problems(), HasSubstr("/d/c.h5.damaged was set aside as damaged; /d/c.h5.damaged.txt says why"));
  EXPECT_THAT(problems(), Not(HasSubstr("holdfast: /d/c.h5.damaged.txt")));
}

TEST_F(Verify, ReturnsNotDoneWithoutFiles) {
  write_text("/d/a.txt", "Hello");

  EXPECT_EQ(run({"verify", "/d"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("/d has no *.h5 file"));
  EXPECT_EQ(run({"verify", "/d/missing.h5"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("/d/missing.h5"));
}

TEST_F(Verify, TreatsAnUnknownFileAsDamaged) {
  write_text("/d/a.h5", std::string(8192, 'x'));
  write("/d/b.h5", {{"a", {2}, {1, 2}}});
  files_.open_for_writing("/d/b.h5")->write_at(0, std::vector<std::byte>(1));

  EXPECT_EQ(run({"verify", "/d/a.h5"}), kDamaged);
  EXPECT_THAT(problems(), HasSubstr("/d/a.h5"));
  EXPECT_EQ(run({"verify", "/d/b.h5"}), kDamaged);
  EXPECT_THAT(problems(), HasSubstr("/d/b.h5"));
}

TEST_F(Verify, CannotVerifyFilesOfOtherPrograms) {
  format::write_npz(files_, "/d/a.h5", "{}", {});

  EXPECT_EQ(run({"verify", "/d/a.h5"}), kNotDone);

  EXPECT_THAT(problems(), HasSubstr("/d/a.h5 was not verified: it is not a Holdfast file"));
}

}  // namespace
}  // namespace holdfast::cli
