#pragma once

// The run's diary, one JSON object a line. Each line is one write(2), so that a line is torn only when the machine
// stops or the disk fills; a reader skips such lines, and the line after a torn one is whole.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "holdfast/base/shared_memory.h"
#include "holdfast/recovery/worker.h"

namespace holdfast::recovery {

// To the microsecond: recoveries are timed by the journal.
double unix_seconds_now();

template <class Value>
nlohmann::json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

nlohmann::json to_json(const Restart& restart);
Restart restart_from_json(const nlohmann::json& json);

// What a run may have thousands of is counted; the journal itself remembers each.
struct RestartCounts {
  std::int64_t all = 0;
  std::map<int, std::int64_t> by_rank{};

  void add(const Restart& restart);
};

// What earlier watchdogs of the same run left.
struct Past {
  RestartCounts restarts{};
  int last_generation = -1;
  // Whether an epoch ended, or a savepoint was made while the run trained.
  bool has_results = false;
  // Whether every watchdog so far ended the run because it failed by itself: nobody stopped or killed it.
  bool has_failed_by_itself = false;
};

std::string journal_path(const std::string& run_directory);
// Events that tell of a result, of all that workers report.
bool tells_of_result(const nlohmann::json& event_name);
// Both find nothing when there is no journal yet, and may be called while a watchdog writes to it. They skip lines that
// Holdfast does not write, with a warning for JSON objects. They throw Error where the journal is not a file.
Past read_past(const std::string& journal_path);
std::vector<Restart> read_restarts(const std::string& journal_path);  // oldest first

class Journal {
 public:
  // Throws Error naming the path; also where it is a symbolic link, or anything else than a file.
  explicit Journal(const std::string& path);

  // Adds "time". A line that cannot be written is lost with a warning: a full disk must not end the training.
  void append(nlohmann::json line);
  void append_restart(const Restart& restart);
  // The last line of a watchdog that was not killed.
  void append_run_end(int exit_code, bool failed_by_itself);

 private:
  // What was written of `text`.
  std::size_t write(const std::string& text);

  std::string path_;
  FileDescriptor file_;
  bool is_torn_ = false;  // it ends in the middle of a line
};

}  // namespace holdfast::recovery
