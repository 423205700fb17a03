// What `holdfast doctor` finds wrong with machines that are made up from facts.

#include "diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

recovery::GpuFacts a_device(int index) {
  return {.index = index,
          .name = "NVIDIA H200",
          .major = 9,
          .minor = 0,
          .memory_bytes = 100,
          .used_memory_bytes = 1,
          .slowdowns = std::vector<std::string>{},
          .has_ecc = true,
          .uncorrected_errors = 0,
          .link_width = 16,
          .max_link_width = 16};
}

LibraryFacts a_library(const std::string& name, Version version) {
  return {.name = name, .path = "/lib/" + name, .version = version};
}

// Two devices without a problem.
MachineFacts a_machine() {
  MachineFacts facts{.cores = 8,
                     .memory_bytes = 1000,
                     .shared_memory_bytes = std::uint64_t{1} << 34,
                     .hdf5_plugin = "/plugins/libholdfast_hdf5_zstd.so",
                     .has_driver = true};
  facts.gpus = recovery::GpuSurvey{.driver_version = "580.65.06",
                                   .cuda_version = 1000 * kOldestCuda.major,
                                   .devices = {a_device(0), a_device(1)},
                                   .peers = {{.from = 0, .to = 1, .is_possible = true}}};
  facts.cuda_order = {0, 1};
  facts.cublas = a_library("cuBLASLt", {13, 0, 2});
  facts.cudnn = a_library("cuDNN", {9, 19, 0});
  facts.nccl = a_library("NCCL", {2, 28, 9});
  facts.was_back_end_tried = true;
  facts.back_end_devices = {"NVIDIA H200", "NVIDIA H200"};
  return facts;
}

// A container that has the driver's CUDA library, but not its management library.
MachineFacts a_machine_without_nvml() {
  MachineFacts facts = a_machine();
  facts.gpus.reset();
  facts.has_driver = false;
  facts.cuda_order.clear();
  facts.why_no_gpus = "libnvidia-ml.so.1: no such file";
  return facts;
}

MachineFacts a_machine_without_a_driver() {
  MachineFacts facts{.cores = 2, .hdf5_plugin = "/plugins/libholdfast_hdf5_zstd.so"};
  facts.why_no_gpus = "there is no NVIDIA driver";
  return facts;
}

std::string the_only_finding(const Diagnosis& diagnosis) {
  if (diagnosis.findings.size() != 1) return std::to_string(diagnosis.findings.size()) + " findings";
  const Finding& finding = diagnosis.findings.front();
  return std::string(to_string(finding.severity)) + ": " + finding.what + " -> " + finding.remedy;
}

TEST(Diagnosis, FindsNothingWhenNothingIsWrong) {
  const Diagnosis diagnosis = diagnose(a_machine());

  EXPECT_THAT(diagnosis.findings, IsEmpty());
  EXPECT_EQ(diagnosis.plan, "trains on cuda:0, cuda:1 with NCCL 2.28.9");
  EXPECT_TRUE(diagnosis.can_train);
}

TEST(Diagnosis, TrainsOnCpusWithoutADriver) {
  const Diagnosis diagnosis = diagnose(a_machine_without_a_driver());

  EXPECT_THAT(diagnosis.findings, IsEmpty());
  EXPECT_EQ(diagnosis.plan, "trains on 2 CPU devices: no NVIDIA driver");
  EXPECT_TRUE(diagnosis.can_train);
}

TEST(Diagnosis, RefusesCardsWithoutADriver) {
  MachineFacts facts = a_machine_without_a_driver();
  facts.nvidia_cards = 4;

  const Diagnosis diagnosis = diagnose(facts);

  EXPECT_FALSE(diagnosis.can_train);
  EXPECT_THAT(the_only_finding(diagnosis), HasSubstr("error: 4 NVIDIA cards of this machine cannot be used"));
  EXPECT_THAT(the_only_finding(diagnosis), HasSubstr("install the NVIDIA driver"));
  EXPECT_EQ(diagnosis.plan, "trains on 2 CPU devices: its GPUs cannot be used");
}

TEST(Diagnosis, RefusesADriverThatDoesNotAnswer) {
  MachineFacts facts = a_machine_without_a_driver();
  facts.has_driver = true;
  facts.why_no_gpus = "the NVIDIA driver does not answer";

  const Diagnosis diagnosis = diagnose(facts);

  EXPECT_FALSE(diagnosis.can_train);
  EXPECT_THAT(the_only_finding(diagnosis), HasSubstr("error: the NVIDIA driver does not answer"));
}

TEST(Diagnosis, TrainsOnWhatCudaShowsWithoutNvml) {
  MachineFacts facts = a_machine_without_nvml();
  facts.nvidia_cards = 2;

  const Diagnosis diagnosis = diagnose(facts);

  EXPECT_TRUE(diagnosis.can_train);
  EXPECT_EQ(diagnosis.plan, "trains on cuda:0, cuda:1 with NCCL 2.28.9");
  EXPECT_THAT(the_only_finding(diagnosis), HasSubstr("warning: CUDA has devices whose health cannot be watched"));
  EXPECT_THAT(the_only_finding(diagnosis), HasSubstr("libnvidia-ml.so.1: no such file"));
  EXPECT_THAT(the_only_finding(diagnosis), HasSubstr("NVIDIA_DRIVER_CAPABILITIES=compute,utility"));
}

TEST(Diagnosis, TrainsOnWhatCudaShowsWhenNvmlDoesNotAnswer) {
  MachineFacts facts = a_machine_without_nvml();
  facts.has_driver = true;
  facts.back_end_devices.pop_back();

  const Diagnosis diagnosis = diagnose(facts);

  EXPECT_TRUE(diagnosis.can_train);
  EXPECT_EQ(diagnosis.plan, "trains on cuda:0");
}

TEST(Diagnosis, SaysWhyTheBackEndCannotUseTheCardsOfAMachineWithoutNvml) {
  MachineFacts facts = a_machine_without_nvml();
  facts.nvidia_cards = 2;
  facts.back_end_problem = "the back end does not load";
  facts.back_end_devices.clear();

  const Diagnosis diagnosis = diagnose(facts);

  EXPECT_FALSE(diagnosis.can_train);
  ASSERT_EQ(diagnosis.findings.size(), 2U);
  EXPECT_THAT(diagnosis.findings[0].what, HasSubstr("2 NVIDIA cards of this machine cannot be used"));
  EXPECT_EQ(diagnosis.findings[1].what, "the back end does not load");
}

TEST(Diagnosis, SaysWhyTheBackEndCannotUseTheCardsOfADriverThatFails) {
  MachineFacts facts = a_machine_without_nvml();
  facts.has_driver = true;
  facts.why_no_gpus = "the driver's library and its kernel module differ";
  facts.back_end_problem = "the back end does not load";
  facts.back_end_devices.clear();

  const Diagnosis diagnosis = diagnose(facts);

  EXPECT_FALSE(diagnosis.can_train);
  ASSERT_EQ(diagnosis.findings.size(), 2U);
  EXPECT_EQ(diagnosis.findings[0].what, facts.why_no_gpus);
  EXPECT_EQ(diagnosis.findings[1].what, "the back end does not load");
}

TEST(Diagnosis, TrainsOnCpusWhenTheDriverHasNoDevice) {
  MachineFacts facts = a_machine();
  facts.gpus->devices.clear();
  facts.cuda_order.clear();

  const Diagnosis diagnosis = diagnose(facts);

  EXPECT_TRUE(diagnosis.can_train);
  EXPECT_EQ(diagnosis.plan, "trains on 8 CPU devices: the NVIDIA driver has no device");
  EXPECT_THAT(the_only_finding(diagnosis), HasSubstr("note: the NVIDIA driver 580.65.06 has no device"));
}

// Training took the CPUs of a machine whose cards had failed to start, with no more than a note.
TEST(Diagnosis, RefusesCardsThatTheDriverDoesNotHave) {
  MachineFacts facts = a_machine();
  facts.nvidia_cards = 2;
  facts.gpus->devices.clear();
  facts.cuda_order.clear();

  const Diagnosis diagnosis = diagnose(facts);

  EXPECT_FALSE(diagnosis.can_train);
  EXPECT_EQ(diagnosis.plan, "trains on 8 CPU devices: its GPUs cannot be used");
  EXPECT_THAT(the_only_finding(diagnosis), HasSubstr("error: 2 NVIDIA cards of this machine cannot be used: the NVIDIA "
                                                     "driver 580.65.06 has no device -> look for NVRM"));
}

TEST(Diagnosis, RefusesADriverThatIsTooOld) {
  MachineFacts facts = a_machine();
  facts.gpus->cuda_version = 1000 * (kOldestCuda.major - 1) + 80;

  const Diagnosis diagnosis = diagnose(facts);

  EXPECT_FALSE(diagnosis.can_train);
  EXPECT_THAT(the_only_finding(diagnosis),
              HasSubstr("supports CUDA " + std::to_string(kOldestCuda.major - 1) + ".8.0"));
  EXPECT_THAT(the_only_finding(diagnosis), HasSubstr("install a newer driver"));
}

TEST(Diagnosis, RefusesLibrariesThatAreMissingOrTooOld) {
  MachineFacts facts = a_machine();
  facts.cublas = {.name = "cuBLASLt", .problem = "libcublasLt.so.13: no such file"};
  facts.cudnn.version = Version{8, 9, 7};
  facts.back_end_problem = "the back end does not load";
  facts.back_end_devices.clear();

  const Diagnosis diagnosis = diagnose(facts);

  EXPECT_FALSE(diagnosis.can_train);
  std::vector<std::string> said;
  for (const Finding& finding : diagnosis.findings) said.push_back(finding.what);
  EXPECT_THAT(said,
              ElementsAre("cuDNN 8.9.7 (/lib/cuDNN) is too old; 9.8.0 is needed",
                          "cuBLASLt was not found: libcublasLt.so.13: no such file", "the back end does not load"));
  EXPECT_THAT(diagnosis.findings.front().remedy, HasSubstr("HOLDFAST_LIBRARY_PATH"));
}

TEST(Diagnosis, AcceptsAMachineWhoseBackEndLoads) {
  MachineFacts facts = a_machine();
  facts.cublas = {.name = "cuBLASLt", .problem = "libcublasLt.so.13: no such file"};
  const Diagnosis unknown = diagnose(facts);
  facts = a_machine();
  facts.cudnn.version = Version{9, 7, 1};
  const Diagnosis old = diagnose(facts);

  EXPECT_TRUE(unknown.can_train && old.can_train);
  EXPECT_THAT(the_only_finding(unknown), HasSubstr("note: the version of cuBLASLt is not known"));
  EXPECT_THAT(the_only_finding(old), HasSubstr("warning: cuDNN 9.7.1 (/lib/cuDNN) is too old; 9.8.0 is needed"));
}

TEST(Diagnosis, TrainsOnOneDeviceWithoutNccl) {
  MachineFacts facts = a_machine();
  facts.nccl = {.name = "NCCL", .problem = "libnccl.so.2: no such file"};
  const Diagnosis without = diagnose(facts);
  facts.nccl = a_library("NCCL", {2, 17, 1});
  const Diagnosis old = diagnose(facts);

  EXPECT_TRUE(without.can_train && old.can_train);
  EXPECT_EQ(without.plan, "trains on cuda:0 only: the other devices need NCCL");
  EXPECT_EQ(old.plan, "trains on cuda:0 only: the other devices need NCCL");
  EXPECT_THAT(the_only_finding(without), HasSubstr("warning: NCCL was not found"));
  EXPECT_THAT(the_only_finding(old), HasSubstr("NCCL 2.17.1 (/lib/NCCL) is too old; 2.18.0 is needed"));
}

TEST(Diagnosis, NeedsNoNcclForOneDevice) {
  MachineFacts facts = a_machine();
  facts.gpus->devices.pop_back();
  facts.gpus->peers.clear();
  facts.cuda_order = {0};
  facts.back_end_devices.pop_back();
  facts.nccl = {.name = "NCCL", .problem = "libnccl.so.2: no such file"};
  facts.shared_memory_bytes.reset();

  const Diagnosis diagnosis = diagnose(facts);

  EXPECT_THAT(diagnosis.findings, IsEmpty());
  EXPECT_EQ(diagnosis.plan, "trains on cuda:0");
}

TEST(Diagnosis, FindsALinkWithFewerLanesThanPossible) {
  MachineFacts facts = a_machine();
  facts.gpus->devices[1].link_width = 4;

  const Diagnosis diagnosis = diagnose(facts);

  EXPECT_TRUE(diagnosis.can_train);
  EXPECT_THAT(the_only_finding(diagnosis), HasSubstr("warning: cuda:1 is connected by 4 of 16 PCI Express lanes -> "));
}

TEST(Diagnosis, FindsWhatSlowsADeviceDown) {
  MachineFacts facts = a_machine();
  facts.gpus->devices[0].slowdowns = std::vector<std::string>{"temperature (hardware)", "power limit"};
  facts.gpus->devices[0].temperature_celsius = 91;
  facts.gpus->devices[0].power_watts = 699.6;
  facts.gpus->devices[0].power_limit_watts = 700;
  const Diagnosis hot = diagnose(facts);
  facts.gpus->devices[0].slowdowns = std::vector<std::string>{"power limit"};
  const Diagnosis busy = diagnose(facts);

  EXPECT_THAT(the_only_finding(hot), HasSubstr("warning: cuda:0 is slowed down: temperature (hardware), power limit "
                                               "(91 degrees Celsius, 699 W of 700 W) -> check its cooling"));
  EXPECT_THAT(the_only_finding(busy), HasSubstr("note: cuda:0 is slowed down: power limit"));
}

TEST(Diagnosis, FindsMemoryWithErrors) {
  MachineFacts facts = a_machine();
  recovery::GpuFacts& device = facts.gpus->devices[0];
  device.uncorrected_errors = 3;
  device.is_retirement_pending = true;
  device.has_retirement_failed = true;
  facts.gpus->devices[1].has_ecc = false;

  const Diagnosis diagnosis = diagnose(facts);

  EXPECT_TRUE(diagnosis.can_train);
  std::vector<std::string> said;
  for (const Finding& finding : diagnosis.findings) said.push_back(finding.what);
  EXPECT_THAT(said, ElementsAre("cuda:0 had 3 memory errors that could not be corrected since the driver was loaded",
                                "cuda:0 has failed memory and no spare memory to replace it",
                                "cuda:0 has failed memory, which its next reset will retire",
                                "cuda:1 does not correct errors of its memory (ECC is off)"));
  for (const Finding& finding : diagnosis.findings) EXPECT_NE(finding.remedy, "") << finding.what;
}

TEST(Diagnosis, NotesThatMemoryIsInUse) {
  MachineFacts facts = a_machine();
  facts.gpus->devices[0].memory_bytes = std::uint64_t{80} << 30;
  facts.gpus->devices[0].used_memory_bytes = std::uint64_t{40} << 30;

  EXPECT_THAT(the_only_finding(diagnose(facts)), HasSubstr("note: 40.0 GiB of the 80.0 GiB of cuda:0 are in use"));
}

TEST(Diagnosis, FindsDevicesThatCannotAccessEachOther) {
  MachineFacts facts = a_machine();
  facts.gpus->peers[0].is_possible = false;
  facts.gpus->peers[0].why_not = "the chipset does not support it";
  facts.shared_memory_bytes = std::uint64_t{64} << 20;

  const Diagnosis diagnosis = diagnose(facts);

  ASSERT_EQ(diagnosis.findings.size(), 2U);
  EXPECT_THAT(diagnosis.findings[0].what,
              HasSubstr("these devices cannot access each other's memory: cuda:0 and cuda:1 (the chipset"));
  EXPECT_THAT(diagnosis.findings[1].what, HasSubstr("/dev/shm has 64 MiB"));
  EXPECT_EQ(diagnosis.plan, "trains on cuda:0, cuda:1 with NCCL 2.28.9");
}

TEST(Diagnosis, TrainsWithoutADeviceThatIsLostOrTooOld) {
  MachineFacts facts = a_machine();
  facts.gpus->devices[0].problem = "GPU is lost";
  facts.cuda_order = {1};
  facts.back_end_devices.pop_back();
  const Diagnosis lost = diagnose(facts);
  facts = a_machine();
  facts.gpus->devices[0].major = 7;
  facts.gpus->devices[0].minor = 5;
  const Diagnosis old = diagnose(facts);

  EXPECT_EQ(lost.plan, "trains on cuda:0");
  EXPECT_THAT(the_only_finding(lost), HasSubstr("warning: GPU 0 cannot be used: the driver says \"GPU is lost\""));
  EXPECT_EQ(old.plan, "trains on cuda:1");
  EXPECT_THAT(the_only_finding(old), HasSubstr("its compute capability is 7.5, and 8.0 or higher is needed"));
}

TEST(Diagnosis, RefusesAMachineWithoutAUsableDevice) {
  MachineFacts facts = a_machine();
  facts.cuda_order.clear();
  facts.back_end_devices.clear();

  const Diagnosis diagnosis = diagnose(facts);

  EXPECT_FALSE(diagnosis.can_train);
  EXPECT_THAT(the_only_finding(diagnosis), HasSubstr("CUDA_VISIBLE_DEVICES"));
}

// The driver's devices were taken for usable ones where CUDA showed none.
TEST(Diagnosis, RefusesAMachineWhoseBackEndShowsNoDevice) {
  MachineFacts facts = a_machine();
  facts.back_end_devices.clear();

  const Diagnosis diagnosis = diagnose(facts);

  EXPECT_FALSE(diagnosis.can_train);
  ASSERT_EQ(diagnosis.findings.size(), 2U);
  EXPECT_EQ(diagnosis.findings[0].what, "CUDA shows no device that Holdfast can train on");
  EXPECT_EQ(diagnosis.findings[1].what, "CUDA shows 0 of the 2 devices expected");
}

TEST(Diagnosis, DoesNotCallADriverMissingWhenCudaShowsItsDevices) {
  MachineFacts facts = a_machine();
  facts.gpus.reset();
  facts.has_driver = false;

  EXPECT_EQ(describe_silent_driver(facts), "unknown (no NVML)");
  facts.back_end_devices.clear();
  EXPECT_EQ(describe_silent_driver(facts), "missing");
  facts.has_driver = true;
  EXPECT_EQ(describe_silent_driver(facts), "does not work");
}

TEST(Diagnosis, TrainsOnTheInstanceThatIsNamed) {
  MachineFacts facts = a_machine();
  facts.gpus->devices[0].is_split = true;
  facts.gpus->devices[1].is_split = true;
  facts.cuda_order = {1};
  facts.is_instance_named = true;
  facts.back_end_devices = {"NVIDIA H200 MIG 1g.18gb"};

  const Diagnosis diagnosis = diagnose(facts);

  EXPECT_TRUE(diagnosis.can_train);
  EXPECT_EQ(diagnosis.plan, "trains on cuda:0");
  EXPECT_THAT(the_only_finding(diagnosis),
              HasSubstr("note: cuda:0 is an instance (MIG), which is only a part of GPU 1"));
}

TEST(Diagnosis, TrainsOnDevicesThatOnlyCudaShows) {
  MachineFacts facts = a_machine();
  facts.cuda_order.clear();
  facts.back_end_devices.pop_back();

  const Diagnosis diagnosis = diagnose(facts);

  EXPECT_TRUE(diagnosis.can_train);
  EXPECT_EQ(diagnosis.plan, "trains on cuda:0");
  EXPECT_THAT(the_only_finding(diagnosis),
              HasSubstr("warning: cuda:0 (NVIDIA H200) cannot be matched to a device of the driver"));
}

TEST(Diagnosis, TrainsOnlyOnDevicesThatCudaShows) {
  MachineFacts facts = a_machine();
  facts.back_end_devices.pop_back();

  const Diagnosis diagnosis = diagnose(facts);

  EXPECT_EQ(diagnosis.plan, "trains on cuda:0");
  EXPECT_THAT(the_only_finding(diagnosis), HasSubstr("warning: CUDA shows 1 of the 2 devices expected"));
}

TEST(Diagnosis, WarnsAboutSplitDevicesAndUncertainNumbers) {
  MachineFacts facts = a_machine();
  facts.gpus->devices[1].is_split = true;
  facts.is_cuda_order_known = false;

  const Diagnosis diagnosis = diagnose(facts);

  ASSERT_EQ(diagnosis.findings.size(), 2U);
  EXPECT_THAT(diagnosis.findings[0].what, HasSubstr("cuda:1 is split into instances (MIG)"));
  EXPECT_THAT(diagnosis.findings[1].remedy, HasSubstr("CUDA_DEVICE_ORDER=PCI_BUS_ID"));
}

TEST(Diagnosis, NotesThatThePluginIsMissing) {
  MachineFacts facts = a_machine();
  facts.hdf5_plugin.clear();

  EXPECT_THAT(the_only_finding(diagnose(facts)), HasSubstr("note: the HDF5 plugin"));
}

}  // namespace
}  // namespace holdfast::cli
