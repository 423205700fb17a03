#include "holdfast/base/whole_file.h"

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// The error that brought us here says more than one met here.
void remove_if_possible(FileSystem& files, const std::string& path) {
  try {
    if (files.exists(path)) files.remove(path);
  } catch (const Error&) {
  }
}

}  // namespace

void write_whole_file(FileSystem& files, const std::string& path, std::span<const std::byte> bytes) {
  const std::string temporary = path + ".tmp";
  if (files.exists(temporary)) files.remove(temporary);
  try {
    const std::unique_ptr<File> file = files.create(temporary);
    file->write_at(0, bytes);
    file->sync();
    files.rename(temporary, path);
  } catch (...) {
    remove_if_possible(files, temporary);
    throw;
  }
  // The folder is synced too: after a power cut the renamed file may be missing from it.
  files.sync_folder(parent_folder(path));
}

std::string read_text_file(FileSystem& files, const std::string& path) {
  constexpr std::uint64_t kLargest = 64ULL << 20;
  const std::unique_ptr<File> file = files.open_for_reading(path);
  const std::uint64_t bytes = file->size_bytes();
  if (bytes > kLargest)
    throw Error(ErrorCode::invalid_file,
                path + " has " + std::to_string(bytes) + " bytes, more than a text of ours has");
  std::string text(bytes, '\0');
  text.resize(file->read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace holdfast
