// Each operation is known by its thread, which makes one operation at a time. Why the oldest one is shown:
// docs/decisions/hangs.md, "A writer that hangs is seen by the watchdog, and costs its process".

#include "train/saving/saving_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "holdfast/base/watched_file_system.h"

namespace holdfast {
namespace {

// The words are those of system calls and their man pages, so that a user can compare them with what tools of the
// system show.
std::string describe_operation(const FileOperation& operation) {
  if (operation.name == "rename") return fmt::format("rename of {} to {}", operation.path, operation.new_path);
  if (operation.name == "sync") return fmt::format("fsync of {}", operation.path);
  if (operation.name == "sync_folder") return fmt::format("fsync of the folder {}", operation.path);
  return fmt::format("{} of {}", operation.name, operation.path);
}

}  // namespace

void SavingWatch::enter(BackgroundWork work) {
  const std::lock_guard lock(mutex_);
  work_ = std::move(work);
  show();
}

void SavingWatch::leave() {
  const std::lock_guard lock(mutex_);
  work_.reset();
  // A file that was closed without a sync leaves its count.
  unsynced_bytes_.clear();
  show();
}

std::unique_ptr<FileSystem> SavingWatch::over(FileSystem& target) {
  return watched_file_system(
      target, [self = shared_from_this()](const FileOperation& operation) { self->begin(operation); },
      [self = shared_from_this()](const FileOperation& operation) { self->end(operation); });
}

void SavingWatch::begin(const FileOperation& operation) {
  const std::lock_guard lock(mutex_);
  // Operations of other work, such as a callback's, are not the writer's.
  if (!work_) return;
  operations_[std::this_thread::get_id()] = {
      .number = ++begun_operations_, .work = {.what = describe_operation(operation), .bytes = bytes_of(operation)}};
  // An older operation that is still shown stays.
  if (shown_operation_ == 0) show();
}

void SavingWatch::end(const FileOperation&) {
  const std::lock_guard lock(mutex_);
  const auto ended = operations_.find(std::this_thread::get_id());
  if (ended == operations_.end()) return;
  const bool was_shown = ended->second.number == shown_operation_;
  operations_.erase(ended);
  if (was_shown) show();
}

std::uint64_t SavingWatch::bytes_of(const FileOperation& operation) {
  // A sync takes as long as the writes before it need to reach the disk.
  if (operation.name == "sync") {
    const auto written = unsynced_bytes_.find(operation.path);
    return written == unsynced_bytes_.end() ? 0 : std::exchange(written->second, 0);
  }
  if (operation.name == "write") unsynced_bytes_[operation.path] += operation.bytes;
  return operation.bytes;
}

void SavingWatch::show() {
  const auto oldest = std::min_element(operations_.begin(), operations_.end(),
                                       [](const auto& a, const auto& b) { return a.second.number < b.second.number; });
  if (oldest != operations_.end()) {
    shown_operation_ = oldest->second.number;
    return supervision_->enter_background(oldest->second.work);
  }
  shown_operation_ = 0;
  if (work_) return supervision_->enter_background(*work_);
  supervision_->leave_background();
}

FileSystem& watched_files(Replica::Context& context) {
  if (!context.saving_watch) {
    context.saving_watch = std::make_shared<SavingWatch>(context.supervision);
    context.saving_files = context.saving_watch->over(*context.file_system);
  }
  return *context.saving_files;
}

}  // namespace holdfast
