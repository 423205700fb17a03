#include "holdfast/base/temporary_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

using ::testing::Property;
using ::testing::Throws;

TEST(TemporaryPath, IsNeverTheSameTwice) {
  std::set<std::string> paths;
  for (int i = 0; i < 1000; ++i) paths.insert(temporary_path("a.h5"));

  EXPECT_EQ(paths.size(), 1000U);
}

TEST(TemporaryPath, IsATemporaryName) {
  EXPECT_TRUE(is_temporary_name(temporary_path("step-5.h5")));
}

TEST(RemoveTemporaryFiles, LeavesForeignFilesAlone) {
  TemporaryFolder folder;
  const std::vector<std::string> ours = {"a.h5.tmp-0123456789abcdef", "b.tmp-ffffffffffffffff"};
  const std::vector<std::string> foreign = {".tmp-0123456789abcdef",
                                            "a.h5",
                                            "a.h5.tmp",
                                            "a.h5.tmp-0123456789ABCDEF",
                                            "a.h5.tmp-0123456789abcde",
                                            "a.h5.tmp-0123456789abcdef.h5",
                                            "a.h5.tmp-0123456789abcdef0",
                                            "a.h5.tmp-0123456789abcdeg",
                                            "a.h5_tmp-0123456789abcdef"};
  for (const auto& names : {ours, foreign}) {
    for (const std::string& name : names) std::ofstream(folder / name) << "x";
  }

  EXPECT_EQ(remove_temporary_files(posix_file_system(), folder.path()), ours);

  EXPECT_EQ(folder.names(), foreign);
}

TEST(RemoveTemporaryFiles, ReportsAFolderThatIsMissing) {
  TemporaryFolder folder;

  EXPECT_THAT([&] { remove_temporary_files(posix_file_system(), folder / "none"); },
              Throws<Error>(Property(&Error::code, ErrorCode::not_found)));
}

}  // namespace
}  // namespace holdfast
