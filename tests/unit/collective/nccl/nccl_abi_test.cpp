// Compares our declarations with nccl.h, if that is installed.

#include "collective/nccl/nccl_abi.h"

#include <gtest/gtest.h>

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <nccl.h>
#pragma GCC diagnostic pop
#define HOLDFAST_HAS_NCCL_HEADER 1
#else
#define HOLDFAST_HAS_NCCL_HEADER 0
#endif

namespace holdfast {

TEST(NcclAbi, NumbersVersionsAsNcclDoes) {
  EXPECT_EQ(nccl::version_code(2, 28, 9), 22809);
  EXPECT_EQ(nccl::version_code(2, 30, 3), 23003);
}

TEST(NcclAbi, IsThatOfTheHeader) {
#if HOLDFAST_HAS_NCCL_HEADER
  EXPECT_EQ(static_cast<int>(nccl::Result::success), ncclSuccess);
  EXPECT_EQ(static_cast<int>(nccl::Result::unhandled_cuda_error), ncclUnhandledCudaError);
  EXPECT_EQ(static_cast<int>(nccl::Result::system_error), ncclSystemError);
  EXPECT_EQ(static_cast<int>(nccl::Result::internal_error), ncclInternalError);
  EXPECT_EQ(static_cast<int>(nccl::Result::invalid_argument), ncclInvalidArgument);
  EXPECT_EQ(static_cast<int>(nccl::Result::invalid_usage), ncclInvalidUsage);
  EXPECT_EQ(static_cast<int>(nccl::Result::remote_error), ncclRemoteError);
  EXPECT_EQ(static_cast<int>(nccl::Result::in_progress), ncclInProgress);
  EXPECT_EQ(static_cast<int>(nccl::DataType::float32), ncclFloat32);
  EXPECT_EQ(static_cast<int>(nccl::Operation::sum), ncclSum);
  EXPECT_EQ(sizeof(nccl::UniqueId), sizeof(ncclUniqueId));
#else
  GTEST_SKIP() << "nccl.h is not installed";
#endif
}

// NCCL copies as many bytes as the smaller of the two structs has, and `version` says which of them count.
TEST(NcclAbi, HasTheHeadersConfigAtItsBeginning) {
#if HOLDFAST_HAS_NCCL_HEADER
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const nccl::Config ours;
  EXPECT_LE(sizeof ours, sizeof theirs);
  EXPECT_EQ(offsetof(nccl::Config, magic), offsetof(ncclConfig_t, magic));
  EXPECT_EQ(offsetof(nccl::Config, version), offsetof(ncclConfig_t, version));
  EXPECT_EQ(offsetof(nccl::Config, blocking), offsetof(ncclConfig_t, blocking));
  EXPECT_EQ(offsetof(nccl::Config, cga_cluster_size), offsetof(ncclConfig_t, cgaClusterSize));
  EXPECT_EQ(offsetof(nccl::Config, maximum_ctas), offsetof(ncclConfig_t, maxCTAs));
  EXPECT_EQ(offsetof(nccl::Config, net_name), offsetof(ncclConfig_t, netName));
  EXPECT_EQ(offsetof(nccl::Config, split_share), offsetof(ncclConfig_t, splitShare));
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.blocking, theirs.blocking);
  EXPECT_EQ(ours.net_name, theirs.netName);
  EXPECT_EQ(ours.split_share, theirs.splitShare);
#else
  GTEST_SKIP() << "nccl.h is not installed";
#endif
}

}  // namespace holdfast
