// The survey against a library that plays NVML, whose devices and failures are set by the environment. No GPU is
// needed.

#include "holdfast/recovery/gpu_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "holdfast/base/error.h"
#include "support/fake_gpus.h"

namespace holdfast::recovery {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

GpuSurvey survey() {
  return survey_gpus(Deadline::after(std::chrono::seconds(60)));
}

Error failure_of_a_survey(Deadline deadline = Deadline::after(std::chrono::seconds(60))) {
  try {
    survey_gpus(deadline);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::invalid_argument, "there was a survey");
}

TEST(GpuMonitor, ReportsTheFactsOfDriverAndDevice) {
  const FakeGpus fake(gpus(1));

  const GpuSurvey found = survey();

  EXPECT_THAT(found.library, EndsWith("/libfake_nvml.so"));
  EXPECT_EQ(found.library_version, "13.580.65.06");
  EXPECT_EQ(found.driver_version, "580.65.06");
  EXPECT_EQ(found.cuda_version, 13000);
  ASSERT_THAT(found.devices, SizeIs(1));
  const GpuFacts& device = found.devices[0];
  EXPECT_EQ(device.problem, "");
  EXPECT_EQ(device.name, "NVIDIA H200");
  EXPECT_EQ(device.uuid, "GPU-00000000-aaaa-bbbb-cccc-dddddddddddd");
  EXPECT_EQ(device.pci_bus_id, "00000000:0B:00.0");
  EXPECT_EQ(device.major, 9);
  EXPECT_EQ(device.minor, 0);
  EXPECT_EQ(device.memory_bytes, 150754820096U);
  EXPECT_EQ(device.used_memory_bytes, 629145600U);
  EXPECT_EQ(device.temperature_celsius, 34);
  EXPECT_EQ(device.power_watts, 76.5);
  EXPECT_EQ(device.power_limit_watts, 700);
  EXPECT_EQ(device.utilization_percent, 0);
  EXPECT_EQ(device.is_split, false);
  ASSERT_TRUE(device.slowdowns);
  EXPECT_THAT(*device.slowdowns, IsEmpty());
  EXPECT_EQ(device.has_ecc, true);
  EXPECT_EQ(device.uncorrected_errors, 0U);
  EXPECT_EQ(device.uncorrected_errors_ever, 0U);
  EXPECT_EQ(device.is_retirement_pending, false);
  EXPECT_EQ(device.has_retirement_failed, false);
  EXPECT_EQ(device.link_generation, 5);
  EXPECT_EQ(device.max_link_generation, 5);
  EXPECT_EQ(device.link_width, 16);
  EXPECT_EQ(device.max_link_width, 16);
}

TEST(GpuMonitor, LeavesFactsEmptyThatADeviceDoesNotSupport) {
  nlohmann::json facts = gpus(0);
  facts["devices"].push_back({{"name", "NVIDIA H200"}});
  const FakeGpus fake(facts);

  const GpuSurvey found = survey();

  const GpuFacts& device = found.devices.at(0);
  EXPECT_EQ(device.problem, "");
  EXPECT_EQ(device.name, "NVIDIA H200");
  EXPECT_EQ(device.uuid, "");
  EXPECT_EQ(device.pci_bus_id, "");
  EXPECT_FALSE(device.major || device.memory_bytes || device.temperature_celsius || device.power_watts ||
               device.utilization_percent || device.is_split || device.slowdowns || device.has_ecc ||
               device.uncorrected_errors || device.uncorrected_errors_ever || device.is_retirement_pending ||
               device.has_retirement_failed || device.link_generation || device.max_link_width);
}

TEST(GpuMonitor, LeavesFactsEmptyThatAnOldLibraryLacks) {
  const FakeGpus fake(gpus(2), "libfake_nvml_old.so");

  const GpuSurvey found = survey();

  ASSERT_THAT(found.devices, SizeIs(2));
  EXPECT_EQ(found.devices[0].name, "NVIDIA H200");
  EXPECT_EQ(found.devices[0].temperature_celsius, 34);
  EXPECT_FALSE(found.cuda_version || found.devices[0].major || found.devices[0].link_width ||
               found.devices[0].slowdowns || found.devices[0].has_ecc);
  ASSERT_THAT(found.peers, SizeIs(1));
  EXPECT_FALSE(found.peers[0].is_possible);
}

TEST(GpuMonitor, NamesTheReasonsOfASlowdown) {
  nlohmann::json facts = gpus(1);
  facts["devices"][0]["clocks_event_reasons"] = 0x4 | 0x40 | 0x1;
  const FakeGpus fake(facts);

  EXPECT_THAT(survey().devices.at(0).slowdowns.value(), ElementsAre("power limit", "temperature (hardware)"));
}

TEST(GpuMonitor, ReportsFailedMemory) {
  nlohmann::json facts = gpus(2);
  facts["devices"][0].update(
      {{"uncorrected_errors", 2}, {"uncorrected_errors_ever", 7}, {"remapped_rows", {{"pending", 1}, {"failed", 1}}}});
  facts["devices"][1].erase("remapped_rows");
  facts["devices"][1]["pages_pending"] = 1;
  const FakeGpus fake(facts);

  const GpuSurvey found = survey();

  EXPECT_EQ(found.devices[0].uncorrected_errors, 2U);
  EXPECT_EQ(found.devices[0].uncorrected_errors_ever, 7U);
  EXPECT_EQ(found.devices[0].is_retirement_pending, true);
  EXPECT_EQ(found.devices[0].has_retirement_failed, true);
  EXPECT_EQ(found.devices[1].is_retirement_pending, true);
  EXPECT_FALSE(found.devices[1].has_retirement_failed);
}

TEST(GpuMonitor, SurveysTheOtherDevicesWhenOneIsLost) {
  nlohmann::json facts = gpus(2);
  facts["devices"][0]["lost"] = true;
  const FakeGpus fake(facts);

  const GpuSurvey found = survey();

  ASSERT_THAT(found.devices, SizeIs(2));
  EXPECT_EQ(found.devices[0].problem, "GPU is lost");
  EXPECT_EQ(found.devices[1].problem, "");
  ASSERT_THAT(found.peers, SizeIs(1));
  EXPECT_FALSE(found.peers[0].is_possible);
}

TEST(GpuMonitor, ReportsWhichDevicesCannotReadEachOthersMemory) {
  nlohmann::json facts = gpus(3);
  facts["peers"] = 3;
  const FakeGpus fake(facts);

  const GpuSurvey found = survey();

  ASSERT_THAT(found.peers, SizeIs(3));
  EXPECT_EQ(found.peers[1].from, 0);
  EXPECT_EQ(found.peers[1].to, 2);
  EXPECT_EQ(found.peers[1].is_possible, false);
  EXPECT_EQ(found.peers[1].why_not, "the way between them does not support it");
}

TEST(GpuMonitor, ReportsThatThereIsNoDriver) {
  const Variable nvml("HOLDFAST_NVML", "/nowhere/libnvidia-ml.so.1");

  const Error error = failure_of_a_survey();

  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_THAT(error.what(), HasSubstr("there is no NVIDIA driver"));
  EXPECT_THAT(error.what(), HasSubstr("/nowhere/libnvidia-ml.so.1"));
}

TEST(GpuMonitor, ReportsWhyTheDriverDoesNotAnswer) {
  nlohmann::json facts = gpus(1);
  facts["init"] = 18;
  const FakeGpus fake(facts);

  const Error error = failure_of_a_survey();

  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_THAT(error.what(), HasSubstr("Driver/library version mismatch"));
  EXPECT_THAT(error.what(), HasSubstr("restart the machine"));
}

TEST(GpuMonitor, RefusesALibraryThatIsNotNvml) {
  const Variable nvml("HOLDFAST_NVML", "libm.so.6");

  const Error error = failure_of_a_survey();

  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_THAT(error.what(), HasSubstr("is not NVML"));
}

TEST(GpuMonitor, DoesNotWaitForADriverThatHangs) {
  nlohmann::json facts = gpus(1);
  facts["hangs_in"] = "nvmlInit_v2";
  const FakeGpus fake(facts);

  const Error error = failure_of_a_survey(Deadline::after(std::chrono::milliseconds(50)));

  EXPECT_EQ(error.code(), ErrorCode::deadline_exceeded);
}

std::vector<GpuFacts> three_devices() {
  return {{.index = 0, .name = "A", .uuid = "GPU-aa"},
          {.index = 1, .name = "A", .uuid = "GPU-ab"},
          {.index = 2, .name = "A", .uuid = "GPU-bb"}};
}

TEST(GpuMonitor, NumbersDevicesAsCudaDoes) {
  std::vector<GpuFacts> devices = three_devices();

  EXPECT_THAT(cuda_order(devices, nullptr), ElementsAre(0, 1, 2));
  EXPECT_THAT(cuda_order(devices, "2, 0"), ElementsAre(2, 0));
  EXPECT_THAT(cuda_order(devices, "GPU-bb,GPU-ab"), ElementsAre(2, 1));
  EXPECT_THAT(cuda_order(devices, "1,-1,0"), ElementsAre(1));
  EXPECT_THAT(cuda_order(devices, "1,7,0"), ElementsAre(1));
  EXPECT_THAT(cuda_order(devices, "NoDevFiles"), IsEmpty());
  EXPECT_THAT(cuda_order(devices, ""), IsEmpty());
  devices[1].problem = "GPU is lost";
  EXPECT_THAT(cuda_order(devices, nullptr), ElementsAre(0, 2));
}

TEST(GpuMonitor, FindsTheDeviceOfAnInstance) {
  nlohmann::json facts = gpus(3);
  facts["devices"][1].update({{"mig_mode", 1}, {"instances", {"MIG-1a", "", "MIG-1c"}}});
  facts["devices"][2].update({{"mig_mode", 1}, {"instances", {"MIG-2a"}}});
  const FakeGpus fake(facts);

  const std::vector<GpuFacts> devices = survey().devices;

  EXPECT_THAT(devices.at(0).instances, IsEmpty());
  EXPECT_THAT(devices.at(1).instances, ElementsAre("MIG-1a", "MIG-1c"));
  EXPECT_THAT(cuda_order(devices, "MIG-1c"), ElementsAre(1));
  EXPECT_THAT(cuda_order(devices, "MIG-2"), ElementsAre(2));
  EXPECT_THAT(cuda_order(devices, "MIG-1b"), IsEmpty());
}

TEST(GpuMonitor, FindsTheDeviceOfAnInstanceByItsOldName) {
  const std::vector<GpuFacts> devices = three_devices();

  EXPECT_THAT(cuda_order(devices, "MIG-GPU-bb/3/0"), ElementsAre(2));
  EXPECT_THAT(cuda_order(devices, "MIG-GPU-bb"), IsEmpty());
  EXPECT_THAT(cuda_order(devices, "MIG-GPU-cc/3/0"), IsEmpty());
}

TEST(GpuMonitor, KnowsWhenCudaMayNumberDevicesDifferently) {
  std::vector<GpuFacts> devices = three_devices();
  EXPECT_TRUE(is_cuda_order_known(devices, nullptr));

  devices[2].name = "B";

  EXPECT_FALSE(is_cuda_order_known(devices, nullptr));
  EXPECT_FALSE(is_cuda_order_known(devices, "FASTEST_FIRST"));
  EXPECT_TRUE(is_cuda_order_known(devices, "PCI_BUS_ID"));
  EXPECT_TRUE(is_cuda_order_known({}, nullptr));
  devices[2] = {.index = 2, .problem = "GPU is lost"};
  EXPECT_TRUE(is_cuda_order_known(devices, nullptr));
}

}  // namespace
}  // namespace holdfast::recovery
