// Restarts are in the journal and nowhere else: a watchdog that kept them in memory grew with each death. A run
// directory may come from anywhere, so each number is checked, and a line that Holdfast did not write is skipped. See
// docs/decisions/journal.md.

#include "journal/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cmath>
#include <fstream>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/base/regular_file.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/base/whole_number.h"

namespace holdfast::recovery {
namespace {

constexpr const char* kRunEndedEvent = "run_ended";
// The key of a Restart. No other line has it, since workers report under "details".
constexpr const char* kRestartEntry = "restart";

// A file that cannot be read counts as whole. A torn line then costs the next one, and nothing else.
bool ends_in_the_middle_of_a_line(int file) {
  const off_t bytes = ::lseek(file, 0, SEEK_END);
  char last = '\n';
  return bytes > 0 && ::pread(file, &last, 1, bytes - 1) == 1 && last != '\n';
}

double seconds_of(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

constexpr std::size_t kLongestQuote = 40;  // characters of a line in a warning
// Each generation has a line, so no run gets this far. The number of the next generation must not overflow.
constexpr std::int64_t kLastGeneration = 1'000'000'000;

Error unexpected(const std::string& what) {
  return Error(ErrorCode::invalid_file, what);
}

std::int64_t whole_number_of(const nlohmann::json& object, const char* name, std::int64_t lowest,
                             std::int64_t highest) {
  if (!object.contains(name)) throw unexpected(fmt::format("it has no \"{}\"", name));
  // Through its text: 2.0 and 1e3 are numbers that Holdfast does not write.
  const std::string text = object.at(name).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  const auto number = whole_number<std::int64_t>(text);
  if (number && *number >= lowest && *number <= highest) return *number;
  throw unexpected(fmt::format("its \"{}\" is {}, not a whole number from {} to {}", name,
                               shown_text(text, kLongestQuote), lowest, highest));
}

int generation_of(const nlohmann::json& line) {
  return static_cast<int>(whole_number_of(line, "generation", -1, kLastGeneration));
}

// Calls take(line) for each line that is a JSON object.
template <typename Take>
void read_lines(const std::string& journal_path, const Take& take) {
  if (::access(journal_path.c_str(), F_OK) != 0 && errno == ENOENT) return;
  // Only a check: the stream below opens the file again, and on a FIFO it would wait for a writer without end.
  open_regular_file(journal_path, O_RDONLY, fmt::format("read the journal {}", journal_path));
  std::ifstream file(journal_path);
  std::int64_t number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    // Torn lines are passed over without a word: each killed watchdog may leave one.
    const nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
    if (!line.is_object()) continue;
    const auto skip = [&](const std::string& why) {
      log(LogLevel::warning,
          fmt::format("skipped line {} of {}, which Holdfast did not write: {}", number, journal_path, why));
    };
    try {
      take(line);
    } catch (const Error& error) {
      skip(error.what());
    } catch (const nlohmann::json::exception&) {
      skip("its entry of a restart lacks a member, or has one of another type");
    }
  }
}

}  // namespace

double unix_seconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::microseconds>(now).count()) / 1'000'000;
}

nlohmann::json to_json(const Restart& restart) {
  return {{"generation", restart.generation},
          {"rank", restart.rank},
          {"cause", restart.cause},
          {"detected", restart.detected_unix_seconds},
          {"step", restart.step}};
}

Restart restart_from_json(const nlohmann::json& json) {
  return {.generation = generation_of(json),
          .rank = static_cast<int>(whole_number_of(json, "rank", -1, INT_MAX)),
          .cause = json.at("cause").get<std::string>(),
          .detected_unix_seconds = json.at("detected").get<double>(),
          .step = whole_number_of(json, "step", -1, INT64_MAX)};
}

void RestartCounts::add(const Restart& restart) {
  ++all;
  ++by_rank[restart.rank];
}

bool tells_of_result(const nlohmann::json& event_name) {
  return event_name == "first_epoch_finished" || event_name == "fit_finished" || event_name == "savepoint";
}

std::string journal_path(const std::string& run_directory) {
  return run_directory + "/journal.jsonl";
}

// A watchdog that was killed wrote no end of its run: another one starts, or the journal ends.
Past read_past(const std::string& journal_path) {
  Past past;
  bool was_stopped_or_killed = false;
  bool is_under_way = false;
  read_lines(journal_path, [&](const nlohmann::json& line) {
    if (line.contains("generation")) past.last_generation = std::max(past.last_generation, generation_of(line));
    if (line.contains(kRestartEntry)) past.restarts.add(restart_from_json(line.at(kRestartEntry)));
    const nlohmann::json event = line.value("event", nlohmann::json());
    if (tells_of_result(event)) past.has_results = true;
    if (event == "watchdog_started") {
      was_stopped_or_killed = was_stopped_or_killed || is_under_way;
      is_under_way = true;
    } else if (event == kRunEndedEvent) {
      is_under_way = false;
      past.has_failed_by_itself = true;
      if (!line.value("failed_by_itself", false)) was_stopped_or_killed = true;
    }
  });
  if (was_stopped_or_killed || is_under_way) past.has_failed_by_itself = false;
  return past;
}

std::vector<Restart> read_restarts(const std::string& journal_path) {
  std::vector<Restart> restarts;
  read_lines(journal_path, [&](const nlohmann::json& line) {
    if (line.contains(kRestartEntry)) restarts.push_back(restart_from_json(line.at(kRestartEntry)));
  });
  return restarts;
}

JournalFile::JournalFile(const std::string& path)
    : path_(path),
      // Without O_NOFOLLOW, a link in a run directory from elsewhere could lead to any file of the user.
      file_(
          open_regular_file(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, fmt::format("open the journal {}", path))),
      // The watchdog before this one may have been killed, or its disk full, in the middle of a line.
      is_torn_(ends_in_the_middle_of_a_line(file_.value())) {}

void JournalFile::append(std::string text) {
  // Without the newline, this line would become part of the torn one, and unreadable, too.
  if (is_torn_) text.insert(0, "\n");
  const std::size_t written = write(text);
  // Kept before another call changes it.
  const int error_number = errno;
  if (written > 0) is_torn_ = text[written - 1] != '\n';
  if (written < text.size()) {
    const std::string why =
        written > 0 ? "only a part was written; is the disk full?" : system_error(error_number, "cannot write").what();
    log(LogLevel::warning, fmt::format("a line of the journal {} is lost: {}", path_, why));
  }
  ++appended_;
}

// One call for a whole line. So a process that is killed leaves either all of it or nothing.
std::size_t JournalFile::write(const std::string& text) {
  const ssize_t written = TEMP_FAILURE_RETRY(::write(file_.value(), text.data(), text.size()));
  return written < 0 ? 0 : static_cast<std::size_t>(written);
}

Journal::Journal(const std::string& path, FolderThread* thread, const Limits& limits)
    : thread_(thread), limits_(limits), file_(std::make_shared<JournalFile>(path)) {}

Journal::~Journal() {
  // Two waits: a user who ends a run learns after the first one what the command still waits for.
  if (thread_ == nullptr || thread_->wait(Deadline::after(limits_.silent_end))) return;
  const std::string& path = file_->path();
  log(LogLevel::info, fmt::format("the last lines of the journal {} wait for its file system, which does not answer; "
                                  "waits for at most {} s more",
                                  path, seconds_of(limits_.end)));
  if (thread_->wait(Deadline::after(limits_.end))) return;
  log(LogLevel::warning,
      fmt::format("the last {} lines of the journal {} are lost, because its file system has not answered for {} s; "
                  "`holdfast report` does not know how the run ended",
                  waiting_lines(), path, seconds_of(limits_.silent_end + limits_.end)));
}

void Journal::append(nlohmann::json line) {
  write(std::move(line), limits_.waiting_bytes);
}

void Journal::write(nlohmann::json line, std::size_t most_waiting_bytes) {
  line["time"] = unix_seconds_now();
  std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (thread_ == nullptr) return file_->append(std::move(text));
  const std::size_t bytes = text.size();
  if (thread_->bytes() + bytes > most_waiting_bytes) {
    if (lost_++ > 0) return;
    return log(
        LogLevel::warning,
        fmt::format("lines of the journal {} are lost: its file system does not answer, and {} lines wait for it",
                    file_->path(), waiting_lines()));
  }
  if (lost_ > 0) log(LogLevel::warning, fmt::format("{} lines of the journal {} were lost", lost_, file_->path()));
  lost_ = 0;
  ++given_;
  thread_->add([file = file_, text = std::move(text)] { file->append(text); }, bytes);
}

void Journal::append_run_end(int exit_code, bool failed_by_itself) {
  // There is room for it in any case, since nothing follows.
  write({{"event", kRunEndedEvent}, {"exit_code", exit_code}, {"failed_by_itself", failed_by_itself}},
        std::numeric_limits<std::size_t>::max());
}

void Journal::append_restart(const Restart& restart) {
  append({{"event", "restart"},
          {"generation", restart.generation},
          {"rank", restart.rank},
          {kRestartEntry, to_json(restart)}});
  // Waits a moment, since a restart that is not on disk is not counted by the next watchdog. While the folder does not
  // answer, no restart waits for it again.
  if (thread_ == nullptr || (is_late_ && waiting_lines() > 1)) return;
  is_late_ = !thread_->wait(Deadline::after(limits_.for_a_restart));
  if (!is_late_) return;
  log(LogLevel::warning,
      fmt::format("the file system of the journal {} does not answer; the run goes on, and writes it later",
                  file_->path()));
}

}  // namespace holdfast::recovery
