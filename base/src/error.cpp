// What an errno value means for a user. system_error() classifies it and adds the advice that holds
// whatever was tried; file_error.cpp adds advice for files. `refused` and `input_output` are two codes
// because a restart meets the first again and may not meet the second (docs/decisions/recovery.md).

#include "holdfast/base/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <system_error>

namespace holdfast {

std::string_view to_string(ErrorCode code) {
  // In the order of the enumerators.
  static constexpr std::string_view kNames[] = {
      "invalid_argument", "invalid_file",      "not_found",  "input_output", "refused",         "disk_full",
      "out_of_memory",    "deadline_exceeded", "cancelled",  "incompatible", "already_running", "unavailable",
      "device_failed",    "failed_replica",    "not_finite", "diverged",     "unsupported"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(ErrorCode::unsupported) + 1);
  const auto number = static_cast<std::size_t>(code);
  // Only a number that is not an enumerator has no name.
  return number < std::size(kNames) ? kNames[number] : "unknown";
}

static ErrorCode code_of(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return ErrorCode::disk_full;
    case ENOENT:
      return ErrorCode::not_found;
    case ENOMEM:
      return ErrorCode::out_of_memory;
    // Rights, a read-only file system or a folder instead of a file do not pass by themselves.
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOTDIR:
    case EISDIR:
    case EFBIG:
      return ErrorCode::refused;
    case ENOSYS:
      return ErrorCode::unavailable;
    default:
      return ErrorCode::input_output;
  }
}

// Advice for limits that a process is started with. For other failures the advice depends on what was
// tried.
static std::string limit_to_raise(int error_number) {
  switch (error_number) {
    case EMFILE:
    case ENFILE:
      return "; close files or raise the limit of open files (ulimit -n)";
    case EFBIG:
      return "; raise the limit of a file's size (ulimit -f), which shared memory obeys too, or choose a file system "
             "that takes larger files";
    default:
      return "";
  }
}

Error system_error(int error_number, const std::string& sentence) {
  return Error(code_of(error_number), fmt::format("{}: {}{}", sentence, std::generic_category().message(error_number),
                                                  limit_to_raise(error_number)));
}

// Does not go through log(): its lock, or the sink of the application, may belong to the code that
// just failed.
void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "holdfast: broken promise: %s (%s:%d); this is a bug in Holdfast, please report it\n", condition,
               file, line);
  std::abort();
}

}  // namespace holdfast
