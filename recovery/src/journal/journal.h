#pragma once

// The journal of a run: one JSON object a line, for everything that the watchdog sees and decides. Each line is one
// write(2), so a line is torn only when the machine stops or the disk fills. Readers skip torn lines, and the line
// after a torn one is whole. The head of a run over several hosts writes by a thread of its own.
// docs/decisions/journal.md

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "holdfast/base/shared_memory.h"
#include "holdfast/recovery/restart.h"
#include "journal/folder_thread.h"

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

// The file of a journal, for one thread at a time.
class JournalFile {
 public:
  // Throws Error with the path, also when it is a symbolic link or anything else that is not a regular file.
  explicit JournalFile(const std::string& path);

  // A line that cannot be written is lost, with a warning: a full disk must not end the training.
  void append(std::string text);
  const std::string& path() const { return path_; }
  // How often append() has returned. Any thread.
  std::int64_t appended() const { return appended_; }

 private:
  // Returns how many bytes of `text` were written.
  std::size_t write(const std::string& text);

  const std::string path_;
  FileDescriptor file_;
  bool is_torn_ = false;  // the file ends in the middle of a line
  std::atomic<std::int64_t> appended_ = 0;
};

class Journal {
 public:
  // For a journal that is written by a FolderThread.
  struct Limits {
    std::size_t waiting_bytes = std::size_t{16} << 20;       // of lines that are not written; further ones are lost
    std::chrono::milliseconds for_a_restart{1000};           // that append_restart() may block
    std::chrono::milliseconds silent_end{5000};              // that ~Journal() may block without a word
    std::chrono::milliseconds end{std::chrono::minutes(2)};  // and after it has said so
  };

  // `thread`: writes the lines, in their order, and outlives the journal; null: each call writes its line before it
  // returns. Throws as JournalFile().
  explicit Journal(const std::string& path, FolderThread* thread = nullptr) : Journal(path, thread, Limits{}) {}
  Journal(const std::string& path, FolderThread* thread, const Limits& limits);
  // Blocks until all lines are written, at most for the limits of the end. Lines that are lost then get a warning.
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Adds "time". A line that cannot be written is lost, with a warning.
  void append(nlohmann::json line);
  // Replicas read it once their next generation has opened, so this waits for a thread that writes. While the file
  // system does not answer, only the first of several waits.
  void append_restart(const Restart& restart);
  // The last line that a watchdog writes, unless it is killed.
  void append_run_end(int exit_code, bool failed_by_itself);

 private:
  void write(nlohmann::json line, std::size_t most_waiting_bytes);
  std::int64_t waiting_lines() const { return given_ - file_->appended(); }

  FolderThread* const thread_;
  const Limits limits_;
  const std::shared_ptr<JournalFile> file_;  // shared with tasks of the thread
  std::int64_t given_ = 0;                   // lines for the thread
  std::int64_t lost_ = 0;                    // lines since the last one that was given to it
  bool is_late_ = false;                     // a restart was not written in time, nor all lines since
};

}  // namespace holdfast::recovery
