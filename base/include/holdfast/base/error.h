#pragma once

// The one exception type of Holdfast. The world's failures (files, sockets, options, devices, peers) are thrown as
// Error with a sentence that says what was tried, on what, with which numbers, and what to do next. A broken promise of
// our own code is HOLDFAST_ASSERT, which stays on in release builds; no file, socket or user input may reach one.

#include <stdexcept>
#include <string>
#include <string_view>

namespace holdfast {

enum class ErrorCode {
  invalid_argument,   // an option or value that can never work
  invalid_file,       // bytes on disk that are not what they should be: wrong magic, digest, length, shape
  not_found,          // a file, array or device that is not there
  input_output,       // the operating system failed at an operation, and may not the next time
  refused,            // it will refuse this one the next time too: rights, a read-only file system, a file for a folder
  disk_full,          // no space left, or quota exceeded
  out_of_memory,      //
  deadline_exceeded,  // a bounded wait came to its end
  cancelled,          // the generation was ended while this operation waited
  incompatible,       // options or state that differ from those that the run was started with
  already_running,    // the run directory has another owner
  unavailable,        // this build or machine lacks what was asked for
  device_failed,      // a device, or this process's use of it, is at an end; a new process may go on
  failed_replica,     // a replica failed more often than the restart budget allows
  not_finite,         // training gave NaN or infinity, and does so again
  diverged,           // replicas that should hold the same state do not
  unsupported,        // a shape, type or combination that Holdfast does not implement
};

// The enumerator's name, as written above.
std::string_view to_string(ErrorCode code);

class Error : public std::runtime_error {
 public:
  // `sentence` is shown to users as it is.
  Error(ErrorCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}

  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

// The error for an errno value: "SENTENCE: No space left on device". ENOSPC and EDQUOT are disk_full, ENOENT not_found,
// ENOMEM out_of_memory, EACCES, EPERM, EROFS, ENOTDIR, EISDIR, EFBIG refused, ENOSYS unavailable, others input_output.
Error system_error(int error_number, const std::string& sentence);

// Writes the broken promise to standard error and aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace holdfast

#define HOLDFAST_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::holdfast::assertion_failed(#condition, __FILE__, __LINE__))
