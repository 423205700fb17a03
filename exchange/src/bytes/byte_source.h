#pragma once

// The bytes of a file that another program wrote, on disk or (for tests) in memory, and a cursor that never reads
// past the end of a part of them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bytes/little_endian_cursor.h"
#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/shown_text.h"

namespace holdfast::format {

// Throws Error{invalid_file, "PATH PROBLEM"}.
[[noreturn]] void refuse_file(const std::string& path, const std::string& problem);

// Throws Error{not_found} for an array that the file lacks, with the first names that it has.
[[noreturn]] void refuse_missing(const std::string& path, std::string_view array, std::vector<std::string> present);

// The advice in errors about files that need more memory than the caller allows.
inline constexpr const char* kAllowMoreMemory =
    "; allow more with --max-memory (AnyFileOptions::max_memory_bytes) if you trust the file";

// Throws Error{out_of_memory} for a file that needs `bytes` in memory at once where `most` are allowed.
[[noreturn]] void refuse_memory(const std::string& path, std::uint64_t bytes, std::uint64_t most);

// Throws Error{out_of_memory} for a file that the process cannot allocate memory for.
[[noreturn]] void report_out_of_memory(const std::string& path);

// Turns std::bad_alloc into an Error that names the file.
template <typename Action>
auto within_memory(const std::string& path, Action action) {
  try {
    return action();
  } catch (const std::bad_alloc&) {
    report_out_of_memory(path);
  }
}

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // The name of the file in errors.
  virtual const std::string& path() const = 0;
  virtual std::uint64_t size_bytes() const = 0;
  // Fills `out`. Throws Error{invalid_file} when the file ends too early.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) = 0;
};

class FileSource : public ByteSource {
 public:
  FileSource(FileSystem& files, std::string path);

  const std::string& path() const override { return path_; }
  std::uint64_t size_bytes() const override { return size_bytes_; }
  void read(std::uint64_t offset, std::span<std::byte> out) override;

 private:
  std::string path_;
  std::unique_ptr<File> file_;
  std::uint64_t size_bytes_;
};

// Does not own the bytes: they must outlive the object.
class MemorySource : public ByteSource {
 public:
  MemorySource(std::string path, std::span<const std::byte> bytes) : path_(std::move(path)), bytes_(bytes) {}

  const std::string& path() const override { return path_; }
  std::uint64_t size_bytes() const override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) override;

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
};

// Takes numbers and text from a part of a file.
class ByteCursor : public LittleEndianCursor {
 public:
  // Errors name `path` and `what` ("the directory of its members") when the bytes end too early. All three arguments
  // must outlive the cursor.
  ByteCursor(const std::string& path, std::string_view what, std::span<const std::byte> bytes)
      : LittleEndianCursor(bytes), path_(path), what_(what) {}

 private:
  [[noreturn]] void refuse_end() const override;

  const std::string& path_;
  std::string_view what_;
};

}  // namespace holdfast::format
