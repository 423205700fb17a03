#pragma once

// Shows the watchdog what the thread that writes savepoints is doing. Threads that compress make several file
// operations at once. The oldest one that has not ended is shown, so that one that hangs is seen although others go on.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "holdfast/base/file_system.h"
#include "train/context/replica_context.h"

namespace holdfast {

// Any thread.
class SavingWatch : public std::enable_shared_from_this<SavingWatch> {
 public:
  explicit SavingWatch(std::shared_ptr<Supervision> supervision) : supervision_(std::move(supervision)) {}

  // Called by one thread at a time, which works on savepoints until leave(). A further call means that other work has
  // begun.
  void enter(BackgroundWork work);
  void leave();

  // A file system that passes everything on to `target`, which must outlive it. Operations between enter() and leave()
  // are shown.
  std::unique_ptr<FileSystem> over(FileSystem& target);

 private:
  struct Operation {
    std::uint64_t number = 0;
    BackgroundWork work;
  };

  void begin(const FileOperation& operation);
  void end(const FileOperation& operation);

  // These are called with mutex_ held.
  std::uint64_t bytes_of(const FileOperation& operation);
  void show();

  const std::shared_ptr<Supervision> supervision_;

  std::mutex mutex_;
  // guarded by mutex_
  std::optional<BackgroundWork> work_;
  std::map<std::thread::id, Operation> operations_;      // that have not ended
  std::map<std::string, std::uint64_t> unsynced_bytes_;  // by path, of what was written since work_ began
  std::uint64_t begun_operations_ = 0;
  std::uint64_t shown_operation_ = 0;  // 0: work_ itself, or nothing
};

// The context's file system, observed by its saving_watch. It lives as long as the context.
FileSystem& watched_files(Replica::Context& context);

}  // namespace holdfast
