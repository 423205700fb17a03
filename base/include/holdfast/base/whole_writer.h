#pragma once

// A file that stands under its name whole or not at all: written under a temporary name beside it (temporary_files.h),
// brought to stable storage, and renamed. For content that fits one call, whole_file.h has functions that do it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "holdfast/base/file_system.h"

namespace holdfast {

// Not for several threads at once.
class WholeWriter {
 public:
  // Creates the temporary file. `files` must outlive the writer.
  WholeWriter(FileSystem& files, std::string path);
  // Without commit(): removes the temporary file, if that is possible, and whatever stood at the path is untouched.
  ~WholeWriter();
  WholeWriter(const WholeWriter&) = delete;
  WholeWriter& operator=(const WholeWriter&) = delete;

  const std::string& path() const { return path_; }
  // The file's name until commit().
  const std::string& temporary() const { return temporary_; }
  // The bytes that append() wrote so far.
  std::uint64_t appended_bytes() const { return appended_bytes_; }

  // For writers that know their own places. Null after commit().
  File* file() const { return file_.get(); }
  void append(std::span<const std::byte> bytes);
  // Anywhere, for what is known only later; does not move the end that append() writes at.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);

  // fsync, rename, fsync of the folder: durable on return. Only if the last of the three fails does the whole file
  // stand at its path already. Nothing may be written afterwards.
  void commit();

 private:
  FileSystem& files_;
  std::string path_;
  std::string temporary_;
  std::unique_ptr<File> file_;
  std::uint64_t appended_bytes_ = 0;
  bool is_renamed_ = false;
};

}  // namespace holdfast
