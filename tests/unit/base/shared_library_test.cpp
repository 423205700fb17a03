#include "holdfast/base/shared_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

void make_file(const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << "x";
}

TEST(SharedLibrary, SearchesTheGivenFoldersAndTheirPythonPackagesFirst) {
  const TemporaryFolder folder;
  make_file(folder / "own/libnccl.so.2");
  make_file(folder / "site-packages/nvidia/nccl/lib/libnccl.so.2");
  make_file(folder / "site-packages/nvidia/cudnn/lib/libcudnn.so.9");

  EXPECT_THAT(
      library_candidates("libnccl.so.2", ":" + folder / "own:" + folder / "site-packages:/nowhere"),
      ElementsAre(folder / "own/libnccl.so.2", folder / "site-packages/nvidia/nccl/lib/libnccl.so.2", "libnccl.so.2"));
}

TEST(SharedLibrary, TriesOnlyThePathThatItIsGiven) {
  EXPECT_THAT(library_candidates("/opt/libnccl.so.2", "/own"), ElementsAre("/opt/libnccl.so.2"));
}

TEST(SharedLibrary, FindsTheLibrarysFunctionsAndItsPath) {
  const SharedLibrary library = SharedLibrary::load("libm.so.6");

  EXPECT_THAT(library.path(), EndsWith("/libm.so.6"));
  double (*const cosine)(double) = library.find<double(double)>("cos");
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(library.find<int()>("holdfast_has_no_such_function"), nullptr);
}

TEST(SharedLibrary, SaysWhyItCannotBeLoaded) {
  try {
    SharedLibrary::load("libholdfast_has_no_such_library.so");
    FAIL() << "it was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    EXPECT_THAT(error.what(), HasSubstr("libholdfast_has_no_such_library.so"));
  }
}

}  // namespace
}  // namespace holdfast
