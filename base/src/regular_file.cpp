#include "holdfast/base/regular_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "file_error.h"

namespace holdfast {
namespace {

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Error not_regular(const std::string& purpose, const std::string& what) {
  return Error(
      ErrorCode::invalid_file,
      fmt::format("cannot {}: it is {}, not a regular file; give another path, or move it away", purpose, what));
}

Error cannot_open(const std::string& path, int flags, const std::string& purpose, int error_number) {
  struct stat status {};
  const bool is_link = ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
  // ELOOP has two meanings: a link with O_NOFOLLOW, and links that lead back to themselves.
  if (error_number == ELOOP && is_link) {
    return not_regular(purpose, (flags & O_NOFOLLOW) != 0 ? "a symbolic link" : "a loop of symbolic links");
  }
  // open(2) fails so for sockets, and for devices without a driver.
  if (error_number == ENXIO || error_number == ENODEV) return not_regular(purpose, "a socket or a device");
  return file_error(error_number, fmt::format("cannot {}", purpose));
}

}  // namespace

FileDescriptor open_regular_file(const std::string& path, int flags, const std::string& purpose) {
  SystemCalls calls;
  return open_regular_file(path, flags, purpose, calls);
}

FileDescriptor open_regular_file(const std::string& path, int flags, const std::string& purpose, SystemCalls& calls) {
  // O_NONBLOCK does nothing for regular files. Without it, opening a FIFO would wait for another process.
  const int all_flags = flags | O_NONBLOCK | O_CLOEXEC;
  FileDescriptor file(uninterrupted([&] { return calls.open(path.c_str(), all_flags, 0644); }));
  if (!file.is_open()) throw cannot_open(path, flags, purpose, errno);
  // The open file is checked, not its path: another file cannot take its place in between.
  struct stat status {};
  if (::fstat(file.value(), &status) != 0) throw file_error(errno, fmt::format("cannot {}", purpose));
  if (!S_ISREG(status.st_mode)) throw not_regular(purpose, kind_of(status.st_mode));
  return file;
}

}  // namespace holdfast
