#pragma once

// What a disk may contain after a power cut. The model gets the operations of a program, one by one. At any moment it
// draws what could be found on the disk if the power failed then.
//
// It is as hostile as file systems are allowed to be. Written bytes are safe once their file was synced. Until then,
// each sector of each write may or may not be on the disk, in any order. A file may have its new length, with zeros or
// garbage in it. A create, rename or remove is safe once its folder was synced; syncing a file does not save its
// name. Until then, a file system with a journal keeps the first few of these operations. Another one keeps any of
// them, in order only if they concern the same name or file. A rename may leave both names.

#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "holdfast/base/file_system.h"
#include "support/disks/memory_file_system.h"

namespace holdfast {

struct DiskOperation {
  FileOperation operation;         // its `content` is not valid
  std::vector<std::byte> content;  // of a write
};

// Passes everything on to `target` and records, in order, the operations that change the disk.
class OperationRecorder {
 public:
  explicit OperationRecorder(FileSystem& target);

  FileSystem& files() { return *files_; }
  std::vector<DiskOperation> operations() const;
  // How many operations there are so far.
  std::size_t count() const;

 private:
  mutable std::mutex mutex_;
  std::vector<DiskOperation> operations_;  // guarded by mutex_
  std::unique_ptr<FileSystem> files_;
};

// One thread at a time.
class CrashDisk {
 public:
  enum class Names { all_kept, none_kept, first_kept, any_kept };
  enum class Data { all_kept, none_kept, first_kept, any_kept };
  struct Loss {
    Names names;
    Data data;
    bool keeps_length = false;    // a file that grew keeps its length even if its last bytes are lost
    bool leaves_rubbish = false;  // bytes that are lost inside a file become random instead of zero
  };
  using Random = std::mt19937_64;

  // A disk on which `contents` are safe.
  explicit CrashDisk(const FileContents& contents);

  void apply(const DiskOperation& done);

  // The files that are found if the power fails now. The same state of `random` gives the same files.
  FileContents after_power_cut(const Loss& loss, Random& random) const;
  // The same with a loss that is drawn too.
  FileContents after_power_cut(Random& random) const;

 private:
  struct Write {
    std::uint64_t offset;
    std::vector<std::byte> content;
  };
  struct DiskFile {
    std::vector<std::byte> safe;
    std::vector<Write> unsafe;
  };
  struct NameChange {
    std::string from;  // empty: the file is new
    std::string to;    // empty: the file is removed
    std::size_t file;
  };
  using FileNames = std::map<std::string, std::size_t>;

  static void change(FileNames& names, const NameChange& change, bool keeps_both = false);
  FileNames names_after(Names loss, Random& random) const;
  std::vector<std::byte> bytes_after(const DiskFile& file, const Loss& loss, Random& random) const;
  void change_name(const NameChange& change);
  void sync_folder(const std::string& folder);

  std::vector<DiskFile> files_;
  FileNames opened_;  // by the path under which they were created
  FileNames current_names_;
  FileNames safe_names_;
  std::vector<NameChange> unsafe_changes_;
};

}  // namespace holdfast
