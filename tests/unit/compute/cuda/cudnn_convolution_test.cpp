// What cuDNN plans for a device that is only described to it, so that no device is needed.

#include "compute/cuda/products/cudnn_convolution.h"

#include <gtest/gtest.h>

#include "compute/cuda/runtime/array_alignment.h"

namespace holdfast::compute {
namespace {

// Device descriptions in the format of cuDNN 9.19.
constexpr const char* kH200 = R"({"deviceName": "NVIDIA H200", "cudaDeviceId": 0, "deviceVer": 900, "driverVer": 13000,
  "multiProcessorCount": 132, "warpSize": 32, "regsPerBlock": 65536, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32,
  "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "maxGridSize": [2147483647, 65535, 65535],
  "maxBlockSize": [1024, 1024, 64], "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
  "reservedSharedMemoryPerBlock": 1024, "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1,
  "totalGlobalMem": 150000000000, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "l2CacheSize": 62914560})";

class CudnnConvolutions : public testing::Test {
 protected:
  void SetUp() override {
    constexpr std::size_t kFirstVersionThatTakesDescriptions = 90800;
    if (cudnnGetVersion() < kFirstVersionThatTakesDescriptions) {
      GTEST_SKIP() << "cuDNN " << cudnnGetVersion() << " knows devices only that are there";
    }
    device_.emplace(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "an H200");
    device_->text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, kH200).finalize();
  }

  void expect_engines(const ConvolutionShape& shape) {
    for (const Precision precision : {Precision::f32, Precision::tf32, Precision::bf16}) {
      for (const ConvolutionPass pass :
           {ConvolutionPass::forward, ConvolutionPass::backward_input, ConvolutionPass::backward_weights}) {
        const auto found = CudnnConvolution::find({.description = &*device_}, precision, shape, pass);
        ASSERT_TRUE(found) << describe_convolution("a pass", shape) << ", pass " << static_cast<int>(pass);
        EXPECT_LE(found->workspace_bytes(), std::size_t{256} << 20);
        EXPECT_EQ(found->engine().rfind("engine ", 0), 0U) << found->engine();
      }
    }
  }

  std::optional<CudnnDescriptor> device_;
};

TEST_F(CudnnConvolutions, HaveEnginesForTheLayersOfLeNet) {
  expect_engines({128, 28, 28, 1, 6, 5, 5, 1, 1, Padding::same, true});
  expect_engines({128, 14, 14, 6, 16, 5, 5, 1, 1, Padding::valid, true});
}

TEST_F(CudnnConvolutions, HaveEnginesForPaddingThatDiffersBeforeAndAfter) {
  expect_engines({8, 28, 28, 6, 16, 4, 4, 1, 1, Padding::same, true});
  expect_engines({2, 6, 5, 2, 3, 3, 3, 2, 2, Padding::same, true});
}

TEST_F(CudnnConvolutions, HaveEnginesForWideLayers) {
  expect_engines({64, 56, 56, 64, 64, 3, 3, 1, 1, Padding::same, true});
}

TEST_F(CudnnConvolutions, HaveEnginesForGroupsDilationAndVolumes) {
  const ConvolutionShape images = {64, 28, 28, 32, 64, 3, 3, 1, 1, Padding::same, true};
  ConvolutionShape dilated = images, grouped = images, depthwise = images, volumes = images;
  dilated.dilation_height = dilated.dilation_width = 2;
  grouped.groups = 4;
  depthwise.filters = depthwise.groups = 32;
  volumes.samples = 8;
  volumes.channels = 16;
  volumes.filters = 32;
  volumes.depth = 12;
  volumes.kernel_depth = 3;
  ConvolutionShape causal = {64, 1, 128, 32, 64, 1, 3, 1, 1, Padding::causal, true};
  causal.dilation_width = 4;

  expect_engines(dilated);
  expect_engines(grouped);
  expect_engines(depthwise);
  expect_engines(volumes);
  expect_engines(causal);
}

// Engine 0 has a plan for every shape. The heuristic lists it last, except for small shapes.
TEST_F(CudnnConvolutions, HaveAFasterEngineThanTheGeneralOne) {
  const ConvolutionShape first_of_a_residual_network = {256, 224, 224, 3, 64, 7, 7, 2, 2, Padding::same, true};
  const ConvolutionShape large = {256, 56, 56, 64, 64, 3, 3, 1, 1, Padding::same, true};
  const ConvolutionShape strided = {64, 28, 28, 256, 256, 3, 3, 2, 2, Padding::same, true};
  const auto engine = [&](const ConvolutionShape& shape, ConvolutionPass pass) {
    return CudnnConvolution::find({.description = &*device_}, Precision::f32, shape, pass).value().engine();
  };

  EXPECT_NE(engine(first_of_a_residual_network, ConvolutionPass::forward), "engine 0");
  EXPECT_NE(engine(large, ConvolutionPass::backward_input), "engine 0");
  EXPECT_NE(engine(strided, ConvolutionPass::backward_input), "engine 0");
}

// Copies of the kernel or its gradient at each precision, and of images at bf16.
TEST_F(CudnnConvolutions, HaveRoomForCopies) {
  const ConvolutionShape shape = {64, 28, 28, 6, 16, 5, 5, 1, 1, Padding::valid, true};
  const std::size_t images = 64 * 28 * 28 * 6, kernel = 5 * 5 * 6 * 16, outputs = 64 * 24 * 24 * 16;
  const std::size_t rounded = round_to_block(2 * images) + round_to_block(2 * kernel) + round_to_block(2 * outputs);

  for (const ConvolutionPass pass :
       {ConvolutionPass::forward, ConvolutionPass::backward_input, ConvolutionPass::backward_weights}) {
    const auto at = [&](Precision precision) {
      return CudnnConvolution::find({.description = &*device_}, precision, shape, pass).value().workspace_bytes();
    };
    EXPECT_GE(at(Precision::f32), round_to_block(4 * kernel));
    EXPECT_GE(at(Precision::tf32), round_to_block(4 * kernel));
    EXPECT_GE(at(Precision::bf16), rounded);
  }
}

TEST_F(CudnnConvolutions, AreTheSameEachTime) {
  const ConvolutionShape shape = {64, 28, 28, 6, 16, 5, 5, 1, 1, Padding::valid, true};
  const auto find = [&] {
    return CudnnConvolution::find({.description = &*device_}, Precision::f32, shape, ConvolutionPass::forward);
  };

  const auto first = find(), second = find();

  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->engine(), second->engine());
  EXPECT_EQ(first->workspace_bytes(), second->workspace_bytes());
}

}  // namespace
}  // namespace holdfast::compute
