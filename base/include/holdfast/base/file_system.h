#pragma once

// Every file operation of Holdfast that must survive faults goes through this interface, so that tests can fail any of
// them. All functions throw Error{disk_full, not_found, refused or input_output} naming the path; interrupted and short
// system calls are continued inside. Implementations, and each File too, may be used from several threads at once.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace holdfast {

// Closed by the destructor, which reports nothing: call sync() first where durability matters.
//
// The first write, write-back or sync that fails marks the file dead: all later ones throw, and nothing is tried again.
// Linux reports a failed write-back once and then takes the lost pages for clean, so that a second fsync would succeed
// over bytes that are nowhere. Give such a file up and write another.
class File {
 public:
  virtual ~File() = default;

  // Writes at places that do not overlap may run at once.
  virtual void write_at(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  // Fewer bytes than asked for only at the end of the file.
  virtual std::size_t read_at(std::uint64_t offset, std::span<std::byte> bytes) = 0;
  virtual std::uint64_t size_bytes() = 0;
  // Asks that these bytes, which were written, start on their way to the disk, so that sync() finds less to do. A hint:
  // it promises nothing, does not wait for the disk, and does nothing where the system has no such thing. Throws only
  // when the disk has failed or is full.
  virtual void start_write_back(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) {}
  // Asks that these bytes, which are to be read soon, start on their way from the disk. A hint that cannot fail.
  virtual void start_reading(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) {}
  // Blocks until the file's content is on stable storage (fsync).
  virtual void sync() = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Fails when the file exists.
  virtual std::unique_ptr<File> create(const std::string& path) = 0;
  virtual std::unique_ptr<File> open_for_reading(const std::string& path) = 0;
  // A file that exists, to write parts of it beside other writers.
  virtual std::unique_ptr<File> open_for_writing(const std::string& path) = 0;
  // Replaces `to` in one step.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  virtual void remove(const std::string& path) = 0;
  // Makes renames and removals in the folder durable.
  virtual void sync_folder(const std::string& path) = 0;
  // Names (not paths) of the folder's entries, sorted.
  virtual std::vector<std::string> list(const std::string& path) = 0;
  virtual bool exists(const std::string& path) = 0;
  // With all missing parents, durably; no error when it is there already.
  virtual void create_folders(const std::string& path) = 0;
};

// The operating system's files. Stateless, lives for ever.
FileSystem& posix_file_system();

// Everything goes to `target`, but each operation first calls `before`, which may throw in its place: a fault-injecting
// and, with a function that only notes, a recording file system. A file whose write, write-back or sync was failed so
// is dead like any other. `before` is called on the thread of the operation, by several at once where several work;
// `target` must outlive what is returned.
struct FileOperation {
  std::string name;  // "create", "open", "open_for_writing", "write", "read", "write_back", "sync", "rename", "remove",
                     // "sync_folder", "list", "exists", "create_folders"
  std::string path;
  std::string new_path{};  // of a rename
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
  std::span<const std::byte> content{};  // of a write; valid during the call
};
std::unique_ptr<FileSystem> watched_file_system(FileSystem& target, std::function<void(const FileOperation&)> before);

// "folder/name".
std::string path_in_folder(const std::string& folder, const std::string& name);

// The folder that `path` lies in; "." when it names none.
std::string parent_folder(const std::string& path);

}  // namespace holdfast
