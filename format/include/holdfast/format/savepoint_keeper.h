#pragma once

// What the owner of a run's savepoints does behind each one that it has written: read it back, copy it to other disks,
// and let old ones go. An old savepoint goes only after a newer one of its folder was read back and found whole.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/base/file_system.h"
#include "holdfast/format/catalogue.h"
#include "holdfast/format/retention.h"

namespace holdfast::format {

struct KeeperOptions {
  std::vector<std::string> copies{};  // folders, made when they are missing
  RetentionPolicy retention{};        // in each folder by itself
  std::string best_by{};              // the metric that retention.keep_best means
  int threads = 0;                    // that read savepoints back, as ReadOptions::threads
  ProblemReport report{};             // of copies that could not be made, and of files set aside
  bool is_trial = false;              // of prune(): only says what it would delete, and sets nothing aside
};

// Remembers what it read, so that each file is looked into once. Not for several threads at once.
class SavepointKeeper {
 public:
  // Throws Error{invalid_argument} for a policy that check() refuses.
  SavepointKeeper(FileSystem& files, std::string folder, KeeperOptions options);

  // `name` is durable in the folder: reads it back, copies it into the other folders, reads the copies back, and
  // deletes what the policy gives up. A copy that fails is reported, and its folder left as it is. Throws
  // Error{invalid_file} when the savepoint itself reads back as anything but whole: it is set aside then, and nothing
  // is deleted.
  void keep(const std::string& name);

  // Deletes what the policy gives up in the folder, behind the newest savepoint that reads as whole. Returns the names.
  std::vector<std::string> prune();

 private:
  void verify(const std::string& folder, const std::string& name);
  void read_back(const std::string& folder, const std::string& name);
  void copy(const std::string& name, const std::string& folder);
  void forget(const std::string& path);
  void find_newest_whole(const std::string& folder, std::vector<SavepointEntry>& entries);
  void find_metrics(const std::string& folder, std::vector<SavepointEntry>& entries);
  std::optional<double> metric(const std::string& path);
  bool is_there_and_sound(const std::string& path, const std::function<void()>& look);
  void set_aside_and_report(const std::string& path, const std::string& why);
  std::vector<std::string> prune(const std::string& folder);
  void report(const Problem& problem) const;

  FileSystem& files_;
  const std::string folder_;
  const KeeperOptions options_;
  std::map<std::string, Digest> whole_;                   // file digests by path, of those that were read back
  std::map<std::string, std::optional<double>> metrics_;  // by path
};

}  // namespace holdfast::format
