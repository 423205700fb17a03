#include "train/supervise/fenced_file_system.h"

#include <utility>

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast {

// What is written under a temporary name does no harm, so writes go on. A savepoint appears by its rename alone.
std::unique_ptr<FileSystem> fenced_file_system(std::unique_ptr<FileSystem> target, std::function<bool()> may_change) {
  // Kept by the function that is called before each operation, and so as long as the file system that calls it.
  const std::shared_ptr<FileSystem> kept = std::move(target);
  return watched_file_system(*kept, [kept, may_change = std::move(may_change)](const FileOperation& operation) {
    const bool is_rename = operation.name == "rename";
    if ((!is_rename && operation.name != "remove") || may_change()) return;
    throw Error(ErrorCode::input_output,
                fmt::format("{} was not {}: this host has lost the run's head, and the other hosts may have gone on",
                            operation.path, is_rename ? fmt::format("renamed to {}", operation.new_path) : "removed"));
  });
}

}  // namespace holdfast
