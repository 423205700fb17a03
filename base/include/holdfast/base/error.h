#pragma once

// The one exception type of Holdfast. Failures of the world (files, sockets, options, devices, peers)
// are thrown as Error. Its sentence says what was tried, on what, with which numbers, and what to do.
// Its code tells a program what kind of failure it is.
//
//   try {
//     trainer.fit(data);
//   } catch (const holdfast::Error& error) {
//     std::cerr << error.what() << "\n";
//     return error.code() == holdfast::ErrorCode::disk_full ? 3 : 1;
//   }
//
// A broken promise of our own code is HOLDFAST_ASSERT instead, which stays on in release builds. No
// file, socket or user input may reach an assertion.

#include <stdexcept>
#include <string>
#include <string_view>

namespace holdfast {

// What kind of failure it is: what a program decides by.
enum class ErrorCode {
  invalid_argument,   // an option or value that can never work
  invalid_file,       // bytes on disk are not what they should be: wrong magic, digest, length, shape
  not_found,          // a file, array or device does not exist
  input_output,       // an operation of the operating system failed and may succeed the next time
  refused,            // it will fail the next time too: rights, a read-only file system, a file for a folder
  disk_full,          // no space left, or quota exceeded
  out_of_memory,      // of the host or of a device
  deadline_exceeded,  // a wait reached its deadline
  cancelled,          // the generation was ended while this operation waited
  incompatible,       // options or state differ from those that the run was started with
  already_running,    // the run directory has another owner
  unavailable,        // this build or machine does not have what was asked for
  device_failed,      // a device, or this process's use of it, cannot go on; a new process may
  failed_replica,     // a replica failed more often than the restart budget allows
  not_finite,         // training gave NaN or infinity, also when it was repeated
  diverged,           // replicas that must hold the same state do not
  unsupported,        // a shape, type or combination that Holdfast does not implement
};

// The enumerator's name, as written above.
std::string_view to_string(ErrorCode code);

// Thrown by value, caught by const reference; may be copied and kept.
class Error : public std::runtime_error {
 public:
  // `sentence` is what() and is shown to users as it is.
  Error(ErrorCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}

  ErrorCode code() const { return code_; }  // what kind of failure it is; docs/errors.md explains each

 private:
  ErrorCode code_;
};

// Returns (does not throw) the error for an errno value: "SENTENCE: No space left on device".
//   disk_full       ENOSPC, EDQUOT
//   not_found       ENOENT
//   out_of_memory   ENOMEM
//   refused         EACCES, EPERM, EROFS, ENOTDIR, EISDIR, EFBIG
//   unavailable     ENOSYS
//   input_output    all others
// For a limit that the process was started with (EMFILE, ENFILE, EFBIG), the sentence also says which
// limit to raise.
Error system_error(int error_number, const std::string& sentence);

// Writes the broken condition to standard error and aborts. Only HOLDFAST_ASSERT calls it.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace holdfast

// Ends the process unless `condition` holds, in every build. `condition` is evaluated once.
#define HOLDFAST_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::holdfast::assertion_failed(#condition, __FILE__, __LINE__))
