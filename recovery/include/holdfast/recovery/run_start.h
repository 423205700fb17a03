#pragma once

// How a run begins: it goes on with the run that its directory holds, or starts anew. A fresh start loses nothing. The
// earlier run is put aside under the first free name of DIRECTORY.1, DIRECTORY.2 and so on, and the folders of its
// savepoints' copies get the same number.
//
//   OwnedRun run = OwnedRun::take("run", {.copies = {"/mnt/copies"}, .how = start_asked_for({})});
//   run_watchdog(options, std::move(run));

#include <optional>
#include <string>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/base/shared_memory.h"
#include "holdfast/base/start.h"

namespace holdfast::recovery {

using holdfast::Start;

// "HOLDFAST_START": resume, fresh or fresh:TOKEN.
inline constexpr const char* kStartVariable = "HOLDFAST_START";

struct AskedStart {
  Start start = Start::resume;
  // Names the occasion. A start with the token of the directory's run goes on with that run: it is the same occasion,
  // as when a scheduler starts a job again. Empty: each start is another occasion.
  std::string token{};
  std::string asked_by{};  // for sentences; empty where nobody asked for anything
  // The program may begin other runs on the same occasion: until end_fresh_start() the directory's record says that it
  // was interrupted. Needs a token.
  bool has_later_runs = false;
  // A later run of such a program: that it goes on needs no line in the log.
  bool is_later_run = false;
};

// What an option (`start` and `token`) asks for or, where it is empty, the environment: HOLDFAST_START. Where a fresh
// start has no token of its own, the job of the cluster is one: SLURM_JOB_ID of Slurm, and in Kubernetes the name of
// the pod without what the job's controller adds to it. Throws Error{invalid_argument} for another value of the
// variable, and for a token without Start::fresh.
AskedStart start_asked_for(const std::optional<Start>& start, const std::string& token = "");

// For a program that has begun several runs anew, and was interrupted: the token of the fresh start, for the runs that
// it has not got to. `run_directory` is that of its first run. Empty where no fresh start was interrupted.
std::string interrupted_fresh_start(const std::string& run_directory);
// The program has got through all its runs.
void end_fresh_start(const std::string& run_directory);
// A token that no other start has.
std::string new_token();

// Thrown where the run in a directory was started with other choices (options, model or data) than this program has:
// the only failure after which run_watchdog() may start anew.
class OtherChoices : public Error {
 public:
  explicit OtherChoices(const std::string& sentence) : Error(ErrorCode::incompatible, sentence) {}
};

struct StartRecord;

// The lock of a run directory, and what its run is.
class OwnedRun {
 public:
  struct Options {
    // Folders of savepoints' copies, which are put aside with the run. Empty where only the program knows them; it then
    // calls put_copies_aside().
    std::optional<std::vector<std::string>> copies{};
    AskedStart how{};
  };

  // Creates the directory when missing, locks it, and puts its run aside where that is asked for. Throws Error:
  // already_running as lock_run_directory() does; refused where a directory cannot be put aside, in which case nothing
  // has changed.
  static OwnedRun take(const std::string& directory, const Options& options);

  const std::string& directory() const { return directory_; }
  const FileDescriptor& lock() const { return lock_; }

  // Whether the run in the directory may give way to one of other choices: it ended by a failure of its own before its
  // first epoch's end and before its first savepoint that was asked for. One that was stopped or killed may not.
  bool may_give_way() const;
  // Puts the run aside, and owns the directory, empty, again, on the occasion on which that run had begun. Returns the
  // directory's other name. Throws as take().
  std::string give_way();

 private:
  OwnedRun(std::string directory, Options options, FileDescriptor lock);
  std::string put_aside(StartRecord record);

  std::string directory_;
  Options options_;
  FileDescriptor lock_;
};

// For the program's rank 0, before anybody looks for savepoints. Where the watchdog put a run aside without knowing the
// folders of its copies, puts these aside too. Does nothing otherwise, or a second time. Throws as OwnedRun::take().
void put_copies_aside(const std::string& run_directory, const std::vector<std::string>& copies);

}  // namespace holdfast::recovery
