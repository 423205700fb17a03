// Directories that look like those of runs, and the environment of schedulers. No run is started.

#include "holdfast/recovery/run_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "journal/journal.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"

namespace holdfast::recovery {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Clears the variables that ask for a fresh start, until the test ends.
class RunStart : public testing::Test {
 protected:
  RunStart() {
    for (const char* name : kVariables) {
      const char* value = ::getenv(name);
      before_.emplace_back(name, value == nullptr ? std::nullopt : std::optional<std::string>(value));
      ::unsetenv(name);
    }
  }
  ~RunStart() override {
    for (const auto& [name, value] : before_) {
      ::unsetenv(name.c_str());
      if (value) ::setenv(name.c_str(), value->c_str(), 1);
    }
  }

  static void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

  static void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
  }
  // A file that marks the run, and says which run it is.
  void make_run(const std::string& name) const {
    write(folder_ / "run/run.json", name);
    write(folder_ / "copies/savepoint-0000000010.h5", name);
  }
  static std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  OwnedRun take() const { return take(start_asked_for({})); }
  OwnedRun take(const AskedStart& how) const {
    return OwnedRun::take(folder_ / "run", {.copies = std::vector<std::string>{folder_ / "copies"}, .how = how});
  }
  static AskedStart fresh(const std::string& token = "") { return start_asked_for(Start::fresh, token); }

  TemporaryFolder folder_;

 private:
  static constexpr const char* kVariables[] = {"HOLDFAST_START", "SLURM_JOB_ID", "KUBERNETES_SERVICE_HOST", "HOSTNAME"};
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

void write_journal(const std::string& directory, const std::vector<nlohmann::json>& lines) {
  Journal journal(journal_path(directory));
  for (const nlohmann::json& line : lines) journal.append(line);
}

const nlohmann::json kStarted = {{"event", "watchdog_started"}};
const nlohmann::json kFailed = {{"event", "run_ended"}, {"exit_code", 1}, {"failed_by_itself", true}};
const nlohmann::json kStopped = {{"event", "run_ended"}, {"exit_code", 75}, {"failed_by_itself", false}};

}  // namespace

TEST_F(RunStart, ResumesARunByDefault) {
  make_run("first");

  const OwnedRun run = take();

  EXPECT_EQ(text_of(run.directory() + "/run.json"), "first");
}

TEST_F(RunStart, PutsARunAsideWithItsCopiesAndLosesNothing) {
  make_run("first");
  take(fresh());
  make_run("second");

  const OwnedRun run = take(fresh());

  EXPECT_FALSE(fs::exists(run.directory() + "/run.json"));
  EXPECT_EQ(text_of(folder_ / "run.1/run.json"), "first");
  EXPECT_EQ(text_of(folder_ / "run.2/run.json"), "second");
  EXPECT_EQ(text_of(folder_ / "copies.1/savepoint-0000000010.h5"), "first");
  EXPECT_EQ(text_of(folder_ / "copies.2/savepoint-0000000010.h5"), "second");
}

TEST_F(RunStart, OwnsTheNewDirectory) {
  make_run("first");
  const OwnedRun run = take(fresh());

  EXPECT_THROW(take(), Error);
}

TEST_F(RunStart, ReadsTheEnvironmentAndRefusesOtherWords) {
  set("HOLDFAST_START", "fresh");
  EXPECT_EQ(start_asked_for({}).start, Start::fresh);
  set("HOLDFAST_START", "resume");
  EXPECT_EQ(start_asked_for({}).start, Start::resume);
  set("HOLDFAST_START", "fresh:monday");
  EXPECT_EQ(start_asked_for({}).token, "monday");
  for (const char* wrong : {"Fresh", "fresh:", "anew", "1"}) {
    set("HOLDFAST_START", wrong);
    EXPECT_THROW(start_asked_for({}), Error) << wrong;
  }
}

TEST_F(RunStart, ObeysAnOptionBeforeTheEnvironment) {
  set("HOLDFAST_START", "fresh:monday");
  EXPECT_EQ(start_asked_for(Start::resume).start, Start::resume);
  set("HOLDFAST_START", "resume");
  EXPECT_EQ(start_asked_for(Start::fresh, "tuesday").token, "tuesday");
}

TEST_F(RunStart, RefusesATokenWithoutAFreshStart) {
  EXPECT_THROW(start_asked_for({}, "monday"), Error);
  EXPECT_THROW(start_asked_for(Start::resume, "monday"), Error);
}

TEST_F(RunStart, IsFreshOnceForEachToken) {
  make_run("first");
  take(fresh("monday"));
  make_run("second");

  take(fresh("monday"));
  EXPECT_EQ(text_of(folder_ / "run/run.json"), "second");

  take(fresh("tuesday"));
  EXPECT_FALSE(fs::exists(folder_ / "run/run.json"));
  EXPECT_EQ(text_of(folder_ / "run.2/run.json"), "second");
}

TEST_F(RunStart, IsFreshOnceForEachJobOfACluster) {
  set("HOLDFAST_START", "fresh");
  for (const auto& [name, first, again] : {std::tuple("SLURM_JOB_ID", "17", "17"),  //
                                           std::tuple("HOSTNAME", "train-x7k2p", "train-9bqwz")}) {
    SCOPED_TRACE(name);
    set("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    make_run("earlier");
    set(name, first);
    take();
    make_run("of the job");
    set(name, again);

    take();

    EXPECT_EQ(text_of(folder_ / "run/run.json"), "of the job");
    ::unsetenv("SLURM_JOB_ID");
  }
}

TEST_F(RunStart, KeepsAPodNameThatNoControllerMade) {
  set("KUBERNETES_SERVICE_HOST", "10.0.0.1");
  for (const auto& [pod, job] :
       {std::pair("train-0", "Kubernetes job train-0"), std::pair("my-train-2c9fz", "Kubernetes job my-train"),
        std::pair("my-train-today", "Kubernetes job my-train-today")}) {
    set("HOSTNAME", pod);
    EXPECT_EQ(fresh().token, job);
  }
}

TEST_F(RunStart, ChangesNothingWhenADirectoryCannotBeRenamed) {
  make_run("first");
  const fs::path before = fs::current_path();
  fs::current_path(std::string(folder_ / "run"));

  std::string sentence;
  try {
    take(fresh());
  } catch (const Error& failure) {
    sentence = failure.what();
  }
  fs::current_path(before);

  EXPECT_THAT(sentence, HasSubstr("cannot be put aside"));
  EXPECT_EQ(text_of(folder_ / "run/run.json"), "first");
  EXPECT_EQ(text_of(folder_ / "copies/savepoint-0000000010.h5"), "first");
}

TEST_F(RunStart, PutsAsideTheDirectoryThatALinkLeadsTo) {
  make_run("first");
  fs::rename(std::string(folder_ / "run"), std::string(folder_ / "disk"));
  fs::create_directory_symlink(std::string(folder_ / "disk"), std::string(folder_ / "run"));

  const OwnedRun run = take(fresh());

  EXPECT_TRUE(fs::is_symlink(std::string(folder_ / "run")));
  EXPECT_EQ(text_of(folder_ / "disk.1/run.json"), "first");
}

TEST_F(RunStart, LeavesCopiesToTheProgramThatKnowsThem) {
  make_run("first");
  OwnedRun::take(folder_ / "run", {.copies = std::nullopt, .how = fresh("monday")});
  EXPECT_TRUE(fs::exists(folder_ / "copies/savepoint-0000000010.h5"));

  put_copies_aside(folder_ / "run", {folder_ / "copies"});
  EXPECT_EQ(text_of(folder_ / "copies.1/savepoint-0000000010.h5"), "first");

  make_run("second");
  put_copies_aside(folder_ / "run", {folder_ / "copies"});
  EXPECT_EQ(text_of(folder_ / "copies/savepoint-0000000010.h5"), "second");
  EXPECT_EQ(take(fresh("monday")).directory(), folder_ / "run");
  EXPECT_FALSE(fs::exists(folder_ / "run.2"));
}

// A link that leads nowhere was taken for a free name, and the start was refused.
TEST_F(RunStart, PutsCopiesUnderANameThatNoLinkHas) {
  make_run("first");
  OwnedRun::take(folder_ / "run", {.copies = std::nullopt, .how = fresh("monday")});
  fs::create_symlink("nowhere", std::string(folder_ / "copies.1"));

  put_copies_aside(folder_ / "run", {folder_ / "copies"});

  EXPECT_EQ(text_of(folder_ / "copies.2/savepoint-0000000010.h5"), "first");
}

// It was taken for an empty one, so that its run would have been begun anew without being put aside.
TEST_F(RunStart, RefusesAFolderThatCannotBeRead) {
  fs::create_symlink("copies", std::string(folder_ / "copies"));

  EXPECT_THAT(sentence_thrown_by([&] { take(fresh()); }), HasSubstr("cannot look up " + (folder_ / "copies")));
  EXPECT_THROW(holds_savepoints(folder_ / "copies"), Error);
  EXPECT_FALSE(holds_savepoints(folder_ / "nowhere"));
}

// Another program puts its run aside between two looks at the folder.
TEST_F(RunStart, FindsNoSavepointInAFolderThatIsRenamedMeanwhile) {
  make_run("first");
  const auto files = watched_file_system(posix_file_system(), [&](const FileOperation& operation) {
    if (operation.name == "list") fs::rename(operation.path, operation.path + ".1");
  });

  EXPECT_FALSE(holds_savepoints(folder_ / "copies", *files));
}

// Each further number was tried, a million of them, and the sentence told of too many earlier runs.
TEST_F(RunStart, SaysThatANameForTheEarlierRunCannotBeLookedUp) {
  const std::string longest = folder_ / std::string(254, 'r');
  write(longest + "/run.json", "first");

  EXPECT_THAT(sentence_thrown_by([&] { OwnedRun::take(longest, {.copies = std::nullopt, .how = fresh()}); }),
              HasSubstr("cannot look up " + longest + ".1: File name too long; move it away yourself"));
}

TEST_F(RunStart, NamesADamagedRecord) {
  make_run("first");
  write(folder_ / "run/start.json", "{");

  EXPECT_THROW(take(fresh("monday")), Error);
}

// A program with several runs, which start anew together.
TEST_F(RunStart, RemembersAFreshStartUntilTheProgramHasEnded) {
  make_run("first");
  AskedStart how = fresh("monday");
  how.has_later_runs = true;
  take(how);
  const std::string run = folder_ / "run";

  EXPECT_EQ(interrupted_fresh_start(run), "monday");
  end_fresh_start(run);
  EXPECT_EQ(interrupted_fresh_start(run), "");
  EXPECT_EQ(interrupted_fresh_start(folder_ / "nowhere"), "");
  EXPECT_FALSE(fs::exists(run + ".2"));
  take(how);
  EXPECT_FALSE(fs::exists(run + ".2")) << "the token is that of the run still";
}

// A job that a scheduler starts again would have put the new run aside.
TEST_F(RunStart, KeepsTheTokenOfARunThatGivesWay) {
  make_run("first");
  take(fresh("monday")).give_way();
  ASSERT_TRUE(fs::exists(folder_ / "run.2"));

  take(fresh("monday"));

  EXPECT_FALSE(fs::exists(folder_ / "run.3"));
}

TEST_F(RunStart, MakesUniqueTokens) {
  EXPECT_NE(new_token(), new_token());
}

TEST_F(RunStart, LetsARunGiveWayThatFailedBeforeAnyResult) {
  const auto may_give_way = [&](const std::vector<nlohmann::json>& lines) {
    fs::remove_all(std::string(folder_ / "run"));
    const OwnedRun run = take();
    write_journal(folder_ / "run", lines);
    return run.may_give_way();
  };

  EXPECT_TRUE(may_give_way({kStarted, kFailed}));
  EXPECT_TRUE(may_give_way({kStarted, kFailed, kStarted, kFailed}));

  EXPECT_FALSE(may_give_way({}));
  EXPECT_FALSE(may_give_way({kStarted, {{"event", "savepoint"}}, kFailed}));
  EXPECT_FALSE(may_give_way({kStarted, {{"event", "first_epoch_finished"}}, kFailed}));
  // Killed, or stopped, at any time.
  EXPECT_FALSE(may_give_way({kStarted}));
  EXPECT_FALSE(may_give_way({kStarted, kStopped}));
  EXPECT_FALSE(may_give_way({kStarted, kStopped, kStarted, kFailed}));
  EXPECT_FALSE(may_give_way({kStarted, kStarted, kFailed}));
}

}  // namespace holdfast::recovery
