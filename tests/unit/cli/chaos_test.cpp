#include "chaos.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "exit_code.h"
#include "unit/cli/support/command_test.h"

namespace holdfast::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Shells stand for programs that train: what they leave in the run directory is all that is looked at.
class Chaos : public testing::CommandTest {
 protected:
  int run_chaos(std::vector<std::string> options, const std::string& line) {
    options.insert(options.begin(), "chaos");
    options.insert(options.end(), {"--", "/bin/sh", "-c", "mkdir -p {run_dir}; " + line});
    return run(options);
  }
  std::string text_of(const std::string& path) {
    const FileContents contents = files_.contents();
    std::string text;
    for (const std::byte byte : contents.at(path)) text += static_cast<char>(byte);
    return text;
  }
};

std::string finish_with(const std::string& digest) {
  return "echo '{\"event\":\"watchdog_started\",\"replicas\":2,\"pid\":1}' > {run_dir}/journal.jsonl; "
         "echo '{\"event\":\"fit_finished\",\"details\":{\"step\":27,\"weights_digest\":\"'" +
         digest + "'\"}}' >> {run_dir}/journal.jsonl; ";
}

const std::string kMarks =
    "mkdir {run_dir}/faults; echo $HOLDFAST_FAULTS | tr ';' '\\n' | while read f; do "
    "touch {run_dir}/faults/$f; done; ";
const std::string kSurvives = kMarks + finish_with("aa");
// Other weights whenever there is a fault.
const std::string kBreaks = kMarks + finish_with("aa${HOLDFAST_FAULTS:+bb}");

TEST_F(Chaos, SaysThatAProgramSurvived) {
  EXPECT_EQ(run_chaos({"--fault", "rank=1,step=10,fault=kill"}, kSurvives), kDone) << problems();

  EXPECT_THAT(out(), HasSubstr("undisturbed: weights aa at step 27"));
  EXPECT_THAT(out(), HasSubstr("1 case, 1 same digest"));
  EXPECT_THAT(out(), Not(HasSubstr("FINDING")));
}

TEST_F(Chaos, FindsOtherWeightsAndSaysHowToGetThemAgain) {
  EXPECT_EQ(run_chaos({"--fault", "rank=1,step=10,fault=kill"}, kBreaks), kDamaged) << problems();

  EXPECT_THAT(out(), HasSubstr("FINDING: all: other digest"));
  EXPECT_THAT(out(), HasSubstr("holdfast chaos --fault rank=1,step=10,fault=kill --replicas 2 -- /bin/sh -c 'mkdir"));
}

TEST_F(Chaos, DrawsFaultsFromASeedThatIsSaidAgain) {
  EXPECT_EQ(run_chaos({"--faults", "3", "--seed", "8"}, kBreaks), kDamaged) << problems();

  EXPECT_THAT(out(), HasSubstr("holdfast chaos --faults 3 --seed 8 --replicas 2 --steps 27 -- /bin/sh"));
}

TEST_F(Chaos, MakesARunForEachFaultOfAPlanWhereThatIsAskedFor) {
  write_text("/d/plan", "rank=0,step=3,fault=hang # one\nrank=1,step=4,fault=throw\n");

  EXPECT_EQ(run_chaos({"--plan", "/d/plan", "--each", "--json", "/d/o.json", "--junit", "/d/o.xml"}, kSurvives), kDone)
      << problems();

  const nlohmann::json cases = nlohmann::json::parse(text_of("/d/o.json")).at("cases");
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[1].at("faults").at(0), "rank=1,step=4,fault=throw");
  EXPECT_EQ(cases[1].at("verdict"), "same digest");
  EXPECT_EQ(cases[1].at("last_fit").at("weights_digest"), "aa");
  EXPECT_THAT(text_of("/d/o.xml"), HasSubstr("tests=\"2\" failures=\"0\""));
}

TEST_F(Chaos, TellsBuildServersWhatFailed) {
  EXPECT_EQ(run_chaos({"--fault", "rank=1,step=10,fault=kill", "--junit", "/d/o.xml"}, kBreaks), kDamaged);

  EXPECT_THAT(text_of("/d/o.xml"), HasSubstr("tests=\"1\" failures=\"1\""));
  EXPECT_THAT(text_of("/d/o.xml"), HasSubstr("<failure message=\"other digest: weights aabb at step 27"));
}

TEST_F(Chaos, NamesFaultsThatNeverStruck) {
  EXPECT_EQ(run_chaos({"--fault", "rank=1,step=10,fault=kill"}, finish_with("aa")), kDone);

  EXPECT_THAT(out(), HasSubstr("not every fault struck: all"));
}

TEST_F(Chaos, SamplesTheMatrix) {
  EXPECT_EQ(run_chaos({"--matrix", "--sample", "3", "--matrix-replicas", "2"}, kSurvives), kDone) << problems();

  EXPECT_THAT(out(), HasSubstr("3 cases, 3 same digest"));
}

TEST_F(Chaos, KillsAgainAndAgainAndShowsWhatTheWatchdogHolds) {
  const std::string watchdog =
      "echo '{\"event\":\"watchdog_started\",\"replicas\":1,\"pid\":'$$'}' > {run_dir}/journal.jsonl; "
      "sleep 0.3; sleep 0.3; echo '{\"event\":\"fit_finished\",\"details\":{\"step\":27,\"weights_digest\":\"aa\"}}' "
      ">> "
      "{run_dir}/journal.jsonl";

  EXPECT_EQ(run_chaos({"--every", "20ms", "--json", "/d/o.json"}, watchdog), kDone) << problems();

  EXPECT_THAT(out(), HasSubstr("replicas killed"));
  EXPECT_THAT(out(), HasSubstr("descriptors"));
  EXPECT_GE(nlohmann::json::parse(text_of("/d/o.json")).at("soak").at("kills").get<int>(), 1);
}

TEST_F(Chaos, RefusesWrongUsage) {
  const std::string fault = "rank=1,step=10,fault=kill";
  EXPECT_EQ(run({"chaos"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("behind a --"));
  EXPECT_EQ(run_chaos({}, kSurvives), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("--plan"));
  EXPECT_EQ(run_chaos({"--fault", fault, "--faults", "2"}, kSurvives), kNotDone);
  EXPECT_EQ(run_chaos({"--fault", "rank=1,fault=kil"}, kSurvives), kNotDone);
  EXPECT_EQ(run({"chaos", "--fault", fault, "--", "/bin/true"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("{run_dir}"));
}

TEST_F(Chaos, IsNotDoneWhereTheUndisturbedRunFails) {
  EXPECT_EQ(run_chaos({"--fault", "rank=1,step=10,fault=kill"}, "echo no data; exit 1"), kNotDone);

  EXPECT_THAT(problems(), HasSubstr("exit code 1: no data"));
}

}  // namespace
}  // namespace holdfast::cli
