// How `holdfast doctor` prints facts and findings, as text and as JSON.

#include "doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/fake_gpus.h"
#include "unit/cli/support/command_test.h"

namespace holdfast::cli {
namespace {

using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class DoctorTest : public testing::CommandTest {
 protected:
  // The result must not depend on the CUDA libraries of the machine that runs the test.
  const Variable back_end_{"HOLDFAST_CUDA_LIBRARY", "/nowhere/libholdfast_cuda.so"};
};

TEST_F(DoctorTest, ShowsDevicesAndWhatIsWrongWithThem) {
  Json facts = gpus(2);
  facts["devices"][1].update({{"link_width", 8}, {"clocks_event_reasons", 0x40}, {"uncorrected_errors", 2}});
  const FakeGpus fake(facts);

  EXPECT_EQ(run({"doctor"}), kCannotTrain);

  const std::string said = out();
  EXPECT_THAT(said, AllOf(HasSubstr("580.65.06"), HasSubstr("cuda:0    0  NVIDIA H200  00000000:0B:00.0"),
                          HasSubstr("600 MiB of 140.4 GiB"), HasSubstr("8 of 16"), HasSubstr("temperature (hardware)"),
                          HasSubstr("on, 2 errors")));
  EXPECT_THAT(said, HasSubstr("warning: cuda:1 is connected by 8 of 16 PCI Express lanes\n    reseat the card"));
  EXPECT_THAT(said, HasSubstr("error: Holdfast cannot train on CUDA devices here: /nowhere/libholdfast_cuda.so"));
  EXPECT_THAT(said, HasSubstr("CPU devices: its GPUs cannot be used\n"));
  EXPECT_EQ(problems(), "");
}

TEST_F(DoctorTest, ShowsThatThereIsNoDriver) {
  const Variable nvml("HOLDFAST_NVML", "/nowhere/libnvidia-ml.so.1");

  const int code = run({"doctor", "--json"});

  const Json said = Json::parse(out());
  EXPECT_EQ(code, said["host"]["nvidia_cards"] == 0 ? kDone : kCannotTrain);
  EXPECT_EQ(said["can_train"], said["host"]["nvidia_cards"] == 0);
  EXPECT_EQ(said["gpus"], nullptr);
  EXPECT_THAT(said["why_no_gpus"], HasSubstr("there is no NVIDIA driver"));
}

TEST_F(DoctorTest, PrintsTheSameAsJson) {
  Json facts = gpus(2);
  facts["peers"] = 1;
  facts["devices"][1].erase("temperature");
  const FakeGpus fake(facts);

  EXPECT_EQ(run({"doctor", "--json"}), kCannotTrain);

  const Json said = Json::parse(out());
  EXPECT_EQ(said["gpus"]["driver_version"], "580.65.06");
  EXPECT_EQ(said["gpus"]["cuda_version"], "13.0.0");
  EXPECT_EQ(said["gpus"]["devices"][0]["device"], "cuda:0");
  EXPECT_EQ(said["gpus"]["devices"][0]["temperature_celsius"], 34);
  EXPECT_EQ(said["gpus"]["devices"][1]["temperature_celsius"], nullptr);
  EXPECT_EQ(said["gpus"]["peers"][0]["is_possible"], false);
  EXPECT_EQ(said["can_train"], false);
  EXPECT_EQ(said["libraries"].size(), 4U);
  EXPECT_GE(said["findings"].size(), 2U);
  for (const Json& finding : said["findings"]) EXPECT_TRUE(finding["what"].is_string());
}

TEST_F(DoctorTest, ShowsMissingValuesAsUnknown) {
  Json facts = gpus(0);
  facts["devices"].push_back({{"name", "NVIDIA H200"}});
  const FakeGpus fake(facts, "libfake_nvml_old.so");

  run({"doctor"});

  EXPECT_THAT(out(), HasSubstr("cuda:0    0  NVIDIA H200  -                -  - of -"));
}

// Memory in use was shown as 0, which is what a free device has, and errors as "on, - errors".
TEST_F(DoctorTest, ShowsUnknownMemoryAndErrorsAsUnknown) {
  MachineFacts facts;
  facts.gpus = recovery::GpuSurvey{
      .devices = {{.index = 0, .name = "a", .memory_bytes = 2U << 30, .has_ecc = true},
                  {.index = 1, .name = "b", .memory_bytes = 2U << 30, .has_ecc = true, .uncorrected_errors = 1}}};

  EXPECT_THAT(describe_machine(facts, {}),
              AllOf(HasSubstr("- of 2.0 GiB"), HasSubstr("on, errors unknown"), HasSubstr("on, 1 error  ")));
}

TEST_F(DoctorTest, RefusesUnknownArguments) {
  EXPECT_EQ(run({"doctor", "--fix"}), kNotDone);
}

// The output for a healthy machine, from facts that the test makes up.
TEST_F(DoctorTest, EndsWithWhatItTrainsOn) {
  const FakeGpus fake(gpus(1));
  MachineFacts facts = look_at_machine();

  const std::string said = describe_machine(facts, {.plan = "trains on cuda:0"});

  EXPECT_TRUE(said.ends_with("\ntrains on cuda:0\n")) << said;
}

recovery::HostsReport report_of_hosts() {
  return {.host = 0,
          .checks = {{.host = 0, .what = "run directory", .found = "/shared/run"},
                     {.host = 1, .what = "meeting", .found = "10.0.0.3"},
                     {.host = 1,
                      .what = "Holdfast",
                      .problem = "it has Holdfast 0.2.0, and host 0 has 0.1.0",
                      .remedy = "install the same version on all hosts"}},
          .sentence = "1 problem found on 2 hosts"};
}

TEST_F(DoctorTest, ShowsWhatIsWrongWithHostsAndWhatToDo) {
  EXPECT_EQ(describe_hosts(report_of_hosts()),
            "HOST  CHECK          FOUND\n"
            "   0  run directory  /shared/run\n"
            "   1  meeting        10.0.0.3\n"
            "   1  Holdfast       wrong\n"
            "\n"
            "error: host 1: Holdfast: it has Holdfast 0.2.0, and host 0 has 0.1.0\n"
            "    install the same version on all hosts\n"
            "1 problem found on 2 hosts\n");
}

TEST_F(DoctorTest, ShowsAnotherHostOnlyTheOutcome) {
  EXPECT_EQ(describe_hosts({.host = 1, .sentence = "a run over these 2 hosts can begin", .is_well = true}),
            "a run over these 2 hosts can begin\n");
}

TEST_F(DoctorTest, ShowsHostsAsJson) {
  const Json said = Json::parse(hosts_as_json(report_of_hosts()));

  EXPECT_EQ(said["is_well"], false);
  EXPECT_EQ(said["host"], 0);
  EXPECT_EQ(said["sentence"], "1 problem found on 2 hosts");
  ASSERT_EQ(said["checks"].size(), 3U);
  EXPECT_EQ(said["checks"][0]["found"], "/shared/run");
  EXPECT_TRUE(said["checks"][0]["problem"].is_null());
  EXPECT_EQ(said["checks"][2]["host"], 1);
  EXPECT_EQ(said["checks"][2]["what"], "Holdfast");
  EXPECT_TRUE(said["checks"][2]["found"].is_null());
  EXPECT_EQ(said["checks"][2]["remedy"], "install the same version on all hosts");
}

TEST_F(DoctorTest, TakesOptionsOfHostsOnlyWithHosts) {
  EXPECT_EQ(run({"doctor", "--nnodes", "2"}), 2);
  EXPECT_THAT(problems(), HasSubstr("--hosts"));
  EXPECT_EQ(run({"doctor", "--", "train"}), 2);
  EXPECT_THAT(problems(), HasSubstr("add --hosts, or leave it out"));
  EXPECT_EQ(run({"doctor", "--hosts", "--nnodes", "1"}), 2);
  EXPECT_THAT(problems(), HasSubstr("nothing says that there are several hosts"));
}

}  // namespace
}  // namespace holdfast::cli
