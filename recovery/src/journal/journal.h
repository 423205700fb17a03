#pragma once

// The journal of a run: one JSON object a line, for everything that the watchdog sees and decides. Each line is one
// write(2), so a line is torn only when the machine stops or the disk fills. Readers skip torn lines, and the line
// after a torn one is whole.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "holdfast/base/shared_memory.h"
#include "holdfast/recovery/worker.h"

namespace holdfast::recovery {

// Precise to the microsecond, since recoveries are timed by the journal.
double unix_seconds_now();

template <class Value>
nlohmann::json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

// For members, ranks and indices, which are -1 where there is none.
inline nlohmann::json number_or_null(int number) {
  return number < 0 ? nlohmann::json(nullptr) : nlohmann::json(number);
}

nlohmann::json to_json(const Restart& restart);
Restart restart_from_json(const nlohmann::json& json);

// A run may have thousands of restarts, so the watchdog only counts them. The journal has each one.
struct RestartCounts {
  std::int64_t all = 0;
  std::map<int, std::int64_t> by_rank{};

  void add(const Restart& restart);
};

// What the journal says about earlier watchdogs of the same run.
struct Past {
  RestartCounts restarts{};
  int last_generation = -1;
  // Whether an epoch ended, a fit() finished, or a savepoint became durable.
  bool has_results = false;
  // Whether each watchdog so far ended because the run failed by itself. False if one was stopped or killed.
  bool has_failed_by_itself = false;
};

std::string journal_path(const std::string& run_directory);
// Whether an event that a worker reported is such a result.
bool tells_of_result(const nlohmann::json& event_name);
// Both return nothing when there is no journal yet, and may be called while a watchdog writes to it. They skip lines
// that Holdfast did not write, with a warning for JSON objects. They throw Error when the journal is not a regular
// file.
Past read_past(const std::string& journal_path);
std::vector<Restart> read_restarts(const std::string& journal_path);  // oldest first

class Journal {
 public:
  // Throws Error with the path, also when it is a symbolic link or anything else that is not a regular file.
  explicit Journal(const std::string& path);

  // Adds "time". A line that cannot be written is lost, with a warning: a full disk must not end the training.
  void append(nlohmann::json line);
  void append_restart(const Restart& restart);
  // The last line that a watchdog writes, unless it is killed.
  void append_run_end(int exit_code, bool failed_by_itself);

 private:
  // Returns how many bytes of `text` were written.
  std::size_t write(const std::string& text);

  std::string path_;
  FileDescriptor file_;
  bool is_torn_ = false;  // the file ends in the middle of a line
};

}  // namespace holdfast::recovery
