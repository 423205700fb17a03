#pragma once

// A file system that contains one file under every name, and only lets it be read.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"

namespace holdfast::format::testing {

// One file in memory, for tests that open it hundreds of thousands of times.
class ReadOnlyFile : public File {
 public:
  explicit ReadOnlyFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  void write_at(std::uint64_t, std::span<const std::byte>) override {
    throw Error(ErrorCode::unsupported, "read only");
  }
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) override {
    const std::size_t begin = std::min<std::uint64_t>(offset, bytes_.size());
    const std::size_t count = std::min(out.size(), bytes_.size() - begin);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(begin), count, out.begin());
    return count;
  }
  std::uint64_t size_bytes() override { return bytes_.size(); }
  void sync() override {}

 private:
  std::span<const std::byte> bytes_;
};

class ReadOnlyFileSystem : public FileSystem {
 public:
  explicit ReadOnlyFileSystem(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::unique_ptr<File> open_for_reading(const std::string&) override { return std::make_unique<ReadOnlyFile>(bytes_); }
  std::unique_ptr<File> create(const std::string&) override { refuse(); }
  std::unique_ptr<File> open_for_writing(const std::string&) override { refuse(); }
  void rename(const std::string&, const std::string&) override { refuse(); }
  void remove(const std::string&) override { refuse(); }
  void sync_folder(const std::string&) override { refuse(); }
  std::vector<std::string> list(const std::string&) override { refuse(); }
  bool exists(const std::string&) override { refuse(); }
  void create_folders(const std::string&) override { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw Error(ErrorCode::unsupported, "read only"); }

  std::span<const std::byte> bytes_;
};

}  // namespace holdfast::format::testing
