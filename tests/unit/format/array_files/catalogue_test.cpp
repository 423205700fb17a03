// Which savepoint is found, and what happens to those that are passed over, for each kind of error while reading.

#include "holdfast/format/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "holdfast/base/error.h"
#include "support/disks/memory_file_system.h"
#include "support/temporary_folder.h"
#include "unit/format/support/array_files.h"
#include "unit/format/support/savepoints.h"
#include "unit/format/support/views.h"

namespace holdfast::format {
namespace {

using testing::damage;
using ::testing::HasSubstr;
using testing::read_savepoint;
using testing::thrown_by;
using testing::write_savepoint;

TEST(SavepointName, GivesItsStepBack) {
  for (const std::int64_t step : {std::int64_t{0}, std::int64_t{120}, std::int64_t{9'999'999'999},
                                  std::int64_t{10'000'000'000}, std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(savepoint_step(savepoint_name(step)), step);
  }
  EXPECT_EQ(savepoint_name(120), "savepoint-0000000120.h5");
}

TEST(SavepointName, IsTheOnlyNameOfAStep) {
  for (const char* name :
       {"", "savepoint-.h5", "savepoint-1.h5", "savepoint-00000000120.h5", "savepoint-0000000120", "savepoint-h5",
        "savepoint-mine.h5", "savepoint-000000012x.h5", "savepoint--000000120.h5", "best-0000000120.h5",
        "savepoint-0000000120.h5.damaged", "savepoint-0000000120.h5.tmp-0123456789abcdef",
        "savepoint-99999999999999999999.h5", "savepoint-9223372036854775808.h5", ".savepoint-0000000120.h5"}) {
    EXPECT_EQ(savepoint_step(name), std::nullopt) << name;
  }
}

TEST(Metric, IsTheNumberOfThatName) {
  const std::string metadata = R"({"step": 1, "metrics": {"loss": 0.5, "count": 3, "bad": "nan", "none": null}})";

  EXPECT_EQ(metric_of(metadata, "loss"), 0.5);
  EXPECT_EQ(metric_of(metadata, "count"), 3.0);
  for (const char* name : {"bad", "none", "step", ""}) EXPECT_EQ(metric_of(metadata, name), std::nullopt) << name;
  for (const char* other : {"", "{", "[]", "{}", R"({"metrics": 1})", R"({"metrics": [1]})"}) {
    EXPECT_EQ(metric_of(other, "loss"), std::nullopt) << other;
  }
}

class Catalogue : public ::testing::Test {
 protected:
  Catalogue() {
    files_.create_folders("/run");
    files_.create_folders("/copy");
  }

  static std::string path(std::int64_t step, const std::string& folder = "/run") {
    return folder + "/" + savepoint_name(step);
  }
  void write(std::int64_t step, const std::string& folder = "/run") {
    write_savepoint(files_, path(step, folder), step);
    testing::expect_views_equal(path(step, folder), files_);
  }
  void damage_savepoint(std::int64_t step, const std::string& folder = "/run") {
    FileContents contents = files_.contents();
    damage(contents, path(step, folder));
    replace(path(step, folder), contents.at(path(step, folder)));
  }
  void replace(const std::string& file, const std::vector<std::byte>& bytes) {
    files_.remove(file);
    files_.create(file)->write_at(0, bytes);
  }

  std::optional<std::string> find(FileSystem& files, bool is_owner) {
    return find_newest_savepoint(
        files, folders_, [&](const std::string& found) { static_cast<void>(read_savepoint(files, found)); },
        {.is_owner = is_owner, .report = [&](const Problem& problem) { reports_.push_back(problem); }});
  }
  std::optional<std::string> find_as_owner() { return find(files_, true); }
  std::optional<std::string> find_as_reader() { return find(files_, false); }

  MemoryFileSystem files_;
  std::vector<std::string> folders_ = {"/run", "/copy"};
  std::vector<Problem> reports_;
};

TEST_F(Catalogue, ListsSavepointsByStepAndNothingElse) {
  for (const std::int64_t step : {std::int64_t{20'000'000'000}, std::int64_t{3'000'000'000}, std::int64_t{7}})
    write(step);
  files_.create("/run/savepoint-mine.h5");
  files_.create("/run/run.json");

  const std::vector<SavepointEntry> entries = list_savepoints(files_, "/run");

  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].step, 7);
  EXPECT_EQ(entries[1].step, 3'000'000'000);
  EXPECT_EQ(entries[2].name, savepoint_name(20'000'000'000));
  EXPECT_EQ(entries[0].file_bytes, files_.contents().at(path(7)).size());
  EXPECT_TRUE(list_savepoints(files_, "/none").empty());
}

TEST_F(Catalogue, FindsNothingInEmptyOrMissingFolders) {
  EXPECT_EQ(find_as_owner(), std::nullopt);
  folders_ = {"/none"};
  EXPECT_EQ(find_as_owner(), std::nullopt);
  folders_ = {};
  EXPECT_EQ(find_as_owner(), std::nullopt);
}

TEST_F(Catalogue, FindsTheNewestInWhicheverFolderItIs) {
  write(5);
  write(9, "/copy");
  EXPECT_EQ(find_as_owner(), path(9, "/copy"));

  write(9);
  EXPECT_EQ(find_as_owner(), path(9)) << "the first folder's comes first";
  EXPECT_TRUE(reports_.empty());
}

TEST_F(Catalogue, SetsDamagedFilesAsideWithTheReasonAndTakesTheCopy) {
  for (const char* folder : {"/run", "/copy"}) {
    write(8, folder);
    write(9, folder);
  }
  damage_savepoint(9);
  const std::vector<std::byte> damaged = files_.contents().at(path(9));

  EXPECT_EQ(find_as_owner(), path(9, "/copy"));

  const FileContents contents = files_.contents();
  EXPECT_FALSE(contents.contains(path(9)));
  EXPECT_TRUE(contents.at(path(9) + ".damaged") == damaged);
  ASSERT_EQ(reports_.size(), 1U);
  EXPECT_EQ(reports_[0].path, path(9));
  EXPECT_EQ(reports_[0].set_aside_as, path(9) + ".damaged");
  const std::vector<std::byte>& reason = contents.at(path(9) + ".damaged.txt");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(reason.data()), reason.size()), reports_[0].why + "\n");
}

TEST_F(Catalogue, KeepsEveryFileThatWasSetAside) {
  for (int i = 0; i < 3; ++i) {
    write(9);
    damage_savepoint(9);
    EXPECT_EQ(find_as_owner(), std::nullopt);
  }

  EXPECT_EQ(files_.list("/run"),
            (std::vector<std::string>{savepoint_name(9) + ".damaged", savepoint_name(9) + ".damaged-2",
                                      savepoint_name(9) + ".damaged-2.txt", savepoint_name(9) + ".damaged-3",
                                      savepoint_name(9) + ".damaged-3.txt", savepoint_name(9) + ".damaged.txt"}));
}

TEST_F(Catalogue, TakesTheSavepointBeforeWhenAllCopiesAreDamaged) {
  for (const char* folder : {"/run", "/copy"}) {
    write(8, folder);
    write(9, folder);
    damage_savepoint(9, folder);
  }

  EXPECT_EQ(find_as_owner(), path(8));
  EXPECT_EQ(reports_.size(), 2U);
}

TEST_F(Catalogue, LetsAReaderChangeNothing) {
  write(8);
  write(9);
  damage_savepoint(9);
  files_.create("/run/x.tmp-0123456789abcdef");
  const FileContents before = files_.contents();

  EXPECT_EQ(find_as_reader(), path(8));

  EXPECT_EQ(files_.contents(), before);
  EXPECT_EQ(reports_.size(), 1U);
}

TEST_F(Catalogue, RemovesLeftoversInAllFoldersForTheOwner) {
  files_.create("/run/" + savepoint_name(1) + ".tmp-0123456789abcdef");
  files_.create("/copy/" + savepoint_name(1) + ".tmp-0123456789abcdef");
  files_.create("/copy/mine.tmp");

  EXPECT_EQ(find_as_owner(), std::nullopt);

  EXPECT_EQ(files_.list("/run"), std::vector<std::string>{});
  EXPECT_EQ(files_.list("/copy"), std::vector<std::string>{"mine.tmp"});
}

TEST_F(Catalogue, ReadsACopyWhenTheDiskFails) {
  write(9);
  write(9, "/copy");
  const auto broken = watched_file_system(files_, [](const FileOperation& operation) {
    if (operation.path.starts_with("/run")) throw system_error(EIO, "cannot " + operation.name + " " + operation.path);
  });

  EXPECT_EQ(find(*broken, true), path(9, "/copy"));
  EXPECT_FALSE(reports_.empty());
}

TEST_F(Catalogue, ReportsAFileThatItMayNotReadWhenACopyIsTaken) {
  write(9);
  write(9, "/copy");
  const auto forbidden = watched_file_system(files_, [](const FileOperation& operation) {
    if (operation.name == "read" && operation.path == path(9)) throw system_error(EACCES, "cannot read");
  });

  EXPECT_EQ(find(*forbidden, true), path(9, "/copy"));
  ASSERT_EQ(reports_.size(), 1U);
  EXPECT_EQ(reports_[0].path, path(9));
}

// It reported that the savepoint was passed over, and then ended with its error.
TEST_F(Catalogue, EndsWithAFileThatItMayNotReadAndThatHasNoCopy) {
  write(8);
  write(9);
  const auto forbidden = watched_file_system(files_, [](const FileOperation& operation) {
    if (operation.name == "read" && operation.path == path(9)) throw system_error(EACCES, "cannot read");
  });

  EXPECT_EQ(thrown_by([&] { find(*forbidden, true); }).code, ErrorCode::refused);
  EXPECT_TRUE(reports_.empty());
  EXPECT_TRUE(files_.exists(path(9)));
}

TEST_F(Catalogue, EndsWithAnErrorOfTheDiskRatherThanAnOlderState) {
  write(8);
  write(8, "/copy");
  write(9);
  const auto broken = watched_file_system(files_, [](const FileOperation& operation) {
    if (operation.name == "read" && operation.path == path(9)) throw system_error(EIO, "cannot read");
  });

  EXPECT_EQ(thrown_by([&] { find(*broken, true); }).code, ErrorCode::input_output);
  EXPECT_TRUE(files_.exists(path(9)));
}

TEST_F(Catalogue, FailsWhenNoFolderCanBeListed) {
  const auto broken = watched_file_system(files_, [](const FileOperation& operation) {
    if (operation.name == "list") throw system_error(EIO, "cannot list " + operation.path);
  });

  EXPECT_EQ(thrown_by([&] { find(*broken, true); }).code, ErrorCode::input_output);
}

TEST_F(Catalogue, EndsWithErrorsThatDoNotConcernTheFile) {
  write(9);
  const auto read = [](const std::string&) { throw Error(ErrorCode::out_of_memory, "no memory"); };

  EXPECT_EQ(thrown_by([&] { find_newest_savepoint(files_, folders_, read, {.is_owner = true}); }).code,
            ErrorCode::out_of_memory);
  EXPECT_TRUE(files_.exists(path(9)));
}

// Callers recognize their own refusals by the type.
TEST_F(Catalogue, RethrowsARefusalWithItsType) {
  struct Refusal : Error {
    Refusal() : Error(ErrorCode::incompatible, "other options") {}
  };
  write(9);
  const auto read = [](const std::string&) { throw Refusal(); };

  EXPECT_THROW(find_newest_savepoint(files_, folders_, read, {.is_owner = true}), Refusal);
}

TEST_F(Catalogue, ListsAgainWhenTheWriterDeletesWhatItFound) {
  write(1);
  std::int64_t step = 1;
  // Before each of the first fifty calls to open, the writer replaces the savepoint with a newer one.
  const auto busy = watched_file_system(files_, [&](const FileOperation& operation) {
    if (operation.name != "open" || step > 50) return;
    write(++step);
    files_.remove(path(step - 1));
  });

  EXPECT_EQ(find(*busy, false), path(51));
  EXPECT_TRUE(reports_.empty());
}

TEST_F(Catalogue, EndsWhenEveryFileDisappearsAgainAndAgain) {
  write(1);
  std::int64_t step = 1;
  const auto busy = watched_file_system(files_, [&](const FileOperation& operation) {
    if (operation.name != "open") return;
    write(++step);
    files_.remove(path(step - 1));
  });

  EXPECT_EQ(find(*busy, false), std::nullopt);
}

TEST_F(Catalogue, ContinuesWhenADamagedFileCannotBeSetAside) {
  write(8);
  write(9);
  damage_savepoint(9);
  const auto read_only = watched_file_system(files_, [](const FileOperation& operation) {
    if (operation.name == "rename") throw system_error(EROFS, "cannot rename " + operation.path);
  });

  EXPECT_EQ(find(*read_only, true), path(8));
  ASSERT_EQ(reports_.size(), 1U);
  EXPECT_THAT(reports_[0].why, HasSubstr("could not be set aside"));
  EXPECT_EQ(reports_[0].set_aside_as, "");
}

// Although an older savepoint was whole, the run ended ("Is a directory"), or its replicas hung or started twenty
// times.
TEST(CatalogueOfRealFiles, SetsAsideWhatIsNotAFileAndTakesTheSavepointBefore) {
  const TemporaryFolder folder;
  FileSystem& files = posix_file_system();
  write_savepoint(files, folder / savepoint_name(5), 5);
  std::filesystem::create_directory(folder / savepoint_name(6));
  ASSERT_EQ(::mkfifo((folder / savepoint_name(7)).c_str(), 0600), 0);
  std::filesystem::create_symlink(savepoint_name(8), folder / savepoint_name(8));
  std::filesystem::create_symlink("/dev/zero", folder / savepoint_name(9));
  std::vector<Problem> reports;
  const std::vector<std::string> folders{folder.path()};

  const std::optional<std::string> found = find_newest_savepoint(
      files, folders, [&](const std::string& path) { static_cast<void>(read_savepoint(files, path)); },
      {.is_owner = true, .report = [&](const Problem& problem) { reports.push_back(problem); }});

  EXPECT_EQ(found, folder / savepoint_name(5));
  ASSERT_EQ(reports.size(), 4U);
  for (const Problem& problem : reports) {
    EXPECT_THAT(problem.why, HasSubstr("not a regular file"));
    EXPECT_EQ(problem.set_aside_as, problem.path + ".damaged");
  }
  EXPECT_EQ(list_savepoints(files, folder.path()).size(), 1U);
}

TEST(CatalogueOfRealFiles, ListsOnlyFiles) {
  const TemporaryFolder folder;
  FileSystem& files = posix_file_system();
  write_savepoint(files, folder / savepoint_name(5), 5);
  std::filesystem::create_directory(folder / savepoint_name(6));
  ASSERT_EQ(::mkfifo((folder / savepoint_name(7)).c_str(), 0600), 0);

  const std::vector<SavepointEntry> entries = list_savepoints(files, folder.path());

  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].step, 5);
}

}  // namespace
}  // namespace holdfast::format
