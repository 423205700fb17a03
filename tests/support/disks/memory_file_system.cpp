// Fails with the errors that the operating system would give, so that code under test takes the same paths.

#include "support/disks/memory_file_system.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast {

class MemoryFileSystem::OpenFile : public File {
 public:
  OpenFile(std::shared_ptr<Content> content, bool is_writable)
      : content_(std::move(content)), is_writable_(is_writable) {}

  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    if (!is_writable_) throw system_error(EBADF, "cannot write a file that was opened for reading");
    const std::lock_guard lock(content_->mutex);
    if (content_->bytes.size() < offset + bytes.size()) content_->bytes.resize(offset + bytes.size());
    std::copy(bytes.begin(), bytes.end(), content_->bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  }

  std::size_t read_at(std::uint64_t offset, std::span<std::byte> bytes) override {
    const std::lock_guard lock(content_->mutex);
    const std::size_t begin = std::min<std::uint64_t>(offset, content_->bytes.size());
    const std::size_t count = std::min(bytes.size(), content_->bytes.size() - begin);
    std::copy_n(content_->bytes.begin() + static_cast<std::ptrdiff_t>(begin), count, bytes.begin());
    return count;
  }

  std::uint64_t size_bytes() override {
    const std::lock_guard lock(content_->mutex);
    return content_->bytes.size();
  }

  void sync() override {}

 private:
  std::shared_ptr<Content> content_;
  bool is_writable_;
};

MemoryFileSystem::MemoryFileSystem(const FileContents& contents) : folders_{"/", "."} {
  for (const auto& [path, bytes] : contents) {
    add_folders(parent_folder(path));
    auto content = std::make_shared<Content>();
    content->bytes = bytes;
    files_[path] = std::move(content);
  }
}

FileContents MemoryFileSystem::contents() const {
  const std::lock_guard lock(mutex_);
  FileContents contents;
  for (const auto& [path, content] : files_) contents[path] = content->bytes;
  return contents;
}

std::unique_ptr<File> MemoryFileSystem::create(const std::string& path) {
  const std::lock_guard lock(mutex_);
  require_folder(parent_folder(path), "create " + path + " in");
  if (files_.contains(path) || folders_.contains(path)) throw system_error(EEXIST, "cannot create " + path);
  const auto content = files_[path] = std::make_shared<Content>();
  return std::make_unique<OpenFile>(content, true);
}

std::unique_ptr<File> MemoryFileSystem::open_for_reading(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return std::make_unique<OpenFile>(find(path, "open")->second, false);
}

std::unique_ptr<File> MemoryFileSystem::open_for_writing(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return std::make_unique<OpenFile>(find(path, "open")->second, true);
}

void MemoryFileSystem::rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  require_folder(parent_folder(to), "rename to " + to + " in");
  auto file = files_.extract(find(from, "rename"));
  files_[to] = std::move(file.mapped());
}

void MemoryFileSystem::remove(const std::string& path) {
  const std::lock_guard lock(mutex_);
  files_.erase(find(path, "remove"));
}

void MemoryFileSystem::sync_folder(const std::string& path) {
  const std::lock_guard lock(mutex_);
  require_folder(path, "sync folder");
}

std::vector<std::string> MemoryFileSystem::list(const std::string& path) {
  const std::lock_guard lock(mutex_);
  require_folder(path, "list folder");
  std::vector<std::string> names;
  const auto add = [&](const std::string& entry) {
    if (entry != path && parent_folder(entry) == path) names.push_back(entry.substr(entry.rfind('/') + 1));
  };
  for (const auto& [entry, content] : files_) add(entry);
  for (const std::string& entry : folders_) add(entry);
  std::sort(names.begin(), names.end());
  return names;
}

bool MemoryFileSystem::exists(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return files_.contains(path) || folders_.contains(path);
}

void MemoryFileSystem::create_folders(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (files_.contains(path)) throw system_error(ENOTDIR, "cannot create folder " + path);
  add_folders(path);
}

std::map<std::string, std::shared_ptr<MemoryFileSystem::Content>>::iterator MemoryFileSystem::find(
    const std::string& path, const std::string& purpose) {
  const auto file = files_.find(path);
  if (file == files_.end()) throw system_error(ENOENT, "cannot " + purpose + " " + path);
  return file;
}

void MemoryFileSystem::require_folder(const std::string& path, const std::string& purpose) const {
  if (!folders_.contains(path)) throw system_error(ENOENT, "cannot " + purpose + " " + path);
}

void MemoryFileSystem::add_folders(const std::string& path) {
  for (std::string folder = path; folders_.insert(folder).second;) folder = parent_folder(folder);
}

}  // namespace holdfast
