#pragma once

// One file written by several: mirrored replicas all hold the same state, and each compresses and writes its part of
// it. The file has the very bytes that write_array_file() would have given it.
//
//   SliceWriter writer(files, path, metadata, arrays, {.slice = rank, .slices = size});
//   const auto summary = writer.encode();                   // every one
//   const auto summaries = all_gather(summary);             // by the application, in the order of the slices
//   writer.write(summaries);                                // every one
//   barrier();                                              // by the application
//   if (rank == 0) writer.commit();

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

struct Slice {
  int slice = 0;  // 0 creates the file and commits it
  int slices = 1;
};

// Not for several threads at once; each writer, in whichever process, has one of its own.
class SliceWriter {
 public:
  // The arguments are those of write_array_file(), the same for all, and must outlive the writer. Slice 0 creates the
  // temporary file. Throws what write_array_file() throws.
  SliceWriter(FileSystem& files, const std::string& path, std::string_view metadata_json,
              std::span<const ArrayView> arrays, const Slice& slice, const WriteOptions& options = {});
  // Of slice 0, without commit(): removes the temporary file, and what stood at `path` is untouched.
  ~SliceWriter();
  SliceWriter(SliceWriter&&) noexcept;
  SliceWriter& operator=(SliceWriter&&) noexcept;

  // Encodes the slice into memory, in options.threads threads. Returns what the others have to know of it: 20 bytes a
  // piece of 1 MiB and 16 bytes for each 64 KiB.
  std::vector<std::byte> encode();

  // Writes the slice and brings it to stable storage. Throws Error{invalid_argument} for summaries that do not fit this
  // state, and what the file system throws.
  void write(std::span<const std::vector<std::byte>> summaries);

  // Of slice 0 alone, once all have returned from write(): completes the file and gives it its name, durably. Returns
  // its digest.
  Digest commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::format
