#pragma once

// One file, written by several processes. Mirrored replicas all hold the same state, so each compresses
// and writes one part of it. The file has exactly the bytes that write_array_file() would write.
//
//   SliceWriter writer(files, path, metadata, arrays, {.slice = rank, .slices = size});
//   const auto summary = writer.encode();         // every process
//   const auto summaries = all_gather(summary);   // by the application, in the order of the slices
//   writer.write(summaries);                      // every process
//   barrier();                                    // by the application
//   if (rank == 0) writer.commit();
//
// The processes must share a file system. Nothing here communicates: the application exchanges the
// summaries and waits for its peers, with a deadline of its own.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/base/file_system.h"
#include "holdfast/format/array_file.h"

namespace holdfast::format {

// Which part a process writes.
struct Slice {
  int slice = 0;   // from 0; slice 0 creates the file and commits it
  int slices = 1;  // number of processes that write, at least 1
};

// One object for each slice. One thread at a time; encode() starts threads of its own.
class SliceWriter {
 public:
  // The arguments are those of write_array_file(). They are equal for all slices and must outlive the
  // writer. Slice 0 creates the temporary file. Throws what write_array_file() throws.
  SliceWriter(FileSystem& files, const std::string& path, std::string_view metadata_json,
              std::span<const ArrayView> arrays, const Slice& slice, const WriteOptions& options = {});
  // For slice 0 without commit(): removes the temporary file; `path` holds what it held before.
  ~SliceWriter();
  SliceWriter(SliceWriter&&) noexcept;
  SliceWriter& operator=(SliceWriter&&) noexcept;

  // Encodes the slice into memory, in options.threads threads. Returns a summary that all slices need: 20
  // bytes for each piece of 1 MiB and 16 bytes for each 64 KiB. Throws Error{out_of_memory}.
  std::vector<std::byte> encode();

  // Writes the slice and blocks until it is on stable storage. Throws Error{invalid_argument} for
  // summaries that do not fit this state, and what the file system throws.
  void write(std::span<const std::vector<std::byte>> summaries);

  // For slice 0 only, after write() has returned for all slices. Completes the file, gives it its name and
  // makes it durable. Returns the file's digest.
  Digest commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::format
