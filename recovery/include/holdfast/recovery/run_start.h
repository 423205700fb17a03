#pragma once

// How a run begins: it resumes the run that its directory holds, or starts anew. A fresh start loses nothing. The
// earlier run is put aside under the first free name of DIRECTORY.1, DIRECTORY.2 and so on, and the folders with copies
// of its savepoints get the same number.
//
//   OwnedRun run = OwnedRun::take("run", {.copies = {{"/mnt/copies"}}, .how = start_asked_for({})});
//   run_watchdog(std::move(run), [&] { return options; });

#include <optional>
#include <string>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/shared_memory.h"
#include "holdfast/base/start.h"
#include "holdfast/recovery/asked_start.h"

namespace holdfast::recovery {

// The environment variable that says how to start: resume, fresh or fresh:TOKEN.
inline constexpr const char* kStartVariable = "HOLDFAST_START";

// What the options `start` and `token` ask for. Where `start` is empty, what HOLDFAST_START asks for. A fresh start
// without a token takes the job of the cluster as its token: SLURM_JOB_ID of Slurm, and in Kubernetes the name of the
// pod without the suffix that the job's controller adds. Throws Error{invalid_argument} for another value of the
// variable, and for a token without Start::fresh.
AskedStart start_asked_for(const std::optional<Start>& start, const std::string& token = "");

// For a program that begins several runs anew: the token of a fresh start that was interrupted before the last of them.
// `run_directory` is that of the program's first run. Empty where no fresh start was interrupted.
std::string interrupted_fresh_start(const std::string& run_directory);
// Records that the program has begun all its runs. They are no longer part of an interrupted fresh start.
void end_fresh_start(const std::string& run_directory);
// A random token that no other start has.
std::string new_token();

// Thrown when the run in a directory was started with other choices (options, model or data) than this program has. It
// is the only failure after which run_watchdog() may start anew.
class OtherChoices : public Error {
 public:
  // The sentence says which choices differ, and what to do.
  explicit OtherChoices(const std::string& sentence) : Error(ErrorCode::incompatible, sentence) {}
};

// Whether the folder holds a run, also one without a savepoint yet. Other files alone are not a run. Throws Error for a
// folder that cannot be read.
bool holds_run(const std::string& directory);
// Whether the folder has a savepoint under its name; neither what writers left nor what was set aside counts. Throws
// Error for a folder that cannot be read. A folder that another process removes or renames meanwhile has none.
bool holds_savepoints(const std::string& folder, FileSystem& files = posix_file_system());
// The token on which the run in the folder was begun anew; empty if there was none. Throws Error{invalid_file} where
// its record is damaged.
std::string token_of_run(const std::string& directory);

struct StartRecord;

// Holds the lock of a run directory, and knows how its run began.
class OwnedRun {
 public:
  // How a directory is taken.
  struct Options {
    // Folders with copies of savepoints, which are put aside with the run. Without a value, only the program knows
    // them, and calls put_copies_aside().
    std::optional<std::vector<std::string>> copies{};
    AskedStart how{};  // see AskedStart
  };

  // Creates the directory when it is missing, locks it, and puts its run aside where that is asked for. Throws
  // Error{already_running} as lock_run_directory() does, and Error{refused} when a directory cannot be put aside. Then
  // nothing has changed.
  static OwnedRun take(const std::string& directory, const Options& options);

  const std::string& directory() const { return directory_; }  // of the run, as it was given
  // Held until this object is destroyed; processes that inherit it hold it too.
  const FileDescriptor& lock() const { return lock_; }

  // Whether the run in the directory may give way to a run of other choices. It may when it ended by a failure of its
  // own, before the end of its first epoch and before the first savepoint that was asked for. A run that was stopped or
  // killed may not.
  bool may_give_way() const;
  // Where take() has put an earlier run; empty where there was none.
  const std::string& put_aside_as() const { return put_aside_as_; }
  // Puts the run aside and locks the directory, which is then empty, for a run of the same occasion. Returns the new
  // name of the earlier run. Throws as take().
  std::string give_way();

 private:
  OwnedRun(std::string directory, Options options, FileDescriptor lock);
  std::string put_aside(StartRecord record);

  std::string directory_;
  Options options_;
  FileDescriptor lock_;
  std::string put_aside_as_{};
};

// Puts the folders with copies aside, where the watchdog put a run aside without knowing them. Otherwise, and the
// second time, it does nothing. The program's rank 0 calls it before any process looks for savepoints. Throws as
// OwnedRun::take().
void put_copies_aside(const std::string& run_directory, const std::vector<std::string>& copies);

}  // namespace holdfast::recovery
