// `holdfast run` with programs of all kinds: programs of the SDK, one in C, and shell scripts without Holdfast.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "resilience/digits_run.h"
#include "support/comes_true.h"
#include "support/fake_gpus.h"
#include "support/program.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class Run : public ::testing::Test {
 protected:
  // The arguments of `holdfast run OPTIONS -- PROGRAM`, with a run directory of its own.
  std::vector<std::string> arguments(const std::vector<std::string>& options,
                                     const std::vector<std::string>& program) const {
    std::vector<std::string> all{"run", "--run-dir", folder_ / "run"};
    all.insert(all.end(), options.begin(), options.end());
    all.push_back("--");
    all.insert(all.end(), program.begin(), program.end());
    return all;
  }

  ProgramResult run(const std::vector<std::string>& options, const std::vector<std::string>& program) const {
    return run_program(built_program("holdfast"), arguments(options, program));
  }

  ProgramResult run_script(const std::vector<std::string>& options, const std::string& script) const {
    return run(options, {"sh", "-c", script});
  }

  std::string in_run(const std::string& name) const { return folder_ / "run/" + name; }

  std::vector<Json> events(const std::string& name) const {
    std::vector<Json> found;
    for (const Json& line : journal_of(folder_)) {
      if (line.at("event") == name) found.push_back(line);
    }
    return found;
  }

  const TemporaryFolder folder_;
};

std::string line_with(const std::string& beginning, const std::string& output) {
  const std::size_t at = output.find(beginning);
  return at == std::string::npos ? "nothing begins with " + beginning + " in:\n" + output
                                 : output.substr(at, output.find('\n', at) - at);
}

// --- programs without Holdfast

TEST_F(Run, GivesEachProcessTheEnvironmentOfOtherLaunchers) {
  const ProgramResult result =
      run_script({"--plain", "--devices", "cpu:0,cpu:3"},
                 "echo \"$LOCAL_RANK of $WORLD_SIZE $LOCAL_WORLD_SIZE at $MASTER_ADDR on $HOLDFAST_DEVICE\" > "
                 "\"$HOLDFAST_RUN_DIRECTORY/$RANK\"; echo $MASTER_PORT > \"$HOLDFAST_RUN_DIRECTORY/port-$RANK\"");

  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(read_file(in_run("0")), "0 of 2 2 at 127.0.0.1 on cpu:0\n");
  EXPECT_EQ(read_file(in_run("1")), "1 of 2 2 at 127.0.0.1 on cpu:3\n");
  EXPECT_EQ(read_file(in_run("port-0")), read_file(in_run("port-1")));
  EXPECT_GT(std::stoi(read_file(in_run("port-0"))), 0);
}

TEST_F(Run, PassesEverythingAfterTheFirstMarkToTheProgram) {
  const ProgramResult result =
      run({"--plain", "--replicas", "1"}, {"sh", "-c", "echo \"said: $@\"", "sh", "--replicas", "7", "--", "--help"});

  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("said: --replicas 7 -- --help\n"));
}

TEST_F(Run, StartsAllAgainWhenOneOfAPlainProgramFails) {
  const ProgramResult result = run_script(
      {"--plain", "--replicas", "2"}, "[ $RANK = 1 ] && mkdir \"$HOLDFAST_RUN_DIRECTORY/failed\" && exit 3; exit 0");

  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(events("ready").size(), 4U);
  ASSERT_EQ(events("restart").size(), 1U);
  EXPECT_EQ(events("restart")[0].at("restart").at("cause"), "exited with code 3");
}

// The watchdog handles SIGPIPE, and programs that it starts must not inherit that.
TEST_F(Run, LeavesTheSignalsOfAPlainProgramAsTheyAre) {
  const ProgramResult result =
      run_script({"--plain", "--replicas", "1", "--max-restarts", "0"}, "kill -PIPE $$; exit 0");

  EXPECT_EQ(result.exit_code, 70);
  EXPECT_THAT(result.output, HasSubstr("killed by signal 13 (SIGPIPE)"));
}

TEST_F(Run, AsksAPlainProgramToStopBySigterm) {
  // A sleep that begins between the signal and its trap outlives its shell, and keeps the output open.
  const std::string script =
      "trap 'touch \"$HOLDFAST_RUN_DIRECTORY/saved-$RANK\"; exit 0' TERM; "
      "touch \"$HOLDFAST_RUN_DIRECTORY/up-$RANK\"; while true; do sleep 0.1 & wait; done";
  RunningProgram program(built_program("holdfast"), arguments({"--plain", "--replicas", "2"}, {"sh", "-c", script}));
  const auto is_there = [&](const char* name) { return std::filesystem::exists(in_run(name)); };
  ASSERT_TRUE(comes_true([&] { return is_there("up-0") && is_there("up-1"); }));

  program.signal(SIGTERM);

  const ProgramResult result = program.wait();
  EXPECT_EQ(result.exit_code, 75) << result.output;
  EXPECT_TRUE(is_there("saved-0"));
  EXPECT_TRUE(is_there("saved-1"));
}

TEST_F(Run, SaysHowToRunAProgramThatNeverRegisters) {
  const ProgramResult result = run({"--replicas", "2"}, {"true"});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("--plain"));
}

TEST_F(Run, StartsNothingWhenTheProgramDoesNotExist) {
  const ProgramResult result = run({}, {"no-such-program-anywhere"});

  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.output, HasSubstr("no-such-program-anywhere"));
  EXPECT_FALSE(std::filesystem::exists(in_run("")));
}

TEST_F(Run, IsRefusedUnderAnotherLauncher) {
  std::vector<std::string> all{"RANK=1", "WORLD_SIZE=2", built_program("holdfast")};
  const std::vector<std::string> own = arguments({}, {"true"});
  all.insert(all.end(), own.begin(), own.end());

  const ProgramResult result = run_program("/usr/bin/env", all);

  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.output, HasSubstr("rank 1 of 2"));
}

// --- programs of the SDK

class RunDigits : public Run {
 protected:
  std::vector<std::string> digits(const std::map<std::string, std::string>& options = {}) const {
    std::vector<std::string> all = digits_arguments({.options = options}, folder_);
    all.insert(all.begin(), built_program("digits"));
    return all;
  }

  // The program's own list has what the journal had when training ended: a process may be waited for after that.
  void expect_restarts(std::size_t count) const {
    const Json of_journal = report_with_restarts(folder_).at("restarts");
    const Json of_program = report_of(folder_).at("restarts");
    EXPECT_EQ(of_journal.size(), count) << of_journal.dump();
    ASSERT_LE(of_program.size(), of_journal.size());
    for (std::size_t i = 0; i < of_program.size(); ++i) {
      EXPECT_EQ(of_program[i].at("cause"), of_journal[i].at("cause"));
    }
  }
};

TEST_F(RunDigits, TrainsToTheSameBitsAsOnItsOwnAlthoughOneReplicaIsKilled) {
  const ProgramResult result = run({"--replicas", "3", "--inject", "rank=1,step=10,fault=kill"}, digits());

  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(report_of(folder_).at("weights_digest"), undisturbed_digest());
  expect_restarts(1);
  EXPECT_EQ(Json::parse(read_file(in_run("run.json"))).at("shards"), 4);
}

TEST_F(RunDigits, StrikesOnceWithEachFaultOfTheEnvironment) {
  std::vector<std::string> all{"HOLDFAST_FAULTS=rank=1,step=10,fault=slow,factor=1.5", built_program("holdfast")};
  const std::vector<std::string> own = arguments({"--replicas", "2"}, digits());
  all.insert(all.end(), own.begin(), own.end());

  const ProgramResult result = run_program("/usr/bin/env", all);

  ASSERT_EQ(result.exit_code, 0) << result.output;
  const std::filesystem::directory_iterator marks(in_run("faults"));
  EXPECT_EQ(std::distance(begin(marks), end(marks)), 1);
}

TEST_F(RunDigits, AssignsOneShardToEachReplicaByDefault) {
  ASSERT_EQ(run({"--replicas", "3"}, digits({{"--shards", "0"}})).exit_code, 0);

  EXPECT_EQ(Json::parse(read_file(in_run("run.json"))).at("shards"), 3);
}

TEST_F(RunDigits, RefusesToResumeWithAnOptionThatChangesTheBits) {
  ASSERT_EQ(run({"--replicas", "2"}, digits()).exit_code, 0);

  const ProgramResult result = run({"--replicas", "2"}, digits({{"--seed", "12"}}));

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("seed 11"));
}

class RunDigitsOnOtherNames : public RunDigits, public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Names, RunDigitsOnOtherNames, ::testing::Values("gpu:0", "cuda", "cuda0", "CUDA:0", "0"));

// The program silently trained on CPUs.
TEST_P(RunDigitsOnOtherNames, SaysThatADeviceDoesNotExist) {
  const ProgramResult result = run({"--devices", GetParam()}, digits());

  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("there is no device \"" + std::string(GetParam()) + "\"; devices are named"));
}

TEST_F(RunDigits, RefusesToTrainOnCpusAndGpusTogether) {
  const ProgramResult result = run({"--devices", "cpu:0,cuda:0"}, digits());

  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("cannot train one model"));
}

TEST_F(RunDigits, StopsInOrderAlthoughItsOutputIsClosed) {
  RunningProgram program(built_program("holdfast"), arguments({"--replicas", "2"}, digits({{"--epochs", "1000"}})));
  ASSERT_TRUE(
      comes_true([&] { return std::filesystem::exists(in_run("journal.jsonl")) && !events("savepoint").empty(); }));

  program.close_output();
  program.signal(SIGINT);

  EXPECT_EQ(program.wait().exit_code, 75);
  EXPECT_TRUE(events("died").empty());
}

// The new process dies three times after it has received a part of the state.
TEST_F(RunDigits, SurvivesNewcomersThatDieBeforeTheirFirstStep) {
  std::vector<std::string> options{"--replicas", "2", "--devices", "cpu:0", "--when-lost", "wait"};
  for (const char* fault :
       {"rank=1,step=10,fault=kill", "rank=1,phase=broadcast,generation=1,fault=kill",
        "rank=1,phase=broadcast,generation=2,fault=kill", "rank=1,phase=broadcast,generation=3,fault=kill"}) {
    options.insert(options.end(), {"--inject", fault});
  }

  const ProgramResult result = run(options, digits());

  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(report_of(folder_).at("weights_digest"), undisturbed_digest());
  expect_restarts(4);
}

// The state in memory outlives all replicas, and the run with them.
TEST_F(RunDigits, LeavesASavepointOfTheSnapshotInMemoryWhenTheRunGivesUp) {
  const std::map<std::string, std::string> options{{"--memory-snapshot-every", "1"}, {"--save-every", "0"}};

  const ProgramResult result =
      run({"--replicas", "1", "--max-restarts", "0", "--inject", "rank=0,step=15,fault=kill"}, digits(options));

  EXPECT_EQ(result.exit_code, 70) << result.output;
  EXPECT_THAT(result.output, HasSubstr("savepoint-0000000015.h5"));
  ASSERT_EQ(run({"--replicas", "1"}, digits(options)).exit_code, 0);
  EXPECT_THAT(events("resumed").back().at("details").at("path").get<std::string>(),
              HasSubstr("savepoint-0000000015.h5"));
  EXPECT_EQ(report_of(folder_).at("weights_digest"), undisturbed_digest());
}

// --- a program in C

class RunInC : public Run {
 protected:
  // The output of an undisturbed run.
  static const std::string& undisturbed_line(std::int64_t steps) {
    static std::map<std::int64_t, std::string> lines;
    std::string& line = lines[steps];
    if (!line.empty()) return line;
    const TemporaryFolder folder;
    const ProgramResult result =
        run_program(built_program("holdfast"), {"run", "--run-dir", folder / "run", "--replicas", "1", "--",
                                                built_program("c_worker"), std::to_string(steps)});
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return line = line_with("y = ", result.output);
  }

  RunningProgram& start(const std::vector<std::string>& options) {
    return program_.emplace(built_program("holdfast"),
                            arguments(options, {built_program("c_worker"), std::to_string(steps_)}));
  }

  // Calls disturb() when the first thousand steps are done, and returns the run's result. Repeats with longer runs
  // until disturb() came before the end, as came_in_time() tells: how many steps a busy machine takes meanwhile is
  // chance.
  ProgramResult run_disturbed(const std::vector<std::string>& options, const std::function<void()>& disturb,
                              const std::function<bool(const ProgramResult&)>& came_in_time) {
    for (steps_ = 30'000;; steps_ *= 10) {
      std::filesystem::remove_all(in_run(""));
      RunningProgram& program = start(options);
      const bool trains = comes_true(
          [this] { return std::filesystem::exists(in_run("journal.jsonl")) && !events("line_fitted").empty(); });
      EXPECT_TRUE(trains);
      disturb();
      const ProgramResult result = program.wait();
      if (came_in_time(result) || result.exit_code != 0 || steps_ >= 3'000'000) return result;
    }
  }

  void expect_same_line(const ProgramResult& result) const {
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_EQ(line_with("y = ", result.output), undisturbed_line(steps_));
  }

  // For run_disturbed().
  std::function<bool(const ProgramResult&)> restarts(std::size_t count) const {
    return [this, count](const ProgramResult&) { return events("restart").size() >= count; };
  }

  // The step at which the newest generation continued.
  std::int64_t step_taken_up() const { return events("line_taken_up").back().at("details").at("step"); }

  std::set<int> pids() const {
    std::set<int> pids;
    for (const Json& line : events("ready")) pids.insert(line.at("pid").get<int>());
    return pids;
  }

  std::int64_t steps_ = 30'000;
  std::optional<RunningProgram> program_;
};

class RunInCThatLosesAProcess : public RunInC, public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(WhenLost, RunInCThatLosesAProcess, ::testing::Values("wait", "shrink"));

TEST_P(RunInCThatLosesAProcess, ContinuesWithTheSameBits) {
  const auto kill_one = [&] {
    std::set<int> victims = pids();
    victims.erase(events("line_fitted").at(0).at("pid").get<int>());
    ::kill(*victims.begin(), SIGKILL);
  };

  const ProgramResult result = run_disturbed({"--replicas", "3", "--when-lost", GetParam()}, kill_one, restarts(1));

  expect_same_line(result);
  EXPECT_EQ(events("restart").size(), 1U);
  // With fewer steps the run may be over before the new process is ready.
  EXPECT_LE(pids().size(), 4U) << "survivors were started again";
  EXPECT_GE(step_taken_up(), 1000);
}

// A program that computes on CPUs, with GPUs of a fake driver. The tests check how the watchdog reacts to the driver's
// events.
class RunInCOnGpus : public RunInC {
 protected:
  // Calls `happen`, which breaks one of `count` devices, once the watchdog listens to the driver's events.
  ProgramResult run_on(int count, const std::vector<std::string>& options, const std::function<void()>& happen,
                       const std::function<bool(const ProgramResult&)>& came_in_time) {
    fake_.emplace(gpus(count));
    const auto disturb = [&] {
      EXPECT_TRUE(comes_true([this] { return !events("devices_watched").empty(); }));
      happen();
    };
    return run_disturbed(options, disturb, [&](const ProgramResult& result) {
      if (came_in_time(result)) return true;
      fake_.reset();
      fake_.emplace(gpus(count));  // to which nothing has happened
      return false;
    });
  }

  int device_of(const Json& exited) const {
    for (const Json& line : journal_of(folder_)) {
      for (const Json& action : line.value("actions", Json::array())) {
        const bool is_start = action.at("action") == "start_process" && action.at("member") == exited.at("member");
        if (is_start) return action.at("place");
      }
    }
    return -1;
  }

  std::string report() const { return run_program(built_program("holdfast"), {"report", in_run("")}).output; }

  std::optional<FakeGpus> fake_;
};

TEST_F(RunInCOnGpus, LeavesOutADeviceThatHasFallenOffTheBus) {
  const ProgramResult result = run_on(
      2, {"--devices", "cuda:0,cuda:1"},
      [&] {
        fake_->happen({{"device", 1}, {"xid", 79}});
      },
      restarts(1));

  expect_same_line(result);
  ASSERT_EQ(events("restart").size(), 1U);
  EXPECT_THAT(events("restart")[0].at("restart").at("cause").get<std::string>(), HasSubstr("cuda:1: Xid 79"));
  EXPECT_EQ(events("place_lost").size(), 1U);
  EXPECT_EQ(events("ready").size(), 2U) << "no process was started on the lost device, or next to the other process";
  EXPECT_THAT(report(),
              HasSubstr("device slot 1 was left out for 600.0 s: cuda:1: Xid 79, the GPU has fallen off the bus"));
}

TEST_F(RunInCOnGpus, ContinuesOnAnotherFreeDevice) {
  const ProgramResult result = run_on(
      3, {"--devices", "cuda:0,cuda:1,cuda:2", "--replicas", "2", "--when-lost", "wait"}, [&] { fake_->lose(1); },
      restarts(1));

  expect_same_line(result);
  ASSERT_EQ(events("ready").size(), 3U);
  EXPECT_EQ(device_of(events("ready").back()), 2);
  EXPECT_GE(step_taken_up(), 1000);
}

TEST_F(RunInCOnGpus, ReplacesTheReplicaWhoseMemoryFailed) {
  const ProgramResult result = run_on(
      2, {"--devices", "cuda:0,cuda:1", "--when-lost", "wait"},
      [&] {
        fake_->happen({{"device", 0}, {"xid", 48}});
      },
      restarts(1));

  expect_same_line(result);
  EXPECT_EQ(events("restart").size(), 1U);
  ASSERT_EQ(events("ready").size(), 3U);
  EXPECT_EQ(device_of(events("ready").back()), 0);
  EXPECT_THAT(events("place_lost"), ::testing::IsEmpty());
}

TEST_F(RunInCOnGpus, ReplacesNoReplicaForAnErrorOfAProcess) {
  const ProgramResult result = run_on(
      2, {"--devices", "cuda:0,cuda:1"},
      [&] {
        fake_->happen({{"device", 0}, {"xid", 45}});
      },
      [&](const ProgramResult&) { return !events("device_event").empty(); });

  expect_same_line(result);
  EXPECT_FALSE(events("device_event").empty());
  EXPECT_THAT(events("restart"), ::testing::IsEmpty());
  EXPECT_THAT(report(), HasSubstr("cuda:0: Xid 45"));
}

TEST_F(RunInCOnGpus, TrainsWithoutADriverAndSaysSo) {
  const Variable nvml("HOLDFAST_NVML", "/nowhere/libnvidia-ml.so.1");

  // A short run may end before the survey's process has answered.
  const ProgramResult result = run_disturbed(
      {"--devices", "cuda:0,cuda:1"}, [] {},
      [&](const ProgramResult&) { return !events("devices_unwatched").empty(); });

  expect_same_line(result);
  ASSERT_EQ(events("devices_unwatched").size(), 1U);
  EXPECT_THAT(events("devices_unwatched")[0].at("what").get<std::string>(), HasSubstr("there is no NVIDIA driver"));
}

TEST_F(RunInCOnGpus, DoesNotWaitForADriverThatHangs) {
  Json facts = gpus(2);
  facts["hangs_in"] = "nvmlInit_v2";
  const FakeGpus fake(facts);

  expect_same_line(start({"--devices", "cuda:0,cuda:1"}).wait());
}

TEST_F(RunInC, ContinuesFromTheWatchdogsMemoryWhenAllProcessesAreKilled) {
  const auto kill_all = [&] {
    for (const int pid : pids()) ::kill(pid, SIGKILL);
  };

  const ProgramResult result = run_disturbed({"--replicas", "2"}, kill_all, restarts(2));

  expect_same_line(result);
  EXPECT_EQ(events("restart").size(), 2U);
  EXPECT_GE(step_taken_up(), 1000);
}

TEST_F(RunInC, SaysThatItsStateInMemoryIsLostWhenTheRunGivesUp) {
  const auto kill_all = [&] {
    for (const int pid : pids()) ::kill(pid, SIGKILL);
  };

  const ProgramResult result = run_disturbed({"--replicas", "1", "--max-restarts", "0"}, kill_all, restarts(1));

  EXPECT_EQ(result.exit_code, 70) << result.output;
  EXPECT_THAT(result.output, HasSubstr("was not saved"));
}

TEST_F(RunInC, StopsInOrderAndContinuesWhenStartedAgain) {
  const ProgramResult stopped = run_disturbed(
      {"--replicas", "2"}, [&] { program_->signal(SIGTERM); },
      [](const ProgramResult& result) { return result.exit_code == 75; });

  EXPECT_EQ(stopped.exit_code, 75) << stopped.output;
  EXPECT_THAT(stopped.output, Not(HasSubstr("y = ")));
  expect_same_line(start({"--replicas", "3"}).wait());
  EXPECT_GE(step_taken_up(), 1000);
}

TEST_F(RunInC, SavesOnRequestAndContinues) {
  ProgramResult saved;

  const ProgramResult result = run_disturbed(
      {"--replicas", "2"},
      [&] {
        saved = run_program(built_program("holdfast"), {"snapshot", folder_ / "run"});
      },
      [&](const ProgramResult&) { return saved.exit_code == 0; });

  EXPECT_EQ(saved.exit_code, 0) << saved.output;
  EXPECT_TRUE(std::filesystem::exists(in_run("line.state")));
  expect_same_line(result);
}

TEST_F(Run, AssignsFewerShardsToASlowProcessInC) {
  const ProgramResult result = run({"--replicas", "2", "--when-slow", "deal"}, {built_program("paced_worker")});

  EXPECT_EQ(result.exit_code, 0) << result.output;
  ASSERT_FALSE(events("straggler").empty());
  ASSERT_EQ(events("dealt").size(), 1U);
  const auto assigned = events("dealt")[0].at("shards").get<std::vector<int>>();
  ASSERT_EQ(assigned.size(), 2U);
  EXPECT_EQ(assigned[0] + assigned[1], 6);
  // 2 shards, or fewer when a busy machine makes the slow process even slower.
  EXPECT_LT(assigned[1], 3);
  for (const Json& line : events("shards_dealt")) EXPECT_EQ(line.at("details").get<std::vector<int>>(), assigned);
  EXPECT_EQ(events("shards_dealt").size(), 2U);
  EXPECT_TRUE(events("restart").empty());
}

TEST_F(RunInC, SaysThatTheProgramNeedsAWatchdog) {
  const ProgramResult result = run_program(built_program("c_worker"), {});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("holdfast run"));
}

}  // namespace
}  // namespace holdfast
