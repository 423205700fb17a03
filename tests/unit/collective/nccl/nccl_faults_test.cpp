// The library that makes NCCL fail, with the fake NCCL as the real one.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"
#include "unit/collective/nccl/support/nccl_test.h"

namespace holdfast {
namespace {

class NcclFaults : public testing::Test {
 protected:
  NcclFaults() { fake_nccl_obey(""); }

  // Each test loads its own copy, because the library reads its environment once and counts as long as it is loaded.
  std::shared_ptr<NcclLibrary> load(const std::string& rules, const std::string& real = FAKE_NCCL_PATH) {
    ::setenv("HOLDFAST_NCCL_REAL", real.c_str(), 1);
    ::setenv("HOLDFAST_NCCL_FAULTS", rules.c_str(), 1);
    const std::string copy = folder_ / "libholdfast_nccl_faults.so";
    std::filesystem::copy_file(NCCL_FAULTS_PATH, copy);
    return std::make_shared<NcclLibrary>(copy);
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(NcclFaults, ForwardsWhatIsToGoWell) {
  const auto library = load("");
  nccl::UniqueId id{};

  EXPECT_EQ(library->version_text(), "2.28.9");
  EXPECT_EQ(library->describe(nccl::Result::invalid_usage, nullptr), "invalid usage (5)");
  EXPECT_EQ(library->get_unique_id(&id), nccl::Result::success);
  EXPECT_EQ(fake_nccl_calls("ncclGetUniqueId", -1), 1);
}

// If NCCL came with a Python package, the program found it, but this library did not.
TEST_F(NcclFaults, FindsTheRealLibraryWhereHoldfastDoes) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(FAKE_NCCL_PATH, folder / "libfake_nccl_elsewhere.so");
  ASSERT_EQ(::setenv("HOLDFAST_LIBRARY_PATH", folder.path().c_str(), 1), 0);

  const auto library = load("", "libfake_nccl_elsewhere.so");

  EXPECT_EQ(::unsetenv("HOLDFAST_LIBRARY_PATH"), 0);
  EXPECT_GE(library->version(), nccl::kOldestVersion);
}

TEST_F(NcclFaults, FailsTheCallThatIsNamed) {
  const auto library = load("function=ncclGetUniqueId,call=2,fault=fail,result=2");
  nccl::UniqueId id{};

  EXPECT_EQ(library->get_unique_id(&id), nccl::Result::success);
  EXPECT_EQ(library->get_unique_id(&id), nccl::Result::system_error);
  EXPECT_EQ(fake_nccl_calls("ncclGetUniqueId", -1), 1);
}

TEST_F(NcclFaults, ConcernsTheRankThatIsNamed) {
  const auto library = load(
      "function=ncclAllReduce,rank=1,fault=fail,result=5;"
      "function=ncclCommGetAsyncError,rank=1,from=3,fault=report,result=6");
  nccl::UniqueId id{};
  ASSERT_EQ(library->get_unique_id(&id), nccl::Result::success);
  nccl::Config config;
  config.blocking = 0;
  nccl::Comm* comms[2] = {};
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(library->comm_init_rank_config(&comms[rank], 2, id, rank, &config), nccl::Result::in_progress);
  }

  ThreadStream stream;
  float value = 1.0F;
  EXPECT_EQ(library->all_reduce(&value, &value, 1, nccl::DataType::float32, nccl::Operation::sum, comms[1],
                                static_cast<FakeStream*>(&stream)),
            nccl::Result::invalid_usage);
  EXPECT_EQ(fake_nccl_calls("ncclAllReduce", -1), 0);
  for (int rank = 0; rank < 2; ++rank) {
    nccl::Result state = nccl::Result::success;
    for (int look = 1; look <= 3; ++look) {
      EXPECT_EQ(state, nccl::Result::success) << "rank " << rank << ", look " << look;
      ASSERT_EQ(library->comm_get_async_error(comms[rank], &state), nccl::Result::success);
    }
    EXPECT_EQ(state, rank == 1 ? nccl::Result::remote_error : nccl::Result::success);
    EXPECT_EQ(library->comm_abort(comms[rank]), nccl::Result::success);
  }
}

TEST_F(NcclFaults, NamesTheRuleThatItCannotRead) {
  const Error error = error_of([&] { load("function=ncclSend,fault=explode"); });

  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_NE(std::string(error.what()).find("fault=explode"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace holdfast
