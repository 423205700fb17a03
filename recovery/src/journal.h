#pragma once

// The run's diary, one JSON object a line. Each line is one write(2), so that a line is torn only when the machine
// stops or the disk fills; a reader skips such lines.

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

// What an earlier watchdog of the same run left.
struct Past {
  std::vector<Restart> restarts;
  int last_generation = -1;
};
// Nothing, when there is no journal yet.
Past read_past(const std::string& journal_path);

class Journal {
 public:
  // Throws Error naming the path.
  explicit Journal(const std::string& path);

  // Adds "time". A line that cannot be written is lost with a warning: a full disk must not end the training.
  void append(nlohmann::json line);
  void append_restart(const Restart& restart);

 private:
  std::string path_;
  FileDescriptor file_;
};

}  // namespace holdfast::recovery
