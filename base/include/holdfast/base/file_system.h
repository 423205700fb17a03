#pragma once

// Every file operation of Holdfast that must survive faults goes through this interface. So tests can
// make any operation fail, cut the power, or keep all files in memory.
//
// All functions throw Error{disk_full, not_found, refused or input_output} that names the path. Interrupted and short
// system calls are continued inside. Implementations, and each File too, may be used from several threads at once.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace holdfast {

// An open file. The destructor closes it and reports nothing: call sync() first where durability matters.
//
// The first write, write-back or sync that fails marks the file as dead: all later ones throw, and
// nothing is tried again. Linux reports a failed write-back once and then treats the lost pages as
// clean, so a second fsync would succeed although the bytes are nowhere. Write another file instead.
class File {
 public:
  virtual ~File() = default;

  // Writes all of `bytes`; the file grows as needed. Writes to ranges that do not overlap may run at the same time.
  virtual void write_at(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  // Returns how many bytes were read: fewer than asked for only at the end of the file.
  virtual std::size_t read_at(std::uint64_t offset, std::span<std::byte> bytes) = 0;
  // Reads what follows `offset` into several places, one after the other, if possible with one system call. Returns
  // how many bytes were read, as read_at() does. By default it calls read_at() for each place.
  virtual std::size_t scatter_at(std::uint64_t offset, std::span<const std::span<std::byte>> places);
  virtual std::uint64_t size_bytes() = 0;  // of the whole file at this moment
  // A hint that the disk may start with these bytes, which were written, so that sync() has less to do. It promises
  // nothing and does not wait for the disk. Throws only when the disk has failed or is full.
  virtual void start_write_back(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) {}
  // A hint that these bytes will be read soon. It cannot fail.
  virtual void start_reading(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) {}
  // A hint that the file will be read from one end to the other: the system then reads further ahead. It cannot fail.
  virtual void expect_reads_in_order() {}
  // Blocks until the file's content is on stable storage (fsync). No deadline: a disk that hangs is
  // noticed by the watchdog.
  virtual void sync() = 0;
};

// Paths are those of the operating system; a relative one starts at the working directory.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Creates an empty file for writing. Fails when the name exists already.
  virtual std::unique_ptr<File> create(const std::string& path) = 0;
  // Refuses what is not a regular file: a FIFO would block the reader.
  virtual std::unique_ptr<File> open_for_reading(const std::string& path) = 0;
  // Opens a file that exists, to write parts of it while other writers do the same.
  virtual std::unique_ptr<File> open_for_writing(const std::string& path) = 0;
  // Replaces `to`, if it exists, in one step: a reader finds the old file or the new one.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  // Removes a file. The removal is durable after sync_folder().
  virtual void remove(const std::string& path) = 0;
  // Blocks until earlier renames and removals in the folder are durable.
  virtual void sync_folder(const std::string& path) = 0;
  // The names (not paths) of the folder's entries, sorted, without "." and "..".
  virtual std::vector<std::string> list(const std::string& path) = 0;
  // Whether a file or a folder has this path.
  virtual bool exists(const std::string& path) = 0;
  // Creates the folder and all missing parents, durably. Does nothing when it exists already.
  virtual void create_folders(const std::string& path) = 0;
};

// The operating system's files. The object has no state and is never destroyed.
FileSystem& posix_file_system();

// One operation, as a watched file system reports it.
struct FileOperation {
  std::string name;        // "create", "open", "open_for_writing", "write", "read", "read_ahead", "write_back", "sync",
                           // "rename", "remove", "sync_folder", "list", "exists", "create_folders"
  std::string path;        // of the file or folder; the old path of a rename
  std::string new_path{};  // of a rename
  std::uint64_t offset = 0;              // of a write or read, from the start of the file
  std::size_t bytes = 0;                 // that are to be written or read
  std::span<const std::byte> content{};  // of a write; valid during the call
};

// A file system that passes everything to `target`, and calls `before` ahead of each operation. A
// `before` that throws makes the operation fail with that error; one that only takes notes records.
//
//   const auto full = watched_file_system(posix_file_system(), [](const FileOperation& operation) {
//     if (operation.name == "sync") throw system_error(ENOSPC, "cannot sync " + operation.path);
//   });
//
// A file is dead after such an error, as after a real one. `before` is called on the thread of the
// operation, by several threads at once where several work. `target` must outlive the result.
std::unique_ptr<FileSystem> watched_file_system(FileSystem& target, std::function<void(const FileOperation&)> before);

// "folder/name".
std::string path_in_folder(const std::string& folder, const std::string& name);

// The folder that `path` lies in; "." when it names none.
std::string parent_folder(const std::string& path);

}  // namespace holdfast
