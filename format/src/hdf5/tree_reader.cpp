#include <unistd.h>

#include <csignal>
#include <cstring>
#include <utility>

#include "hdf5/foreign_check.h"
#include "hdf5/reader_process.h"
#include "hdf5/tree.h"
#include "hdf5/tree_stream.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::format {
namespace {

std::vector<std::string> reader_arguments(const TreeLimits& limits) {
  return {std::to_string(::getpid()), std::to_string(limits.max_array_bytes), std::to_string(limits.max_objects),
          std::to_string(limits.time.count())};
}

std::string describe(const std::optional<ReaderExit>& exit) {
  if (!exit) return "its end was taken by other code";
  if (exit->signal == SIGSYS) return "it tried what reading does not need";
  if (exit->signal == SIGXCPU) return "it computed for too long";
  if (exit->signal != 0)
    return std::string("signal ") + std::to_string(exit->signal) + ", " + ::strsignal(exit->signal);
  return "exit code " + std::to_string(exit->code);
}

Hdf5Tree read_through_helper(const SharedMemory& file, const TreeLimits& limits) {
  ReaderProcess reader(find_hdf5_reader(), reader_arguments(limits), file, limits.time);
  try {
    return decode_tree(reader, file.size_bytes(), limits);
  } catch (const ReaderEnded&) {
    throw Error(ErrorCode::invalid_file,
                "the program that reads HDF5 files gave up on it (" + describe(reader.wait()) + ")");
  }
}

// `problem` says what is wrong with the file, or with reading it.
Error refusal(const std::string& label, const Error& problem) {
  const bool is_the_file = problem.code() == ErrorCode::invalid_file;
  return Error(problem.code(),
               label + (is_the_file ? " is refused: " : " cannot be read: ") + problem.what() +
                   (is_the_file ? "; let the program that made it write a plain file, or use another copy" : ""));
}

Hdf5Tree read_checked(const SharedMemory& file, const std::string& label, const TreeLimits& limits) {
  try {
    check_foreign_hdf5(file.readable(), limits);
    return read_through_helper(file, limits);
  } catch (const Error& error) {
    throw refusal(label, error);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, "no memory for the content of " + label + "; free some memory and try again");
  }
}

SharedMemory allocate(std::uint64_t bytes, const std::string& label) {
  constexpr std::uint64_t kSmallest = 48;  // a superblock
  if (bytes < kSmallest) {
    throw Error(ErrorCode::invalid_file,
                label + " is no HDF5 file: it has " + std::to_string(bytes) + " bytes; check the path");
  }
  return SharedMemory::create("holdfast-hdf5", bytes);
}

}  // namespace

Hdf5Tree read_hdf5_tree(std::span<const std::byte> file, const std::string& label, const TreeLimits& limits) {
  SharedMemory memory = allocate(file.size(), label);
  std::memcpy(memory.writable().data(), file.data(), file.size());
  return read_checked(memory, label, limits);
}

Hdf5Tree read_hdf5_tree(FileSystem& files, const std::string& path, const TreeLimits& limits) {
  // What is parsed is this copy, whatever happens to the file meanwhile.
  const std::unique_ptr<File> file = files.open_for_reading(path);
  SharedMemory memory = allocate(file->size_bytes(), path);
  if (file->read_at(0, memory.writable()) < memory.size_bytes()) {
    throw Error(ErrorCode::invalid_file, path + " shrank while it was read; try again when nobody writes to it");
  }
  return read_checked(memory, path, limits);
}

}  // namespace holdfast::format
