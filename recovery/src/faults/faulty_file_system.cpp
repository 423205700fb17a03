// Faults of savepoints strike in the file system and not in the code that saves, so that the writer under test is the
// one that runs without faults. docs/decisions/testing.md

#include "holdfast/recovery/faulty_file_system.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

constexpr std::string_view kSavepointPrefix = "savepoint-";

// The step of the savepoint that the file is, or is to become.
std::optional<std::int64_t> step_of(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (!name.starts_with(kSavepointPrefix)) return std::nullopt;
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(name.begin() + kSavepointPrefix.size(), name.end(), step);
  return error == std::errc{} ? std::optional(step) : std::nullopt;
}

// A file that is still being written has a further ending, and is not a savepoint yet.
bool is_savepoint(std::string_view path) {
  return step_of(path) && path.ends_with(".h5");
}

FileNeed need_of(std::string_view operation) {
  // A full disk may be noticed late: file systems that allocate when they write back report it at the sync.
  constexpr std::array<std::string_view, 6> kSpace{"create", "write", "write_back", "sync", "rename", "sync_folder"};
  return std::find(kSpace.begin(), kSpace.end(), operation) != kSpace.end() ? FileNeed::space : FileNeed::none;
}

// Follows one savepoint: created, written, synced, renamed, its folder synced, older ones removed.
class SavepointWatch {
 public:
  explicit SavepointWatch(const Faults& faults) : faults_(faults) {}

  void before(const FileOperation& operation) {
    if (!is_of_savepoint(operation)) return;
    // The operations that follow belong to the savepoint that was created last.
    if (operation.name == "create") step_ = *step_of(operation.path);
    const std::optional<FaultPhase> phase = phase_of(operation);
    const std::int64_t step = step_;
    if (phase) faults_.reach(*phase, step);
    if (const std::optional<int> error_number = faults_.file_failure(phase, step, need_of(operation.name))) {
      throw system_error(*error_number, fmt::format("injected: cannot {} {}", operation.name, operation.path));
    }
  }

 private:
  enum class Change { none, rename, removal };

  bool is_of_savepoint(const FileOperation& operation) const {
    // A sync of the folder counts only after a change of a savepoint in it.
    return operation.name == "sync_folder" ? last_change_ != Change::none : step_of(operation.path).has_value();
  }

  std::optional<FaultPhase> phase_of(const FileOperation& operation) {
    const std::string_view name = operation.name;
    if (name == "create" || name == "open_for_writing" || name == "write" || name == "write_back") {
      return FaultPhase::writing;
    }
    if (name == "sync") return FaultPhase::before_rename;
    // Other renames set a savepoint aside, or concern a file that a dead writer left.
    if (name == "rename" && is_savepoint(operation.new_path)) {
      last_change_ = Change::rename;
      return FaultPhase::before_rename;
    }
    if (name == "remove" && is_savepoint(operation.path)) {
      last_change_ = Change::removal;
      return FaultPhase::pruning;
    }
    // The sync makes the last change durable, a new name or a removal.
    if (name == "sync_folder") {
      return last_change_.exchange(Change::none) == Change::rename ? FaultPhase::after_rename : FaultPhase::pruning;
    }
    return std::nullopt;
  }

  const Faults& faults_;
  // Atomic, because files of a savepoint may be written by several threads.
  std::atomic<std::int64_t> step_ = -1;
  std::atomic<Change> last_change_ = Change::none;
};

}  // namespace

std::unique_ptr<FileSystem> faulty_file_system(FileSystem& target, const Faults& faults) {
  const auto watch = std::make_shared<SavepointWatch>(faults);
  return watched_file_system(target, [watch](const FileOperation& operation) { watch->before(operation); });
}

}  // namespace holdfast::recovery
