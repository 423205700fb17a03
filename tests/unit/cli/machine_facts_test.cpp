// The facts that `holdfast doctor` collects, with fake drivers and libraries.

#include "machine_facts.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/fake_gpus.h"
#include "support/folders.h"
#include "support/temporary_folder.h"

namespace holdfast::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(MachineFacts, ReadTheVersionNumbersOfEachLibrary) {
  EXPECT_EQ(to_string(version_of_cuda(13000)), "13.0.0");
  EXPECT_EQ(to_string(version_of_cuda(12080)), "12.8.0");
  EXPECT_EQ(to_string(version_of_cublas(130002)), "13.0.2");
  EXPECT_EQ(to_string(version_of_cudnn(91900)), "9.19.0");
  EXPECT_EQ(to_string(version_of_cudnn(8907)), "8.9.7");
  EXPECT_EQ(to_string(version_of_nccl(22809)), "2.28.9");
  EXPECT_EQ(to_string(version_of_nccl(2804)), "2.8.4");
  EXPECT_LT((Version{2, 9, 9}), (Version{2, 18, 0}));
}

TEST(MachineFacts, NumberTheDriversDevicesAsCudaDoes) {
  const FakeGpus fake(gpus(3));
  const Variable visible("CUDA_VISIBLE_DEVICES", "2,0");
  const Variable back_end("HOLDFAST_CUDA_LIBRARY", "/nowhere/libholdfast_cuda.so");

  const MachineFacts facts = look_at_machine();

  EXPECT_GE(facts.cores, 1);
  EXPECT_GT(facts.memory_bytes, std::uint64_t{1} << 20);
  ASSERT_TRUE(facts.gpus);
  EXPECT_THAT(facts.gpus->devices, SizeIs(3));
  EXPECT_THAT(facts.cuda_order, ElementsAre(2, 0));
  EXPECT_TRUE(facts.is_cuda_order_known);
  EXPECT_TRUE(facts.was_back_end_tried);
  EXPECT_THAT(facts.back_end_problem, HasSubstr("/nowhere/libholdfast_cuda.so"));
}

TEST(MachineFacts, FindTheHdf5PluginInEachFolderOfTheList) {
  const Variable nvml("HOLDFAST_NVML", "/nowhere/libnvidia-ml.so.1");
  const TemporaryFolder folder;
  const std::string file = folder / "libholdfast_hdf5_zstd.so";
  std::ofstream(file) << "a plugin";
  const Variable plugins("HDF5_PLUGIN_PATH", "/nowhere::" + folder.path());

  EXPECT_EQ(look_at_machine().hdf5_plugin, std::filesystem::weakly_canonical(file));
}

TEST(MachineFacts, SayWhyThereAreNoGpus) {
  const Variable nvml("HOLDFAST_NVML", "/nowhere/libnvidia-ml.so.1");

  const MachineFacts facts = look_at_machine();

  EXPECT_FALSE(facts.gpus);
  EXPECT_FALSE(facts.has_driver);
  EXPECT_EQ(facts.was_back_end_tried, ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr);
  EXPECT_THAT(facts.why_no_gpus, HasSubstr("/nowhere/libnvidia-ml.so.1"));
}

TEST(MachineFacts, AskCudaWhenTheDriverHasNoManagementLibrary) {
  const TemporaryFolder folder;
  // Any library will do.
  std::filesystem::create_symlink(program_folder() + "/libfake_nvml.so", folder / "libcuda.so.1");
  const Variable libraries("HOLDFAST_LIBRARY_PATH", folder.path());
  const Variable nvml("HOLDFAST_NVML", "/nowhere/libnvidia-ml.so.1");
  const Variable back_end("HOLDFAST_CUDA_LIBRARY", "/nowhere/libholdfast_cuda.so");

  const MachineFacts facts = look_at_machine();

  EXPECT_FALSE(facts.gpus);
  EXPECT_TRUE(facts.was_back_end_tried);
  EXPECT_THAT(facts.back_end_problem, HasSubstr("/nowhere/libholdfast_cuda.so"));
}

TEST(MachineFacts, NoticeThatAnInstanceIsNamed) {
  nlohmann::json split = gpus(1);
  split["devices"][0].update({{"mig_mode", 1}, {"instances", {"MIG-0a"}}});
  const FakeGpus fake(split);
  const Variable visible("CUDA_VISIBLE_DEVICES", "MIG-0a");
  const Variable back_end("HOLDFAST_CUDA_LIBRARY", "/nowhere/libholdfast_cuda.so");

  const MachineFacts facts = look_at_machine();

  EXPECT_TRUE(facts.is_instance_named);
  EXPECT_THAT(facts.cuda_order, ElementsAre(0));
}

TEST(MachineFacts, DistinguishABrokenDriverFromAMissingOne) {
  nlohmann::json broken = gpus(1);
  broken["init"] = 9;
  const FakeGpus fake(broken);

  const MachineFacts facts = look_at_machine();

  EXPECT_FALSE(facts.gpus);
  EXPECT_TRUE(facts.has_driver);
  EXPECT_THAT(facts.why_no_gpus, HasSubstr("Driver Not Loaded"));
}

TEST(MachineFacts, ReportMissingLibraries) {
  const Variable nvml("HOLDFAST_NVML", "/nowhere/libnvidia-ml.so.1");
  const Variable nccl("HOLDFAST_NCCL", "/nowhere/libnccl.so.2");

  const MachineFacts facts = look_at_machine();

  EXPECT_EQ(facts.nccl.name, "NCCL");
  EXPECT_EQ(facts.nccl.path, "");
  EXPECT_THAT(facts.nccl.problem, HasSubstr("/nowhere/libnccl.so.2"));
}

}  // namespace
}  // namespace holdfast::cli
