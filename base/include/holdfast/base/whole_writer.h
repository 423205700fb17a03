#pragma once

// The atomic write of a file, in several calls: its name holds the whole file or does not exist. The
// file is written under a temporary name in the same folder (temporary_files.h), brought to stable
// storage, and renamed. For content that is written in one call, whole_file.h is shorter.
//
//   WholeWriter writer(posix_file_system(), "run/weights.zip");
//   writer.append(header);
//   writer.append(content);
//   writer.commit();  // until here, "run/weights.zip" is what it was before

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
  // Creates the temporary file. `files` must outlive the writer. Throws what the file system throws.
  WholeWriter(FileSystem& files, std::string path);
  // Without commit(): removes the temporary file, if that is possible. The path still holds what it
  // held before.
  ~WholeWriter();
  WholeWriter(const WholeWriter&) = delete;
  WholeWriter& operator=(const WholeWriter&) = delete;

  const std::string& path() const { return path_; }  // the file's name after commit()
  // The file's name until commit().
  const std::string& temporary() const { return temporary_; }
  // How many bytes append() has written so far.
  std::uint64_t appended_bytes() const { return appended_bytes_; }

  // The open temporary file, for code that writes at offsets of its own. Null after commit().
  File* file() const { return file_.get(); }
  // Writes at the end of what append() wrote before.
  void append(std::span<const std::byte> bytes);
  // Writes anywhere, for a header that is known only later. Does not move the end that append() uses.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);

  // fsync, rename, fsync of the folder: the file is durable on return. If the last of the three fails,
  // the path holds the whole new file already; after any other failure it holds what it held before.
  // Nothing may be written afterwards.
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
