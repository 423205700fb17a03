#pragma once

// One run of the helper program that parses an HDF5 file of another program. The file's bytes are its only input and
// a pipe is its only output. It is killed when it makes no progress, and when the object is destroyed.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "foreign_hdf5/tree_stream.h"
#include "holdfast/base/deadline.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::format {

// How a helper ended.
struct ReaderExit {
  int code = 0;    // exit code, if no signal ended it
  int signal = 0;  // 0 if it exited by itself
};

class ReaderProcess : public RecordSource {
 public:
  // Starts `program` with `arguments` (without its own name). The program finds the file's memory at descriptor 3 and
  // the pipe at 1, an empty environment, no signal handlers and no other open descriptor. Throws Error{input_output,
  // unavailable}.
  ReaderProcess(const std::string& program, std::vector<std::string> arguments, const SharedMemory& file,
                std::chrono::seconds patience);
  // Kills the program, unless it has ended.
  ~ReaderProcess() override;
  ReaderProcess(const ReaderProcess&) = delete;
  ReaderProcess& operator=(const ReaderProcess&) = delete;

  // Blocks until `out` is full. Throws Error{deadline_exceeded} when no byte arrives within `patience`, and
  // ReaderEnded when the pipe ends.
  void read(std::span<std::byte> out) override;
  // Blocks until the program has ended by itself, at most for `patience`; then kills it. Empty when other code in
  // this process collected its exit status.
  std::optional<ReaderExit> wait();

 private:
  void start(const std::string& program, std::vector<std::string> arguments, int file, int pipe);
  void kill() const;

  std::chrono::seconds patience_;
  FileDescriptor pipe_;
  FileDescriptor process_;
  int pid_ = -1;
  bool is_reaped_ = false;
};

// The pipe ended before the tree was complete.
struct ReaderEnded {};

// Finds the helper program: at the path of set_hdf5_reader_path; otherwise next to the running program, in
// ../libexec/holdfast from there, or where this build of Holdfast is installed. Throws Error{unavailable} naming
// these folders.
std::string find_hdf5_reader();

}  // namespace holdfast::format
