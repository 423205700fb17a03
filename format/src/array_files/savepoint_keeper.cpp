// A savepoint is read back before an older one is deleted, which costs as much as a load. The bytes mostly
// come from the page cache, so this finds errors of our code and of memory. Against errors of the disk
// there are the copies. See docs/decisions/savepoints.md.

#include "holdfast/format/savepoint_keeper.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/whole_file.h"
#include "holdfast/format/array_file.h"

namespace holdfast::format {
SavepointKeeper::SavepointKeeper(FileSystem& files, std::string folder, KeeperOptions options)
    : files_(files), folder_(std::move(folder)), options_(std::move(options)) {
  check(options_.retention);
}

void SavepointKeeper::keep(const std::string& name) {
  // A run that went back writes the same name again: what is remembered about it concerns another file.
  forget(path_in_folder(folder_, name));
  verify(folder_, name);
  // A copy that fails costs only that copy. The savepoint itself was read back above.
  for (const std::string& folder : options_.copies) {
    try {
      copy(name, folder);
      verify(folder, name);
      prune(folder);
    } catch (const Error& failure) {
      report({.path = path_in_folder(folder, name), .why = failure.what()});
    }
  }
  prune(folder_);
}

std::vector<std::string> SavepointKeeper::prune() {
  return prune(folder_);
}

void SavepointKeeper::read_back(const std::string& folder, const std::string& name) {
  const std::string path = path_in_folder(folder, name);
  const Digest digest = verify_savepoint(files_, path, {.threads = options_.threads});
  // A copy that is whole but has other content would be found as a savepoint of this run.
  const auto original = whole_.find(path_in_folder(folder_, name));
  if (original != whole_.end() && original->second != digest) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("{} is not a copy of {}: their digests differ", path, original->first));
  }
  whole_[path] = digest;
}

// A damaged file is set aside at once, so that no start of the run takes it.
void SavepointKeeper::verify(const std::string& folder, const std::string& name) {
  const std::string path = path_in_folder(folder, name);
  try {
    read_back(folder, name);
  } catch (const Error& failure) {
    if (failure.code() == ErrorCode::invalid_file) set_aside_and_report(path, failure.what());
    throw;
  }
}

void SavepointKeeper::set_aside_and_report(const std::string& path, const std::string& why) {
  forget(path);
  Problem problem{.path = path, .why = why};
  try {
    if (!options_.is_trial) problem.set_aside_as = set_aside(files_, path, why);
  } catch (const Error& failure) {
    problem.why += fmt::format("; setting it aside failed: {}", failure.what());
    // Storage on which that fails may have lost more.
    may_delete_ = false;
  }
  report(problem);
}

// Bytes are copied as they are: encoding them again would cost time and could change them.
void SavepointKeeper::copy(const std::string& name, const std::string& folder) {
  constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
  forget(path_in_folder(folder, name));
  files_.create_folders(folder);
  const std::unique_ptr<File> source = files_.open_for_reading(path_in_folder(folder_, name));
  write_whole_file(files_, path_in_folder(folder, name), [&](File& target) {
    std::vector<std::byte> piece(kPieceBytes);
    for (std::uint64_t offset = 0;;) {
      const std::size_t bytes = source->read_at(offset, piece);
      if (bytes == 0) break;
      target.write_at(offset, std::span(piece).first(bytes));
      // The disk then writes while the next piece is read.
      target.start_write_back(offset, bytes);
      offset += bytes;
    }
  });
}

void SavepointKeeper::forget(const std::string& path) {
  whole_.erase(path);
  metrics_.erase(path);
  unreadable_.erase(path);
}

// Calls `look`, which may find that the file is damaged or was deleted. A damaged one is set aside.
bool SavepointKeeper::is_there_and_sound(const std::string& path, const std::function<void()>& look) {
  std::string damage;
  try {
    look();
    return true;
  } catch (const Error& failure) {
    if (failure.code() == ErrorCode::not_found) return false;
    if (failure.code() != ErrorCode::invalid_file) throw;
    damage = failure.what();
  }
  set_aside_and_report(path, damage);
  return false;
}

// An error of the disk may pass. So the file stays, and neither counts for the policy nor costs the savepoint that was
// just written.
bool SavepointKeeper::can_be_read(const std::string& path, const std::function<void()>& look) {
  try {
    return is_there_and_sound(path, look);
  } catch (const Error& failure) {
    const std::string why = fmt::format("{}; it stays, and others are kept in its place", failure.what());
    if (unreadable_.insert(path).second) report({.path = path, .why = why});
    return false;
  }
}

// Removes damaged entries from the end of `entries` until the newest one is whole.
void SavepointKeeper::find_newest_whole(const std::string& folder, std::vector<SavepointEntry>& entries) {
  while (!entries.empty()) {
    SavepointEntry& newest = entries.back();
    const std::string path = path_in_folder(folder, newest.name);
    newest.is_whole = whole_.contains(path) || is_there_and_sound(path, [&] { read_back(folder, newest.name); });
    if (newest.is_whole) return;
    entries.pop_back();
  }
}

// Removes entries until the newest `keep_last` can be opened, for they are to be of use. Each is opened once.
// That finds a file that was cut off or written over, at the cost of its header and index. To read back all of them
// would take the time of as many loads, after each start.
void SavepointKeeper::find_last(const std::string& folder, std::vector<SavepointEntry>& entries) {
  const std::int64_t wanted = options_.retention.keep_last;
  std::int64_t found = 0;
  for (auto entry = entries.end(); found < wanted && std::ssize(entries) > wanted && entry != entries.begin();) {
    --entry;
    const std::string path = path_in_folder(folder, entry->name);
    if (entry->is_whole || whole_.contains(path) || can_be_read(path, [&] { metric(path); })) {
      ++found;
    } else {
      entry = entries.erase(entry);
    }
  }
}

void SavepointKeeper::find_metrics(const std::string& folder, std::vector<SavepointEntry>& entries) {
  std::erase_if(entries, [&](SavepointEntry& entry) {
    const std::string path = path_in_folder(folder, entry.name);
    return !can_be_read(path, [&] { entry.metric = metric(path); });
  });
}

// Metrics are remembered, because each prune() would otherwise open all files again.
std::optional<double> SavepointKeeper::metric(const std::string& path) {
  const auto known = metrics_.find(path);
  if (known != metrics_.end()) return known->second;
  return metrics_[path] = metric_of(ArrayFile::open(files_, path).metadata(), options_.best_by);
}

std::vector<std::string> SavepointKeeper::prune(const std::string& folder) {
  may_delete_ = true;
  std::vector<SavepointEntry> entries = list_savepoints(files_, folder);
  find_newest_whole(folder, entries);
  find_last(folder, entries);
  if (options_.retention.keep_best > 0) find_metrics(folder, entries);
  if (!may_delete_) return {};
  std::vector<std::string> names = savepoints_to_delete(entries, options_.retention);
  if (options_.is_trial) return names;
  for (const std::string& name : names) {
    files_.remove(path_in_folder(folder, name));
    forget(path_in_folder(folder, name));
  }
  // One sync for all. A power cut before it brings deleted files back, which does no harm.
  if (!names.empty()) files_.sync_folder(folder);
  return names;
}

void SavepointKeeper::report(const Problem& problem) const {
  if (options_.report) options_.report(problem);
}

}  // namespace holdfast::format
