#include "data/sources/gzip_reader.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/regular_file.h"
#include "holdfast/base/shared_memory.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {

GzipReader::GzipReader(const std::string& path, std::string format) : path_(path), format_(std::move(format)) {
  // A FIFO would keep each replica waiting, and would give its bytes to only one of them.
  FileDescriptor file = open_regular_file(path, O_RDONLY, "open " + quoted_path(path));
  errno = 0;
  // zlib reads a file without the two bytes of gzip as it is, which is how plain files come through here.
  file_ = gzdopen(file.value(), "rb");
  if (file_ == nullptr) throw system_error(errno != 0 ? errno : ENOMEM, "cannot open " + quoted_path(path));
  // zlib closes the descriptor from here on. Before, a failure of gzdopen() leaves it to `file`.
  static_cast<void>(file.release());
}

std::size_t GzipReader::read(std::span<std::uint8_t> bytes) {
  errno = 0;
  // Callers read a megabyte or less at once, so the number fits.
  const int count = gzread(file_, bytes.data(), static_cast<unsigned>(bytes.size()));
  // gzerror() may change errno.
  const int read_errno = errno;
  int code = Z_OK;
  const char* message = gzerror(file_, &code);
  if (code == Z_ERRNO) throw system_error(read_errno, "cannot read " + quoted_path(path_));
  // For gzread, a stream that ends too early is not an error: it returns what it has.
  if (code == Z_BUF_ERROR) refuse("its gzip stream is cut off; fetch it again");
  if (count < 0 || code != Z_OK) {
    refuse(fmt::format("its gzip stream is damaged ({}); fetch it again", message));
  }
  return static_cast<std::size_t>(count);
}

void GzipReader::refuse(const std::string& reason) const {
  throw Error(ErrorCode::invalid_file,
              fmt::format("{} is not a whole {} file: {}", quoted_path(path_), format_, reason));
}

}  // namespace holdfast
