// Keeps two versions of names and bytes: what is safe, and what was changed since the last sync. A power cut draws
// which of the changes survived. The rules are in crash_disk.h.

#include "support/disks/crash_disk.h"

#include <algorithm>
#include <set>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

constexpr std::size_t kSectorBytes = 512;

bool draw(CrashDisk::Random& random, double probability) {
  return std::bernoulli_distribution(probability)(random);
}

std::size_t draw_up_to(CrashDisk::Random& random, std::size_t most) {
  return std::uniform_int_distribution<std::size_t>(0, most)(random);
}

bool changes_the_disk(const std::string& name) {
  static const std::set<std::string> names = {"create", "write",  "write_back", "sync",
                                              "rename", "remove", "sync_folder"};
  return names.contains(name);
}

}  // namespace

OperationRecorder::OperationRecorder(FileSystem& target)
    : files_(watched_file_system(target, [this](const FileOperation& operation) {
        if (!changes_the_disk(operation.name)) return;
        const std::lock_guard lock(mutex_);
        operations_.push_back({operation, {operation.content.begin(), operation.content.end()}});
        operations_.back().operation.content = {};
      })) {}

std::vector<DiskOperation> OperationRecorder::operations() const {
  const std::lock_guard lock(mutex_);
  return operations_;
}

std::size_t OperationRecorder::count() const {
  const std::lock_guard lock(mutex_);
  return operations_.size();
}

CrashDisk::CrashDisk(const FileContents& contents) {
  for (const auto& [path, bytes] : contents) {
    safe_names_[path] = files_.size();
    files_.push_back({.safe = bytes, .unsafe = {}});
  }
  current_names_ = safe_names_;
}

void CrashDisk::apply(const DiskOperation& done) {
  const FileOperation& operation = done.operation;
  if (operation.name == "create") {
    opened_[operation.path] = files_.size();
    change_name({.from = "", .to = operation.path, .file = files_.size()});
    files_.emplace_back();
  } else if (operation.name == "write") {
    files_[opened_.at(operation.path)].unsafe.push_back({operation.offset, done.content});
  } else if (operation.name == "sync") {
    DiskFile& file = files_[opened_.at(operation.path)];
    Random unused;
    file.safe = bytes_after(file, {.names = Names::all_kept, .data = Data::all_kept}, unused);
    file.unsafe.clear();
  } else if (operation.name == "rename") {
    change_name({.from = operation.path, .to = operation.new_path, .file = current_names_.at(operation.path)});
  } else if (operation.name == "remove") {
    change_name({.from = operation.path, .to = "", .file = current_names_.at(operation.path)});
  } else if (operation.name == "sync_folder") {
    sync_folder(operation.path);
  }
}

void CrashDisk::change(FileNames& names, const NameChange& change, bool keeps_both) {
  if (!change.from.empty() && !keeps_both) names.erase(change.from);
  if (!change.to.empty()) names[change.to] = change.file;
}

void CrashDisk::change_name(const NameChange& done) {
  change(current_names_, done);
  unsafe_changes_.push_back(done);
}

void CrashDisk::sync_folder(const std::string& folder) {
  std::erase_if(unsafe_changes_, [&](const NameChange& done) {
    if (parent_folder(done.from.empty() ? done.to : done.from) != folder) return false;
    change(safe_names_, done);
    return true;
  });
}

CrashDisk::FileNames CrashDisk::names_after(Names loss, Random& random) const {
  if (loss == Names::all_kept) return current_names_;
  FileNames names = safe_names_;
  if (loss == Names::none_kept) return names;
  if (loss == Names::first_kept) {
    const std::size_t kept = draw_up_to(random, unsafe_changes_.size());
    for (std::size_t i = 0; i < kept; ++i) change(names, unsafe_changes_[i]);
    return names;
  }
  // A change of the same name or file as a lost change is lost too.
  std::set<std::string> lost_names;
  std::set<std::size_t> lost_files;
  for (const NameChange& done : unsafe_changes_) {
    const bool depends =
        lost_names.contains(done.from) || lost_names.contains(done.to) || lost_files.contains(done.file);
    if (depends || draw(random, 0.5)) {
      for (const std::string& name : {done.from, done.to}) {
        if (!name.empty()) lost_names.insert(name);
      }
      lost_files.insert(done.file);
    } else {
      const bool is_rename = !done.from.empty() && !done.to.empty();
      change(names, done, is_rename && draw(random, 0.125));
    }
  }
  return names;
}

std::vector<std::byte> CrashDisk::bytes_after(const DiskFile& file, const Loss& loss, Random& random) const {
  std::vector<std::byte> bytes = file.safe;
  if (loss.data == Data::none_kept && !loss.keeps_length) return bytes;
  const auto filler = [&] { return loss.leaves_rubbish ? static_cast<std::byte>(random()) : std::byte{0}; };
  const auto grow = [&](std::size_t size) {
    const std::size_t old_size = bytes.size();
    if (size <= old_size) return;
    bytes.resize(size);
    std::generate(bytes.begin() + static_cast<std::ptrdiff_t>(old_size), bytes.end(), filler);
  };
  const double kept_part = std::uniform_real_distribution<double>(0.05, 0.95)(random);
  std::size_t all_sectors = 0;
  for (const Write& write : file.unsafe) all_sectors += write.content.size() / kSectorBytes + 2;
  const std::size_t first_lost = draw_up_to(random, all_sectors);
  std::size_t sector = 0;
  const auto is_kept = [&] {
    if (loss.data == Data::none_kept) return false;
    if (loss.data == Data::first_kept) return sector < first_lost;
    return loss.data == Data::all_kept || draw(random, kept_part);
  };
  for (const Write& write : file.unsafe) {
    for (std::size_t begin = 0; begin < write.content.size(); ++sector) {
      const std::size_t place = write.offset + begin;
      const std::size_t count = std::min(kSectorBytes - place % kSectorBytes, write.content.size() - begin);
      if (loss.keeps_length) grow(write.offset + write.content.size());
      if (is_kept()) {
        grow(place + count);
        std::copy_n(write.content.begin() + static_cast<std::ptrdiff_t>(begin), count,
                    bytes.begin() + static_cast<std::ptrdiff_t>(place));
      }
      begin += count;
    }
  }
  return bytes;
}

FileContents CrashDisk::after_power_cut(const Loss& loss, Random& random) const {
  FileContents contents;
  for (const auto& [path, file] : names_after(loss.names, random)) {
    contents[path] = bytes_after(files_[file], loss, random);
  }
  return contents;
}

FileContents CrashDisk::after_power_cut(Random& random) const {
  const Loss loss{.names = static_cast<Names>(draw_up_to(random, 3)),
                  .data = static_cast<Data>(draw_up_to(random, 3)),
                  .keeps_length = draw(random, 0.5),
                  .leaves_rubbish = draw(random, 0.5)};
  return after_power_cut(loss, random);
}

}  // namespace holdfast
