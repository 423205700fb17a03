// What an errno value means for a user. system_error() classifies it and adds the advice that holds
// whatever was tried; file_error.cpp adds advice for files. `refused` and `input_output` are two codes
// because a restart meets the first again and may not meet the second (docs/decisions/recovery.md).

#include "holdfast/base/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace holdfast {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::invalid_file:
      return "invalid_file";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::input_output:
      return "input_output";
    case ErrorCode::refused:
      return "refused";
    case ErrorCode::disk_full:
      return "disk_full";
    case ErrorCode::out_of_memory:
      return "out_of_memory";
    case ErrorCode::deadline_exceeded:
      return "deadline_exceeded";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::incompatible:
      return "incompatible";
    case ErrorCode::already_running:
      return "already_running";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::device_failed:
      return "device_failed";
    case ErrorCode::failed_replica:
      return "failed_replica";
    case ErrorCode::not_finite:
      return "not_finite";
    case ErrorCode::diverged:
      return "diverged";
    case ErrorCode::unsupported:
      return "unsupported";
  }
  // Only a number that is not an enumerator gets here.
  return "unknown";
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
