#pragma once

// What the owner of a run's savepoints does after it has written one: read it back, copy it to other
// disks, and delete old ones. An old savepoint is deleted only after a newer one of its folder was read
// back and found whole: a save that went wrong must never cost the last good state.
//
//   SavepointKeeper keeper(posix_file_system(), "run",
//                          {.copies = {"/mnt/backup/run"}, .retention = {.keep_last = 3}});
//   write_array_file(posix_file_system(), "run/" + savepoint_name(step), metadata, arrays);
//   keeper.keep(savepoint_name(step));

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/base/file_system.h"
#include "holdfast/format/catalogue.h"
#include "holdfast/format/retention.h"

namespace holdfast::format {

// Where copies go, and which savepoints stay.
struct KeeperOptions {
  std::vector<std::string> copies{};  // further folders, created when they are missing
  RetentionPolicy retention{};        // applied to each folder separately
  std::string best_by{};              // the metric that retention.keep_best compares
  int threads = 0;                    // that read savepoints back, as ReadOptions::threads
  ProblemReport report{};             // called for copies that failed, and for files that are damaged or cannot be read
  bool is_trial = false;              // prune() only returns what it would delete, and changes nothing
};

// Remembers what it has read, so each file is read once. One thread at a time. `files` must outlive it.
class SavepointKeeper {
 public:
  // `folder` is where the savepoints are written. Throws Error{invalid_argument} for a policy that check()
  // refuses.
  SavepointKeeper(FileSystem& files, std::string folder, KeeperOptions options);

  // To be called when `name` is durable in the folder. Reads it back, copies it into the other folders,
  // reads the copies back, and deletes what the policy does not keep. Blocks for all of that.
  //
  // A copy that fails is reported, and nothing in its folder is deleted. When the savepoint itself reads
  // back damaged, it is set aside, nothing is deleted, and Error{invalid_file} is thrown.
  void keep(const std::string& name);

  // Finds the newest whole savepoint of the folder, deletes what the policy does not keep, and returns
  // the names. Damaged savepoints that it meets are set aside and reported; where that fails, nothing is
  // deleted. The newest keep_last are opened once, and with keep_best all. One that cannot be read, say
  // for an error of the disk, is reported once. It stays, and does not count for the policy.
  //
  // Throws Error where the folder or its newest savepoint cannot be read, or a file cannot be deleted.
  std::vector<std::string> prune();

 private:
  // Reads a file back. verify() also sets it aside when it is damaged; both throw.
  void verify(const std::string& folder, const std::string& name);
  void read_back(const std::string& folder, const std::string& name);
  // An atomic write of a second file with the same bytes.
  void copy(const std::string& name, const std::string& folder);
  void forget(const std::string& path);
  // All remove from `entries` what turns out to be damaged or deleted, and the last two what cannot be read.
  void find_newest_whole(const std::string& folder, std::vector<SavepointEntry>& entries);
  void find_last(const std::string& folder, std::vector<SavepointEntry>& entries);
  void find_metrics(const std::string& folder, std::vector<SavepointEntry>& entries);
  std::optional<double> metric(const std::string& path);
  bool can_be_read(const std::string& path, const std::function<void()>& look);
  bool is_there_and_sound(const std::string& path, const std::function<void()>& look);
  void set_aside_and_report(const std::string& path, const std::string& why);
  std::vector<std::string> prune(const std::string& folder);
  void report(const Problem& problem) const;

  FileSystem& files_;
  const std::string folder_;
  const KeeperOptions options_;
  std::map<std::string, Digest> whole_;                   // file digests by path, of the files that were read back
  std::map<std::string, std::optional<double>> metrics_;  // by path
  std::set<std::string> unreadable_;                      // paths that were reported
  bool may_delete_ = true;                                // in the folder that is being pruned
};

}  // namespace holdfast::format
