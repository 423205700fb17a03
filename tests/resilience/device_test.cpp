// Runs on a device, as far as a machine without one can tell: the arithmetic is the CPU's, in memory that the host may
// not touch. So the weights are those of the CPU, too.

#include <gtest/gtest.h>

#include <cstdlib>
#include <ostream>

#include "resilience/digits_run.h"

namespace holdfast {
namespace {

struct Case {
  const char* name;
  int replicas = 1;
  std::vector<std::string> faults{};
  std::map<std::string, std::string> options{};
};

void PrintTo(const Case& run, std::ostream* out) {
  *out << run.name;
}

class OnADevice : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    undisturbed_digest();  // on the CPU
    ::setenv("HOLDFAST_CUDA_LIBRARY", built_program("libpretended_device.so").c_str(), 1);
  }
  void TearDown() override { ::unsetenv("HOLDFAST_CUDA_LIBRARY"); }
};

TEST_P(OnADevice, GivesTheSameWeights) {
  DigitsRun run{.replicas = GetParam().replicas, .faults = GetParam().faults, .options = GetParam().options};
  run.options.insert({"--device", "cuda"});
  const nlohmann::json report = completed(run);

  EXPECT_EQ(report.at("weights_digest"), undisturbed_digest());
  EXPECT_EQ(report.at("restarts").size(), GetParam().faults.size());
}

const auto kCases = testing::Values(
    Case{"alone", 1}, Case{"two", 2}, Case{"three", 3}, Case{"four", 4},
    Case{"two_on_one", 2, {}, {{"--devices", "cuda:1,cuda:1"}}}, Case{"killed", 2, {"rank=1,step=13,fault=kill"}},
    Case{"spare", 2, {"rank=0,step=13,fault=kill"}, {{"--spares", "1"}}},
    Case{"all_killed",
         2,
         {"rank=0,step=13,fault=kill", "rank=1,step=13,fault=kill"},
         {{"--memory-snapshot-every", "3"}}},
    Case{"alone_from_memory", 1, {"rank=0,step=13,fault=kill"}, {{"--memory-snapshot-every", "5"}}},
    Case{"from_savepoint", 2, {"rank=0,step=13,fault=kill"}, {{"--recover-from", "savepoint"}}},
    Case{
        "wrong_weight", 2, {"rank=1,step=14,phase=after-update,fault=flip,seed=3"}, {{"--memory-snapshot-every", "5"}}},
    Case{"wrong_slot_before_a_snapshot",
         2,
         {"rank=0,step=10,phase=snapshot,fault=flip,target=slot,seed=3"},
         {{"--memory-snapshot-every", "5"}}});

INSTANTIATE_TEST_SUITE_P(Cases, OnADevice, kCases, [](const auto& test) { return std::string(test.param.name); });

TEST(Devices, ThatAreNotThereAreNamed) {
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
