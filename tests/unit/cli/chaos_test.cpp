// `holdfast chaos` on shell scripts: where faults come from, what is compared, and what the exit code means.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "holdfast/recovery/fault_plan.h"
#include "support/fake_gpus.h"
#include "support/temporary_folder.h"
#include "unit/cli/support/command_test.h"

namespace holdfast::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Shell scripts stand for programs that train. The command looks only at what they leave in the run directory.
class Chaos : public testing::CommandTest {
 protected:
  int run_chaos(std::vector<std::string> options, const std::string& line) {
    options.insert(options.begin(), "chaos");
    options.insert(options.end(), {"--", "/bin/sh", "-c", "mkdir -p {run_dir}; " + line});
    return run(options);
  }
  // The faults that `seed` draws for a run of the script `line`.
  std::vector<recovery::Fault> drawn(int seed, const std::string& line, std::vector<std::string> options = {}) {
    options.insert(options.end(), {"--faults", "5", "--seed", std::to_string(seed), "--json", "/d/o.json"});
    EXPECT_EQ(run_chaos(std::move(options), line), kDone) << problems();
    const nlohmann::json report = nlohmann::json::parse(text_of("/d/o.json"));
    std::vector<recovery::Fault> faults;
    for (const auto& text : report.at("cases").at(0).at("faults")) {
      faults.push_back(recovery::parse_fault(text.get<std::string>(), 4));
    }
    return faults;
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
// A program that ends with other weights whenever there is a fault.
const std::string kBreaks = kMarks + finish_with("aa${HOLDFAST_FAULTS:+bb}");

TEST_F(Chaos, SaysThatAProgramSurvived) {
  EXPECT_EQ(run_chaos({"--fault", "rank=1,step=10,fault=kill"}, kSurvives), kDone) << problems();

  EXPECT_THAT(out(), HasSubstr("undisturbed: weights aa at step 27"));
  EXPECT_THAT(out(), HasSubstr("1 case, 1 same digest"));
  EXPECT_THAT(out(), Not(HasSubstr("FINDING")));
}

TEST_F(Chaos, IsOfASingleHost) {
  const std::vector<std::string> fault{"chaos", "--fault", "rank=1,step=10,fault=kill", "--"};
  const auto run_with = [&](const std::vector<std::string>& program) {
    std::vector<std::string> all = fault;
    all.insert(all.end(), program.begin(), program.end());
    return run(all);
  };

  EXPECT_EQ(run_with({"holdfast", "run", "--nnodes", "2", "--", "train"}), kNotDone);
  EXPECT_THAT(problems(),
              HasSubstr("the command has --nnodes 2, and chaos tests a program on this host alone; --hosts"));
  EXPECT_EQ(run_with({"holdfast", "run", "--nnodes=3", "--", "train"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("the command has --nnodes 3, and chaos"));
  const Variable hosts("PET_NNODES", "2");
  const Variable host("PET_NODE_RANK", "0");
  const Variable head("PET_MASTER_ADDR", "10.0.0.2");
  EXPECT_EQ(run_with({"train"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("PET_NNODES says that the run has 2 hosts, of which this is number 0, and chaos"));
  EXPECT_THAT(problems(), HasSubstr("--hosts tests it on several addresses"));
}

// The first host does what the only one does above.
TEST_F(Chaos, StartsTheProgramOnEachOfSeveralHosts) {
  const std::string others =
      "touch {run_dir}/host$HOLDFAST_NODE_RANK; [ $HOLDFAST_NODE_RANK = 0 ] || exit 0; "
      "until test -e {run_dir}/host1; do sleep 0.01; done; ";
  EXPECT_EQ(run_chaos({"--hosts", "2", "--fault", "rank=1,step=10,fault=kill"}, others + kBreaks), kDamaged)
      << problems();

  EXPECT_THAT(out(), HasSubstr("--fault rank=1,step=10,fault=kill --replicas 1 --hosts 2 -- "));
  EXPECT_EQ(run_chaos({"--hosts", "2", "--every", "1s"}, others + kSurvives), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("--every kills replicas of one host"));
}

TEST_F(Chaos, TakesOneHostForASingleOne) {
  EXPECT_EQ(run({"chaos", "--fault", "rank=1,step=10,fault=kill", "--", "/bin/sh", "-c",
                 "mkdir -p {run_dir}; " + kSurvives, "--nnodes", "1"}),
            kDone)
      << problems();
}

TEST_F(Chaos, FindsOtherWeightsAndPrintsACommandThatRepeatsThem) {
  EXPECT_EQ(run_chaos({"--fault", "rank=1,step=10,fault=kill"}, kBreaks), kDamaged) << problems();

  EXPECT_THAT(out(), HasSubstr("FINDING: all: other digest"));
  EXPECT_THAT(out(), HasSubstr("holdfast chaos --fault rank=1,step=10,fault=kill --replicas 2 -- /bin/sh -c 'mkdir"));
}

// A shell would make two words of it.
TEST_F(Chaos, QuotesBracesInTheCommandThatRepeatsACase) {
  const std::string line = "mkdir -p {run_dir}; " + kBreaks;

  EXPECT_EQ(run({"chaos", "--fault", "rank=1,step=10,fault=kill", "--", "/bin/sh", "-c", line, "--layers={64,32}"}),
            kDamaged)
      << problems();

  EXPECT_THAT(out(), HasSubstr(" '--layers={64,32}'\n"));
}

TEST_F(Chaos, DrawsTheSameFaultsFromTheSameSeed) {
  EXPECT_EQ(run_chaos({"--faults", "2", "--seed", "8"}, kBreaks), kDamaged) << problems();
  const std::string first = out().substr(out().find("again:"));
  EXPECT_EQ(run_chaos({"--faults", "2", "--seed", "8"}, kBreaks), kDamaged) << problems();

  EXPECT_THAT(first, ::testing::ContainsRegex("holdfast chaos --fault .* --fault .* --replicas 2 -- /bin/sh"));
  EXPECT_EQ(out().substr(out().find("again:")), first);
}

// Faults that need a savepoint, a memory snapshot, a recovery or pruning would never strike.
TEST_F(Chaos, DrawsNoFaultForAPhaseThatTheUndisturbedRunDidNotReach) {
  for (int seed = 0; seed < 20; ++seed) {
    for (const recovery::Fault& fault : drawn(seed, finish_with("aa") + kMarks)) {
      EXPECT_FALSE(recovery::is_of_rank_zero(fault.phase)) << fault.specification;
      EXPECT_NE(fault.phase, recovery::FaultPhase::rendezvous);
      EXPECT_NE(fault.phase, recovery::FaultPhase::broadcast);
      EXPECT_NE(fault.kind, recovery::FaultKind::damage);
      EXPECT_LT(fault.step.value_or(0), 27) << fault.specification;
    }
  }
}

// --replicas only replaces {replicas}, and this program does not use {replicas}.
TEST_F(Chaos, DrawsNoFaultForARankOrAStepThatTheUndisturbedRunDidNotHave) {
  for (int seed = 0; seed < 10; ++seed) {
    for (const recovery::Fault& fault :
         drawn(seed, finish_with("aa") + kMarks, {"--replicas", "4", "--steps", "1000000"})) {
      EXPECT_LT(fault.rank, 2) << fault.specification;
      EXPECT_LT(fault.step.value_or(0), 27) << fault.specification;
    }
  }
}

TEST_F(Chaos, DrawsSavepointFaultsOnlyWhereTheUndisturbedRunWroteSavepoints) {
  const std::string line =
      finish_with("aa") + kMarks +
      "echo '{\"event\":\"savepoint\",\"details\":{\"path\":\"savepoint-0000000020.h5\",\"step\":20}}' >> "
      "{run_dir}/journal.jsonl";
  int of_savepoints = 0;
  for (int seed = 0; seed < 20; ++seed) {
    for (const recovery::Fault& fault : drawn(seed, line)) {
      EXPECT_NE(fault.phase, recovery::FaultPhase::pruning);
      if (!recovery::is_of_savepoint(fault.phase)) continue;
      ++of_savepoints;
      EXPECT_EQ(fault.step, 20) << fault.specification;
    }
  }
  EXPECT_GT(of_savepoints, 0);
}

TEST_F(Chaos, RefusesMoreFaultsThanTheRunHasRoomFor) {
  EXPECT_EQ(run_chaos({"--faults", "200"}, kSurvives), kNotDone);

  EXPECT_THAT(problems(), HasSubstr("a run of 27 steps and 0 savepoints has no room for more than"));
  EXPECT_THAT(problems(), HasSubstr("(--each)"));
}

TEST_F(Chaos, MakesOneRunForEachFaultOfAPlanOnRequest) {
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

TEST_F(Chaos, ReturnsNotDoneWhenAFaultNeverStruck) {
  EXPECT_EQ(run_chaos({"--fault", "rank=1,step=10,fault=kill", "--junit", "/d/o.xml"}, finish_with("aa")), kNotDone);

  EXPECT_THAT(out(), HasSubstr("not every fault struck: all"));
  EXPECT_THAT(out(), HasSubstr("1 case shows nothing about the faults that never struck"));
  EXPECT_THAT(text_of("/d/o.xml"), HasSubstr("failures=\"0\" errors=\"1\""));
  EXPECT_THAT(text_of("/d/o.xml"), HasSubstr("<error message=\"not every fault struck: 0/1\">"));
}

// The marks have the names that the SDK gives to the marks of faults.
TEST_F(Chaos, NamesTheFaultThatNeverStruck) {
  const std::string line =
      finish_with("aa") + "mkdir {run_dir}/faults; touch {run_dir}/faults/1-0123456789abcdef.fired";

  EXPECT_EQ(run_chaos({"--fault", "rank=7,step=3,fault=kill", "--fault", "rank=1,step=4,fault=hang"}, line), kNotDone);

  EXPECT_THAT(out(), HasSubstr("\n  missed: rank=7,step=3,fault=kill\n"));
}

// Faults were parsed only after the undisturbed run, which may take hours.
TEST_F(Chaos, RefusesAnInvalidFaultBeforeAnythingRuns) {
  EXPECT_EQ(run_chaos({"--fault", "rank=1,fault=nothing"}, "exit 3"), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("the fault \"rank=1,fault=nothing\""));
  EXPECT_EQ(run_chaos({"--plan", "/d/missing"}, "exit 3"), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("/d/missing"));
}

TEST_F(Chaos, AcceptsFaultsThatNeverStruckWhenThatIsAllowed) {
  EXPECT_EQ(run_chaos({"--fault", "rank=1,step=10,fault=kill", "--allow-missed"}, finish_with("aa")), kDone);

  EXPECT_THAT(out(), HasSubstr("not every fault struck: all"));
  EXPECT_THAT(out(), Not(HasSubstr("shows nothing")));
}

TEST_F(Chaos, ReturnsNotDoneWhenTheRunEndsBeforeAReplicaIsKilled) {
  EXPECT_EQ(run_chaos({"--every", "1000s"}, finish_with("aa")), kNotDone);

  EXPECT_THAT(out(), HasSubstr("0 replicas killed"));
  EXPECT_THAT(out(), HasSubstr("not every fault struck: soak"));
}

TEST_F(Chaos, SamplesTheMatrix) {
  EXPECT_EQ(run_chaos({"--matrix", "--sample", "3", "--matrix-replicas", "2"}, kSurvives), kDone) << problems();

  EXPECT_THAT(out(), HasSubstr("3 cases, 3 same digest"));
}

// The disturbed program ends only after a death of its child.
TEST_F(Chaos, KillsReplicasRepeatedlyAndShowsTheWatchdogsMemory) {
  const TemporaryFolder folder;
  const std::string watchdog =
      "echo '{\"event\":\"watchdog_started\",\"replicas\":1,\"pid\":'$$'}' > {run_dir}/journal.jsonl; "
      "mkdir " +
      folder / "undisturbed" +
      " 2>/dev/null || sleep 600; "
      "echo '{\"event\":\"fit_finished\",\"details\":{\"step\":27,\"weights_digest\":\"aa\"}}' >> "
      "{run_dir}/journal.jsonl";

  EXPECT_EQ(run_chaos({"--every", "20ms", "--json", "/d/o.json"}, watchdog), kDone) << problems();

  EXPECT_THAT(out(), HasSubstr("replicas killed"));
  EXPECT_THAT(out(), HasSubstr("descriptors"));
  EXPECT_GE(nlohmann::json::parse(text_of("/d/o.json")).at("soak").at("kills").get<int>(), 1);
}

TEST_F(Chaos, RefusesWrongUsage) {
  const std::string fault = "rank=1,step=10,fault=kill";
  EXPECT_EQ(run({"chaos"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("give it after --"));
  EXPECT_EQ(run_chaos({}, kSurvives), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("--plan"));
  EXPECT_EQ(run_chaos({"--fault", fault, "--faults", "2"}, kSurvives), kNotDone);
  EXPECT_EQ(run_chaos({"--fault", "rank=1,fault=kil"}, kSurvives), kNotDone);
  EXPECT_EQ(run({"chaos", "--fault", fault, "--", "/bin/true"}), kNotDone);
  EXPECT_THAT(problems(), HasSubstr("{run_dir}"));
}

TEST_F(Chaos, ReturnsNotDoneWhenTheUndisturbedRunFails) {
  EXPECT_EQ(run_chaos({"--fault", "rank=1,step=10,fault=kill"}, "echo no data; exit 1"), kNotDone);

  EXPECT_THAT(problems(), HasSubstr("exit code 1: no data"));
}

}  // namespace
}  // namespace holdfast::cli
