// Runs on a pretended device, for machines without one. It computes with the CPU's arithmetic, in memory that the host
// may not touch. So the weights must be those of the CPU.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "resilience/digits_run.h"

namespace holdfast {
namespace {

struct DeviceCase {
  const char* name;
  int replicas = 1;
  std::vector<std::string> faults{};
  std::map<std::string, std::string> options{};
};

void PrintTo(const DeviceCase& run, std::ostream* out) {
  *out << run.name;
}

std::vector<std::string> with_precision(const std::string& precision, const TemporaryFolder& folder) {
  return {"--run-dir", folder / "run", "--drawn", "100", "--holdout", "20", "--epochs", "1", "--precision", precision};
}

class OnADevice : public testing::Test {
 protected:
  void SetUp() override {
    undisturbed_digest();  // on the CPU
    ::setenv("HOLDFAST_CUDA_LIBRARY", built_program("libpretended_device.so").c_str(), 1);
  }
  void TearDown() override { ::unsetenv("HOLDFAST_CUDA_LIBRARY"); }
};

class RunOnADevice : public OnADevice, public testing::WithParamInterface<DeviceCase> {};

TEST_P(RunOnADevice, GivesTheSameWeights) {
  DigitsRun run{.replicas = GetParam().replicas, .faults = GetParam().faults, .options = GetParam().options};
  run.options.insert({"--device", "cuda"});
  const nlohmann::json report = completed(run);

  EXPECT_EQ(report.at("weights_digest"), undisturbed_digest());
  EXPECT_EQ(report.at("restarts").size(), GetParam().faults.size()) << report.at("restarts").dump(1);
}

const auto kCases = testing::Values(
    DeviceCase{"alone", 1}, DeviceCase{"two", 2}, DeviceCase{"three", 3}, DeviceCase{"four", 4},
    DeviceCase{"two_on_one", 2, {}, {{"--devices", "cuda:1,cuda:1"}}},
    DeviceCase{"killed", 2, {"rank=1,step=13,fault=kill"}},
    DeviceCase{"spare", 2, {"rank=0,step=13,fault=kill"}, {{"--spares", "1"}}},
    DeviceCase{"alone_from_memory", 1, {"rank=0,step=13,fault=kill"}, {{"--memory-snapshot-every", "5"}}},
    DeviceCase{"samples_on_the_device", 2, {"rank=1,step=13,fault=kill"}, {{"--samples-on", "device"}}},
    DeviceCase{"from_savepoint", 2, {"rank=0,step=13,fault=kill"}, {{"--recover-from", "savepoint"}}},
    DeviceCase{
        "wrong_weight", 2, {"rank=1,step=14,phase=after-update,fault=flip,seed=3"}, {{"--memory-snapshot-every", "5"}}},
    DeviceCase{"wrong_slot_before_a_snapshot",
               2,
               {"rank=0,step=10,phase=snapshot,fault=flip,target=slot,seed=3"},
               {{"--memory-snapshot-every", "5"}}});

INSTANTIATE_TEST_SUITE_P(Cases, RunOnADevice, kCases, [](const auto& test) { return std::string(test.param.name); });

TEST_F(OnADevice, GivesTheSameWeightsWhenAllAreKilledAtOnce) {
  const TemporaryFolder folder;
  HeldRun run({.replicas = 2, .options = {{"--device", "cuda"}, {"--memory-snapshot-every", "3"}}}, {0, 1}, 13, folder);

  const ProgramResult result = run.kill_and_wait();

  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(report_of(folder).at("weights_digest"), undisturbed_digest());
  EXPECT_EQ(report_with_restarts(folder).at("restarts").size(), 2U);
}

class OnPretendedDevices : public testing::Test {
 protected:
  void SetUp() override { ::setenv("HOLDFAST_CUDA_LIBRARY", built_program("libpretended_device.so").c_str(), 1); }
  void TearDown() override { ::unsetenv("HOLDFAST_CUDA_LIBRARY"); }

  ProgramResult start(const DigitsRun& run) const {
    return run_program(built_program("digits"), digits_arguments(run, folder_));
  }

  TemporaryFolder folder_;
};

// Gradients go to the other ranks while they are being computed, but not before a fault has changed them. A flipped bit
// in a gradient that is not checked goes unnoticed.
TEST_F(OnPretendedDevices, AGradientIsChangedBeforeItGoesToTheOthers) {
  const DigitsRun run{.replicas = 2,
                      .faults = {"rank=1,step=14,phase=backward,fault=flip,target=gradient,seed=3"},
                      .options = {{"--device", "cuda"}}};

  const nlohmann::json first = completed(run), second = completed(run);

  EXPECT_NE(first.at("weights_digest"), undisturbed_digest());
  EXPECT_EQ(first.at("weights_digest"), second.at("weights_digest"));
}

TEST_F(OnPretendedDevices, AWrongGradientIsFoundWhereItIsChecked) {
  const DigitsRun run{
      .replicas = 2,
      .faults = {"rank=1,step=14,phase=backward,fault=flip,target=gradient,seed=3"},
      .options = {{"--device", "cuda"}, {"--check-gradients-every", "1"}, {"--check-gradients-shards", "0"}}};

  EXPECT_EQ(completed(run).at("weights_digest"), undisturbed_digest());
}

TEST_F(OnPretendedDevices, ARunRemembersItsPrecision) {
  const ProgramResult first = start({.options = {{"--device", "cuda"}, {"--precision", "bf16"}}});
  ASSERT_EQ(first.exit_code, 0) << first.output;

  const ProgramResult other = start({.options = {{"--device", "cuda"}, {"--precision", "tf32"}}});

  EXPECT_EQ(other.exit_code, 1);
  EXPECT_NE(other.output.find(", bf16 and would go on with"), std::string::npos) << other.output;
  EXPECT_NE(other.output.find("which gives other bits"), std::string::npos) << other.output;
}

TEST_F(OnPretendedDevices, TheLibrarysOrderGivesOtherBitsButTheSameEachTime) {
  const DigitsRun run{.replicas = 4, .options = {{"--device", "cuda"}, {"--reduction", "fastest"}}};

  const nlohmann::json first = completed(run), second = completed(run);

  EXPECT_EQ(first.at("weights_digest"), second.at("weights_digest"));
  EXPECT_NE(first.at("weights_digest"), undisturbed_digest());
}

// The run has then trained with three replicas for a while, so its bits differ from those of four.
TEST_F(OnPretendedDevices, AChangeOfReplicasIsReportedUnderTheLibrarysOrder) {
  DigitsRun run{.replicas = 4,
                .faults = {"rank=1,step=13,fault=kill"},
                .options = {{"--device", "cuda"}, {"--reduction", "fastest"}}};

  const ProgramResult result = start(run);

  ASSERT_EQ(result.exit_code, 0) << result.output;
  const std::vector<nlohmann::json> lines = journal_of(folder_);
  const auto told =
      std::find_if(lines.begin(), lines.end(), [](const auto& line) { return line.at("event") == "sums_reordered"; });
  ASSERT_NE(told, lines.end());
  EXPECT_EQ(told->at("details").at("replicas"), 3);
  EXPECT_EQ(told->at("details").at("first_replicas"), 4);
  EXPECT_NE(result.output.find("with Reduction::fastest"), std::string::npos) << result.output;
}

TEST_F(OnPretendedDevices, AnotherNumberOfReplicasIsRefusedUnderTheLibrarysOrder) {
  const std::map<std::string, std::string> options = {{"--device", "cuda"}, {"--reduction", "fastest"}};
  const ProgramResult first = start({.replicas = 2, .options = options});
  ASSERT_EQ(first.exit_code, 0) << first.output;

  const ProgramResult fewer = start({.replicas = 1, .options = options});
  const ProgramResult other = start({.replicas = 2, .options = {{"--device", "cuda"}}});

  EXPECT_EQ(fewer.exit_code, 1);
  EXPECT_NE(fewer.output.find("started with 2 replicas and Reduction::fastest"), std::string::npos) << fewer.output;
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_NE(other.output.find("started with reduction fastest"), std::string::npos) << other.output;
}

TEST(Cpus, RefuseAPrecisionThatTheyDoNotHave) {
  const TemporaryFolder folder;
  const ProgramResult result = run_program(built_program("digits"), with_precision("tf32", folder));

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.output.find("precision tf32 was asked for on CPUs, which compute in f32 or bf16"), std::string::npos)
      << result.output;
}

// oneDNN then takes the processor for one that has AVX2 and nothing later, so any machine can run this test.
TEST(Cpus, RefuseBf16WithoutInstructionsForIt) {
  const TemporaryFolder folder;
  std::vector<std::string> command = with_precision("bf16", folder);
  command.insert(command.begin(), {"ONEDNN_MAX_CPU_ISA=AVX2", built_program("digits")});
  const ProgramResult result = run_program("/usr/bin/env", command);

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.output.find("oneDNN finds no instructions for it here: isa avx2"), std::string::npos)
      << result.output;
  EXPECT_FALSE(std::filesystem::exists(folder / "run")) << "a run began";
}

class CpusInBf16 : public testing::Test {
 protected:
  void SetUp() override {
    const TemporaryFolder folder;
    const ProgramResult probe = run_program(built_program("digits"), with_precision("bf16", folder));
    if (probe.output.find("oneDNN finds no instructions for it") != std::string::npos) GTEST_SKIP() << probe.output;
    ASSERT_EQ(probe.exit_code, 0) << probe.output;
  }

  static std::string digest_of(DigitsRun run) {
    run.options.insert({"--precision", "bf16"});
    const nlohmann::json report = completed(run);
    EXPECT_EQ(report.at("restarts").size(), run.faults.size());
    return report.at("weights_digest");
  }
};

TEST_F(CpusInBf16, GiveTheSameBitsOnAnyNumberOfReplicasAndAfterKills) {
  const std::string expected = digest_of({.replicas = 1});

  EXPECT_NE(expected, undisturbed_digest());
  for (const int replicas : {2, 4}) EXPECT_EQ(digest_of({.replicas = replicas}), expected) << replicas;
  EXPECT_EQ(digest_of({.replicas = 2, .faults = {kill_of(1, 13)}}), expected);
  EXPECT_EQ(digest_of({.replicas = 2, .faults = {kill_of(0, 26)}}), expected);
  EXPECT_EQ(digest_of({.replicas = 4, .faults = {kill_of(3, 0), kill_of(0, 17)}}), expected);
  EXPECT_EQ(digest_of({.replicas = 2, .faults = {kill_of(0, 13)}, .options = {{"--recover-from", "savepoint"}}}),
            expected);
}

TEST_F(CpusInBf16, ARunRemembersIt) {
  const TemporaryFolder folder;
  const auto start = [&](const std::string& precision) {
    return run_program(built_program("digits"), digits_arguments({.options = {{"--precision", precision}}}, folder));
  };
  const ProgramResult first = start("bf16");
  ASSERT_EQ(first.exit_code, 0) << first.output;

  const ProgramResult other = start("f32");

  EXPECT_TRUE(read_file(folder / "run/arithmetic.txt").ends_with(" per shard, bf16\n"));
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_NE(other.output.find(", bf16 and would go on with"), std::string::npos) << other.output;
  EXPECT_NE(other.output.find("which gives other bits"), std::string::npos) << other.output;
}

TEST(Cpus, AlwaysAddInTheOrderOfShards) {
  const nlohmann::json report = completed({.replicas = 3, .options = {{"--reduction", "fastest"}}});

  EXPECT_EQ(report.at("weights_digest"), undisturbed_digest());
}

TEST(Devices, ThatDoNotExistAreNamed) {
  ::setenv("HOLDFAST_CUDA_LIBRARY", built_program("libpretended_device.so").c_str(), 1);
  const TemporaryFolder folder;
  const auto refusal = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {"--run-dir", folder / "run", "--drawn", "100"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const ProgramResult result = run_program(built_program("digits"), all);
    EXPECT_NE(result.exit_code, 0);
    return result.output;
  };

  EXPECT_NE(refusal({"--device", "cuda", "--replicas", "5"}).find("5 replicas were asked for on 4 CUDA devices"),
            std::string::npos);
  EXPECT_NE(refusal({"--devices", "cuda:4"}).find("cuda:0 to cuda:3"), std::string::npos);
  EXPECT_NE(refusal({"--devices", "cuda:0,cpu:0"}).find("cannot train one model"), std::string::npos);
  EXPECT_NE(refusal({"--devices", "tpu:0"}).find("no device \"tpu:0\""), std::string::npos);
  ::unsetenv("HOLDFAST_CUDA_LIBRARY");
}

}  // namespace
}  // namespace holdfast
