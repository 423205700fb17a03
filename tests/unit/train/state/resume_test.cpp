// Which savepoint of a folder a run continues from. The rules are those of format's catalogue, which has tests of its
// own; here they are tested with savepoints of training states.

#include "train/state/resume.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "holdfast/base/error.h"
#include "support/program.h"

namespace holdfast {
namespace {

void write_step(const TemporaryFolder& folder, std::int64_t step) {
  Snapshot snapshot;
  snapshot.state.graph = "{}";
  snapshot.state.configuration = "{}";
  snapshot.state.step = step;
  snapshot.add("model/weights", Shape{1})[0] = static_cast<float>(step);
  write_savepoint(posix_file_system(), folder / savepoint_name(step), snapshot);
}

std::vector<std::string> set_aside;

struct FoundSavepoint {
  std::string path;
  std::int64_t step = 0;
};

std::optional<FoundSavepoint> find(const std::vector<std::string>& folders, FileSystem& files = posix_file_system()) {
  std::int64_t step = 0;
  const std::optional<std::string> path = find_newest_savepoint(
      files, folders, [&](const std::string& candidate) { step = read_savepoint(files, candidate).state.step; },
      [](const std::string& damaged, const std::string&, const std::string& name) {
        if (name == damaged + ".damaged") set_aside.push_back(damaged);
      });
  return path ? std::make_optional(FoundSavepoint{*path, step}) : std::nullopt;
}

std::optional<FoundSavepoint> find(const TemporaryFolder& folder) {
  return find(std::vector<std::string>{folder.path()});
}

}  // namespace

TEST(Resume, FindsNothingInAnEmptyOrMissingFolder) {
  const TemporaryFolder folder;

  EXPECT_FALSE(find(folder).has_value());
  EXPECT_FALSE(find(std::vector<std::string>{folder / "missing"}).has_value());
}

TEST(Resume, TakesTheNewestByStepAndIgnoresOtherFiles) {
  const TemporaryFolder folder;
  for (const std::int64_t step : {9, 1000, 200}) write_step(folder, step);
  std::ofstream(folder / "savepoint-99999999999x.h5") << "not ours";
  std::ofstream(folder / "best-loss.h5") << "not a savepoint of the run";

  const auto found = find(folder);

  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->step, 1000);
  EXPECT_EQ(found->path, folder / savepoint_name(1000));
}

TEST(Resume, SetsDamagedSavepointsAsideUntilOneIsWhole) {
  const TemporaryFolder folder;
  for (const std::int64_t step : {1, 2, 3}) write_step(folder, step);
  std::filesystem::resize_file(folder / savepoint_name(3), 700);
  std::ofstream(folder / savepoint_name(2)) << "";
  set_aside.clear();

  const auto found = find(folder);

  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->step, 1);
  EXPECT_EQ(set_aside, (std::vector<std::string>{folder / savepoint_name(3), folder / savepoint_name(2)}));
  EXPECT_TRUE(std::filesystem::exists(folder / (savepoint_name(3) + ".damaged")));
  EXPECT_EQ(std::filesystem::file_size(folder / (savepoint_name(3) + ".damaged")), 700U);
}

TEST(Resume, TakesACopyThatIsNewer) {
  const TemporaryFolder folder;
  const TemporaryFolder copy;
  write_step(folder, 1);
  write_step(copy, 2);

  const auto found = find(std::vector<std::string>{folder.path(), copy.path()});

  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->path, copy / savepoint_name(2));
  EXPECT_EQ(found->step, 2);
}

TEST(Resume, RemovesWhatADeadWriterLeft) {
  const TemporaryFolder folder;
  write_step(folder, 1);
  const std::string leftover = folder / (savepoint_name(2) + ".tmp-0123456789abcdef");
  std::ofstream(leftover) << "half";

  find(folder);

  EXPECT_FALSE(std::filesystem::exists(leftover));
}

TEST(Resume, DoesNotSetAsideWhatItCannotRead) {
  const TemporaryFolder folder;
  write_step(folder, 1);
  const auto failing = watched_file_system(posix_file_system(), [](const FileOperation& operation) {
    if (operation.name == "read") throw Error(ErrorCode::input_output, "the disk is failing");
  });

  EXPECT_THROW(find({folder.path()}, *failing), Error);
  EXPECT_TRUE(std::filesystem::exists(folder / savepoint_name(1)));
}

}  // namespace holdfast
