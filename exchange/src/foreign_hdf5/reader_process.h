#pragma once

// A run of the helper program that parses a stranger's HDF5 file: started with the file's bytes as its only input and
// a pipe as its only way out, killed when it makes no progress, and gone with the object.

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
  int code = 0;    // when no signal ended it
  int signal = 0;  // 0 when none did
};

class ReaderProcess : public RecordSource {
 public:
  // Starts `program` with `arguments` (without its own name). It finds the file's memory under descriptor 3 and the
  // pipe under 1, an empty environment, no signal handlers and nothing else open. Throws Error{input_output,
  // unavailable}.
  ReaderProcess(const std::string& program, std::vector<std::string> arguments, const SharedMemory& file,
                std::chrono::seconds patience);
  // Kills it, unless it has ended.
  ~ReaderProcess() override;
  ReaderProcess(const ReaderProcess&) = delete;
  ReaderProcess& operator=(const ReaderProcess&) = delete;

  // Throws Error{deadline_exceeded} when nothing comes for the time of `patience`, and ReaderEnded when the pipe ends.
  void read(std::span<std::byte> out) override;
  // Blocks until it has ended by itself, for the time of `patience` at most; then it is killed. Empty when somebody
  // else in this process took its status.
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

// The pipe ended before the tree did.
struct ReaderEnded {};

// Where the helper program is: as set_hdf5_reader_path says; else beside the running program; else in
// ../libexec/holdfast from there; else where this build of Holdfast installs it. Throws Error{unavailable} naming the
// places.
std::string find_hdf5_reader();

}  // namespace holdfast::format
