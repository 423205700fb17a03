#include "holdfast/base/whole_file.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/base/whole_writer.h"

namespace holdfast {

void write_whole_file(FileSystem& files, const std::string& path, const std::function<void(File&)>& fill) {
  WholeWriter writer(files, path);
  fill(*writer.file());
  writer.commit();
}

void write_whole_file(FileSystem& files, const std::string& path, std::span<const std::byte> bytes) {
  write_whole_file(files, path, [&](File& file) { file.write_at(0, bytes); });
}

std::string read_text_file(FileSystem& files, const std::string& path) {
  // Without a limit a wrong path, such as that of a savepoint, would be read into memory whole.
  constexpr std::uint64_t kLargest = 64ULL << 20;
  const std::unique_ptr<File> file = files.open_for_reading(path);
  const std::uint64_t bytes = file->size_bytes();
  if (bytes > kLargest)
    throw Error(
        ErrorCode::invalid_file,
        fmt::format("{} has {} bytes, more than the 64 MiB of the largest text file that is read; give another file",
                    path, bytes));
  std::string text(bytes, '\0');
  // The file may have become shorter since its size was read.
  text.resize(file->read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace holdfast
