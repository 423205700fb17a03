#include "run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>

#include "holdfast/base/error.h"
#include "pretended_hosts.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"

namespace holdfast::resilience {
namespace {

using ::testing::HasSubstr;

std::string sentence_with_tmpdir(const std::string& folder, const std::function<void()>& action) {
  const char* const found = std::getenv("TMPDIR");
  const std::optional<std::string> before = found == nullptr ? std::nullopt : std::optional<std::string>(found);
  ::setenv("TMPDIR", folder.c_str(), 1);
  std::string sentence = sentence_thrown_by(action);
  if (before) {
    ::setenv("TMPDIR", before->c_str(), 1);
  } else {
    ::unsetenv("TMPDIR");
  }
  return sentence;
}

TEST(RunFolder, MakesAFolderOfItsOwnThatEndsWithIt) {
  std::string path;
  {
    const RunFolder folder("");
    path = std::filesystem::path(folder.run_directory()).parent_path();
    EXPECT_TRUE(std::filesystem::is_directory(path));
    EXPECT_FALSE(std::filesystem::exists(folder.run_directory()));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(RunFolder, KeepsAFolderThatWasNamedAndRefusesOneThatIsThere) {
  const TemporaryFolder folder;
  { const RunFolder made(folder / "runs/1"); }

  EXPECT_TRUE(std::filesystem::is_directory(folder / "runs/1"));
  EXPECT_EQ(code_thrown_by([&] { RunFolder again(folder / "runs/1"); }), ErrorCode::invalid_argument);
}

// An exception of the C++ library came through, which no caller expects.
TEST(RunFolder, RefusesANameThatTheSystemCannotLookFor) {
  const TemporaryFolder folder;
  const std::string too_long(300, 'x');

  EXPECT_EQ(code_thrown_by([&] { RunFolder made(folder / too_long); }), ErrorCode::input_output);
  EXPECT_THAT(sentence_thrown_by([&] { RunFolder made(folder / too_long); }),
              HasSubstr("cannot look for the run directory"));
}

TEST(RunFolder, SaysThatTheFolderForTemporaryFilesIsMissing) {
  const TemporaryFolder folder;

  EXPECT_THAT(sentence_with_tmpdir(folder / "missing", [] { RunFolder made(""); }),
              HasSubstr("let the variable TMPDIR name a folder that exists"));
  EXPECT_THAT(sentence_with_tmpdir(folder / "missing", [] { PretendedHosts hosts(2); }),
              HasSubstr("let the variable TMPDIR name a folder that exists"));
}

}  // namespace
}  // namespace holdfast::resilience
