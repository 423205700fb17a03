// How hosts find out that they share a run directory.

#include "agents/head_mark.h"

#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

TEST(HeadMark, IsSeenInTheSameFolderAlone) {
  const TemporaryFolder folder;

  const std::string mark = leave_head_mark(folder / "run");

  EXPECT_TRUE(is_head_mark_there(folder / "run", mark));
  EXPECT_FALSE(is_head_mark_there(folder / "other", mark));
}

TEST(HeadMark, IsAnotherOneAtEachStart) {
  const TemporaryFolder folder;

  const std::string first = leave_head_mark(folder / "run");
  const std::string second = leave_head_mark(folder / "run");

  EXPECT_FALSE(is_head_mark_there(folder / "run", first));
  EXPECT_TRUE(is_head_mark_there(folder / "run", second));
}

}  // namespace
}  // namespace holdfast::recovery
