// A fresh start is bound to an occasion, its token. A scheduler that starts a preempted job again repeats its
// environment and its arguments. Without a token each preemption would put the training of the job aside.
// docs/decisions/runs.md

#include "holdfast/recovery/run_start.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "holdfast/base/log.h"
#include "holdfast/base/whole_file.h"
#include "holdfast/recovery/exit_codes.h"
#include "holdfast/recovery/run_lock.h"
#include "journal/journal.h"
#include "run_directory/folder_renames.h"

namespace holdfast::recovery {
namespace {

namespace fs = std::filesystem;

// For a watchdog that is about to end.
constexpr std::chrono::seconds kLockTimeout(2);
// For replicas of a watchdog that was killed.
constexpr std::chrono::seconds kTimeToDie(30);
constexpr std::string_view kFreshPrefix = "fresh:";
constexpr int kMostPutAside = 1'000'000;
constexpr std::size_t kPodSuffixLetters = 5;

// A variable without a value counts as one that is not set.
std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// "train-x7k2p" is a pod of the job "train". The suffix that the controller adds has only these letters and digits.
std::string without_pod_suffix(const std::string& pod) {
  const std::size_t dash = pod.rfind('-');
  if (dash == std::string::npos || dash == 0 || pod.size() - dash - 1 != kPodSuffixLetters) return pod;
  const bool is_suffix = pod.find_first_not_of("bcdfghjklmnpqrstvwxz2456789", dash + 1) == std::string::npos;
  return is_suffix ? pod.substr(0, dash) : pod;
}

std::string job_of_cluster() {
  const std::string slurm = environment("SLURM_JOB_ID");
  if (!slurm.empty()) return fmt::format("Slurm job {}", slurm);
  if (environment("KUBERNETES_SERVICE_HOST").empty() || environment("HOSTNAME").empty()) return "";
  // A job's pods get new suffixes when they are started again. Without the suffix they are one occasion.
  return fmt::format("Kubernetes job {}", without_pod_suffix(environment("HOSTNAME")));
}

AskedStart fresh_start(const std::string& token, const std::string& asked_by) {
  return {.start = Start::fresh, .token = token.empty() ? job_of_cluster() : token, .asked_by = asked_by};
}

std::string record_path(const std::string& directory) {
  return directory + "/start.json";
}

}  // namespace

namespace {

// Empty for a folder that is not there. One that cannot be read throws: taken for an empty one, its run would be begun
// anew.
std::vector<std::string> names_in(FileSystem& files, const std::string& folder) {
  if (!files.exists(folder)) return {};
  try {
    return files.list(folder);
  } catch (const Error& failure) {
    // Another process has renamed it a moment ago.
    if (failure.code() == ErrorCode::not_found) return {};
    throw;
  }
}

// Whether a name such as "savepoint-0000000004.h5" is there for which `is_meant` holds.
bool has_savepoint(FileSystem& files, const std::string& folder,
                   const std::function<bool(const std::string& name)>& is_meant) {
  const std::vector<std::string> names = names_in(files, folder);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name.starts_with("savepoint-") && is_meant(name); });
}

// Also one that is not whole, or was set aside: a run that is put aside takes it along.
bool holds_any_savepoint(const std::string& folder) {
  return has_savepoint(posix_file_system(), folder,
                       [](const std::string& name) { return name.find(".h5") != std::string::npos; });
}

}  // namespace

bool holds_savepoints(const std::string& folder, FileSystem& files) {
  return has_savepoint(files, folder, [](const std::string& name) { return name.ends_with(".h5"); });
}

// Each of these shows a run.
bool holds_run(const std::string& directory) {
  const auto holds = [&](const char* name) {
    return posix_file_system().exists(fmt::format("{}/{}", directory, name));
  };
  return holds("run.json") || holds("journal.jsonl") || holds("arithmetic.txt") || holds("start.json") ||
         holds_any_savepoint(directory);
}

// RUN_DIRECTORY/start.json of a run that was begun anew: what later watchdogs need to know about that start.
struct StartRecord {
  std::string token{};          // the occasion
  int copies_of = 0;            // number of the earlier run whose copies must still be put aside; 0: no run
  bool is_interrupted = false;  // the program may not have begun all its runs
};

namespace {

StartRecord read_record(const std::string& directory) {
  const std::string path = record_path(directory);
  if (!posix_file_system().exists(path)) return {};
  try {
    const nlohmann::json record = nlohmann::json::parse(read_text_file(posix_file_system(), path));
    return {.token = record.value("fresh", ""),
            .copies_of = record.value("copies_of", 0),
            .is_interrupted = record.value("interrupted", false)};
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("{}, which says on what occasion the run was begun anew, is damaged; remove it to start "
                            "anew once more, or set HOLDFAST_START=resume to go on",
                            path));
  }
}

void write_record(const std::string& directory, const StartRecord& record) {
  nlohmann::json object = nlohmann::json::object();
  if (!record.token.empty()) object["fresh"] = record.token;
  if (record.copies_of > 0) object["copies_of"] = record.copies_of;
  if (record.is_interrupted) object["interrupted"] = true;
  const std::string text = object.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  write_whole_file(posix_file_system(), record_path(directory), std::as_bytes(std::span(text)));
}

Error not_put_aside(const std::string& folder, const std::string& why_and_what_to_do) {
  return Error(ErrorCode::refused,
               fmt::format("the earlier run in {} cannot be put aside to start anew: {}", folder, why_and_what_to_do));
}

Error cannot_put_aside(const std::string& folder, const std::string& why) {
  return not_put_aside(folder, why + "; move it away yourself, or give another run directory");
}

// The folder's real path. A symbolic link to it stays, and leads to the new folder afterwards.
fs::path place_of_folder(const std::string& folder) {
  std::error_code error;
  fs::path path = fs::canonical(folder, error);
  if (error) throw cannot_put_aside(folder, error.message());
  return path;
}

// Compared part by part, since /data/run1 is not inside /data/run.
bool is_within(const fs::path& inner, const fs::path& outer) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

void require_not_in_use(const fs::path& folder) {
  std::error_code error;
  const fs::path current = fs::current_path(error);
  if (error || !is_within(current, folder)) return;
  throw cannot_put_aside(folder, "the program's working directory is inside it, so its relative paths would break");
}

fs::path numbered(const fs::path& folder, int number) {
  return fmt::format("{}.{}", folder.string(), number);
}

// A link that leads nowhere takes its name, too. A name that cannot be looked up is not taken for one in use: all later
// numbers would be tried.
bool is_free(const fs::path& folder, int number) {
  const fs::path path = numbered(folder, number);
  std::error_code error;
  const fs::file_type type = fs::symlink_status(path, error).type();
  if (type != fs::file_type::none) return type == fs::file_type::not_found;
  throw cannot_put_aside(folder, fmt::format("cannot look up {}: {}", path.string(), error.message()));
}

// Free for all of the folders, so that what belongs together has one number.
int first_free_number(const std::vector<fs::path>& folders) {
  for (int number = 1; number < kMostPutAside; ++number) {
    const auto has_room = [number](const fs::path& folder) { return is_free(folder, number); };
    if (std::all_of(folders.begin(), folders.end(), has_room)) return number;
  }
  throw cannot_put_aside(folders.front(), "too many earlier runs are kept next to it");
}

void put_under_number(const std::vector<fs::path>& folders, int number) {
  std::vector<FolderRename> renames;
  for (const fs::path& folder : folders) renames.push_back({.from = folder, .to = numbered(folder, number)});
  const RenameResult result = rename_all(renames);
  // One that could not get its name back is to be renamed first of all, and the sentence says so.
  if (!result.is_undone) throw not_put_aside(folders.front(), result.why);
  if (!result.why.empty()) throw cannot_put_aside(folders.front(), result.why);
  // Otherwise a power cut could undo the rename of one folder and not that of another.
  for (const fs::path& folder : folders) posix_file_system().sync_folder(parent_folder(folder));
}

}  // namespace

AskedStart start_asked_for(const std::optional<Start>& start, const std::string& token) {
  if (!token.empty() && start != Start::fresh) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a token \"{}\" names an occasion to start anew, and no fresh start was asked for", token));
  }
  const std::string value = environment(kStartVariable);
  const std::string asked_by = fmt::format("{}={}", kStartVariable, value);
  if (start && !value.empty()) {
    log(LogLevel::info, fmt::format("{} has no effect: the options say how to start", asked_by));
  }
  if (start == Start::fresh) return fresh_start(token, "the options");
  if (start == Start::resume) return {.start = Start::resume, .token = {}, .asked_by = "the options"};
  if (value.empty()) return {};
  if (value == "resume") return {.start = Start::resume, .token = {}, .asked_by = asked_by};
  if (value == "fresh") return fresh_start("", asked_by);
  if (value.starts_with(kFreshPrefix) && value.size() > kFreshPrefix.size()) {
    return fresh_start(value.substr(kFreshPrefix.size()), asked_by);
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the environment has {}, where resume, fresh or fresh:TOKEN is expected; correct or unset it",
                          asked_by));
}

std::string token_of_run(const std::string& directory) {
  return read_record(directory).token;
}

std::string interrupted_fresh_start(const std::string& run_directory) {
  const StartRecord record = read_record(run_directory);
  return record.is_interrupted ? record.token : "";
}

void end_fresh_start(const std::string& run_directory) {
  StartRecord record = read_record(run_directory);
  if (!record.is_interrupted) return;
  record.is_interrupted = false;
  write_record(run_directory, record);
}

// Random, so that two starts of one program are two occasions.
std::string new_token() {
  std::random_device device;
  return fmt::format("start-{:08x}{:08x}", device(), device());
}

OwnedRun::OwnedRun(std::string directory, Options options, FileDescriptor lock)
    : directory_(std::move(directory)), options_(std::move(options)), lock_(std::move(lock)) {}

OwnedRun OwnedRun::take(const std::string& directory, const Options& options) {
  OwnedRun run(directory, options,
               lock_run_directory(directory, Deadline::after(kLockTimeout), Deadline::after(kTimeToDie)));
  const AskedStart& how = options.how;
  const bool is_there = holds_run(directory);
  if (how.start == Start::resume) {
    if (!how.asked_by.empty()) {
      log(LogLevel::info, is_there ? fmt::format("{}: goes on with the run in {}", how.asked_by, directory)
                                   : fmt::format("{}: {} holds no run", how.asked_by, directory));
    }
    return run;
  }
  // The same occasion once more, such as a job that was preempted: its run goes on.
  if (is_there && !how.token.empty() && read_record(directory).token == how.token) {
    if (!how.is_later_run) {
      log(LogLevel::info,
          fmt::format("{}: the run in {} was begun anew by the same {}, so it goes on; another token, as in "
                      "{}=fresh:TOKEN, starts anew once more",
                      how.asked_by, directory,
                      how.token == job_of_cluster() ? how.token : fmt::format("token {}", how.token), kStartVariable));
    }
    return run;
  }
  const StartRecord record{.token = how.token, .is_interrupted = how.has_later_runs};
  const std::vector<std::string> copies = options.copies.value_or(std::vector<std::string>{});
  if (is_there || std::any_of(copies.begin(), copies.end(), holds_any_savepoint)) {
    run.put_aside_as_ = run.put_aside(record);
    log(LogLevel::info, fmt::format("{}: the earlier run in {} is kept as {}, and a new one starts", how.asked_by,
                                    directory, run.put_aside_as_));
    return run;
  }
  log(LogLevel::info, fmt::format("{}: {} holds no earlier run", how.asked_by, directory));
  if (!how.token.empty()) write_record(directory, record);
  return run;
}

// A run without results loses nothing, and one that was stopped or killed might still be resumed.
bool OwnedRun::may_give_way() const {
  const Past past = read_past(journal_path(directory_));
  return past.has_failed_by_itself && !past.has_results;
}

std::string OwnedRun::give_way() {
  return put_aside(read_record(directory_));
}

std::string OwnedRun::put_aside(StartRecord record) {
  std::vector<fs::path> folders = {place_of_folder(directory_)};
  for (const std::string& copy : options_.copies.value_or(std::vector<std::string>{})) {
    if (holds_any_savepoint(copy)) folders.push_back(place_of_folder(copy));
  }
  // All are checked before the first is renamed, so that a refusal changes nothing.
  for (const fs::path& folder : folders) require_not_in_use(folder);
  const int number = first_free_number(folders);
  put_under_number(folders, number);
  // Creates the folder that a link leads to. Through the link itself it cannot be created.
  posix_file_system().create_folders(folders.front());
  // The earlier run's lock is held until the new one is. So neither directory is ever without an owner.
  lock_ = lock_run_directory(directory_, Deadline::after(kLockTimeout));
  // Without known folders of copies, the run directory remembers that copies of the earlier run are still to be
  // moved.
  record.copies_of = options_.copies ? 0 : number;
  if (!record.token.empty() || record.copies_of > 0) write_record(directory_, record);
  return numbered(folders.front(), number);
}

// When a folder with this number exists, the next free number is taken, since no folder may be lost.
void put_copies_aside(const std::string& run_directory, const std::vector<std::string>& copies) {
  StartRecord record = read_record(run_directory);
  if (record.copies_of == 0) return;
  for (const std::string& copy : copies) {
    if (!holds_any_savepoint(copy)) continue;
    const fs::path folder = place_of_folder(copy);
    require_not_in_use(folder);
    const bool has_room = is_free(folder, record.copies_of);
    const int number = has_room ? record.copies_of : first_free_number({folder});
    put_under_number({folder}, number);
    log(LogLevel::info,
        fmt::format("copies of the earlier run's savepoints are kept as {}", numbered(folder, number).string()));
  }
  record.copies_of = 0;
  write_record(run_directory, record);
}

}  // namespace holdfast::recovery
