// Loading NCCL: versions, missing functions, and errors that say what to install.

#include "collective/nccl/nccl_library.h"

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "holdfast/base/error.h"
#include "support/fake_nccl/fake_nccl.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

std::string reason_for_not_loading(const std::string& path) {
  try {
    const NcclLibrary library(path);
  } catch (const Error& failure) {
    EXPECT_EQ(failure.code(), ErrorCode::unavailable);
    return failure.what();
  }
  ADD_FAILURE() << path << " was loaded";
  return {};
}

bool survives_abort(const std::string& version) {
  fake_nccl_obey(("version=" + version).c_str());
  return NcclLibrary(FAKE_NCCL_PATH).survives_abort();
}

}  // namespace

TEST(NcclLibrary, FindsRevokeOnlyWhereTheVersionHasIt) {
  fake_nccl_obey("version=22806");
  const NcclLibrary before(FAKE_NCCL_PATH);
  fake_nccl_obey("version=22807");
  const NcclLibrary since(FAKE_NCCL_PATH);

  EXPECT_EQ(before.comm_revoke, nullptr);
  EXPECT_NE(since.comm_revoke, nullptr);
}

TEST(NcclLibrary, KnowsItsVersion) {
  fake_nccl_obey("version=21805");

  const NcclLibrary library(FAKE_NCCL_PATH);

  EXPECT_EQ(library.version(), 21805);
  EXPECT_EQ(library.version_text(), "2.18.5");
}

TEST(NcclLibrary, RefusesWhatIsTooOld) {
  for (const auto& [code, text] : {std::pair("21705", "2.17.5"), std::pair("2708", "2.7.8")}) {
    fake_nccl_obey((std::string("version=") + code).c_str());

    const std::string reason = reason_for_not_loading(FAKE_NCCL_PATH);

    EXPECT_NE(reason.find(text), std::string::npos) << reason;
    EXPECT_NE(reason.find("2.18"), std::string::npos) << reason;
  }
}

TEST(NcclLibrary, NamesTheFileThatDoesNotExist) {
  const std::string reason = reason_for_not_loading("/nowhere/libnccl.so.2");

  EXPECT_NE(reason.find("/nowhere/libnccl.so.2"), std::string::npos) << reason;
  EXPECT_NE(reason.find("HOLDFAST_NCCL"), std::string::npos) << reason;
}

TEST(NcclLibrary, IsFoundInTheFoldersOfLibraries) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(FAKE_NCCL_PATH, folder / "libfake_nccl_elsewhere.so");
  ASSERT_EQ(::setenv("HOLDFAST_LIBRARY_PATH", folder.path().c_str(), 1), 0);

  const NcclLibrary library("libfake_nccl_elsewhere.so");

  EXPECT_EQ(::unsetenv("HOLDFAST_LIBRARY_PATH"), 0);
  EXPECT_GE(library.version(), nccl::kOldestVersion);
}

TEST(NcclLibrary, NamesTheFunctionThatALibraryLacks) {
  const std::string reason = reason_for_not_loading("libdl.so.2");

  EXPECT_NE(reason.find("ncclGetVersion"), std::string::npos) << reason;
}

TEST(NcclLibrary, KnowsWhichVersionsHangOrCrashWhenAborted) {
  EXPECT_FALSE(survives_abort("21805"));
  EXPECT_TRUE(survives_abort("21901"));
  EXPECT_TRUE(survives_abort("22802"));
  EXPECT_FALSE(survives_abort("22803"));
  EXPECT_FALSE(survives_abort("22808"));
  EXPECT_TRUE(survives_abort("22809"));
  EXPECT_TRUE(survives_abort("23102"));
}

TEST(NcclLibrary, DescribesAResult) {
  fake_nccl_obey("");
  const NcclLibrary library(FAKE_NCCL_PATH);

  EXPECT_EQ(library.describe(nccl::Result::invalid_usage, nullptr), "invalid usage (5)");
}

TEST(NcclLibrary, LoadsTheOneThatIsInstalled) {
  if (::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL) == nullptr) GTEST_SKIP() << ::dlerror();

  const NcclLibrary library("libnccl.so.2");

  EXPECT_GE(library.version(), nccl::kOldestVersion);
  EXPECT_NE(library.describe(nccl::Result::invalid_usage, nullptr), "");
}

}  // namespace holdfast
