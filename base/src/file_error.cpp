#include "file_error.h"

#include <cerrno>

namespace holdfast {

// Advice that fits files only. system_error() is also called for processes, memory and sockets.
static std::string advice(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space there or choose another folder";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; check the permissions of the file and its folder";
    case ENOENT:
      return "; check the path, which counts from the current folder if it is relative";
    case EISDIR:
      return "; give a file, not a folder";
    case EIO:
      return "; check the disk and the system's log";
    default:
      return "";
  }
}

Error file_error(int error_number, const std::string& sentence) {
  const Error error = system_error(error_number, sentence);
  return Error(error.code(), error.what() + advice(error_number));
}

}  // namespace holdfast
