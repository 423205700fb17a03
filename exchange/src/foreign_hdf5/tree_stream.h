#pragma once

// How the helper program hands a tree over: records through a pipe. The receiving side takes every byte for hostile,
// since a crafted file may have taken over the program that sends them.
//
//   record    kind u8, payload bytes u64, payload
//   group     (1) path, attributes
//   dataset   (2) path, element type u8, axes u8, extents u64 each, attributes
//   elements  (3) of the latest dataset, in as many records as it takes
//   finished  (4) nothing
//   refused   (5) error code u8, text of what is wrong
//   text      (6) path, text, attributes
//
//   text        bytes u32, the bytes
//   attributes  count u32, then name, kind u8 and value each: text (0), count u32 and texts (1), element type u8,
//               axes u8, extents u64 each, bytes (2)
//
// Groups come sorted by path, then datasets sorted by path, then texts sorted by path. All integers are little-endian.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "foreign_hdf5/tree.h"
#include "holdfast/base/error.h"

namespace holdfast::format {

// Takes a tree piece by piece: groups sorted by path, then datasets sorted by path, then texts sorted by path.
class TreeSink {
 public:
  virtual ~TreeSink() = default;

  virtual void add_group(Hdf5Group group) = 0;
  // Without its elements, which follow in pieces.
  virtual void add_dataset(Hdf5Dataset dataset) = 0;
  virtual void add_elements(std::span<const std::byte> bytes) = 0;
  virtual void add_text(Hdf5Text text) = 0;
};

// What the datasets of a file of `file_bytes` may declare together.
std::uint64_t max_declared_bytes(std::uint64_t file_bytes, const TreeLimits& limits);
// What its names, attributes and texts may take together: they are not compressed.
std::uint64_t max_head_bytes(std::uint64_t file_bytes);

// Where records come from.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  // Fills `out`, or throws.
  virtual void read(std::span<std::byte> out) = 0;
};

// Reads records up to `finished` and gives what they say, if a file of `file_bytes` could hold it. Never takes more
// memory than limits of TreeLimits and the file's size allow, whatever the records claim. Throws what the source
// throws, the error that was refused with (invalid_file, out_of_memory, unsupported or unavailable; its text
// printable), and Error{invalid_file} for records that break a rule.
struct DecodeOptions {
  bool heads_only = false;  // no elements come, and the tree's arrays have none
  // Gets whole elements of dataset number `dataset` in pieces of a few MiB, in order; the tree's arrays have none then.
  std::function<void(std::size_t dataset, std::span<const std::byte> elements)> take = {};
};
Hdf5Tree decode_tree(RecordSource& source, std::uint64_t file_bytes, const TreeLimits& limits,
                     const DecodeOptions& options = {});

// Writes records.
class TreeEncoder : public TreeSink {
 public:
  explicit TreeEncoder(std::function<void(std::span<const std::byte>)> write) : write_(std::move(write)) {}

  void add_group(Hdf5Group group) override;
  void add_dataset(Hdf5Dataset dataset) override;
  void add_elements(std::span<const std::byte> bytes) override;
  void add_text(Hdf5Text text) override;
  // One of the two comes last.
  void finish();
  void refuse(ErrorCode code, std::string_view problem);

 private:
  void write_record(std::uint8_t kind, std::span<const std::byte> payload);

  std::function<void(std::span<const std::byte>)> write_;
};

}  // namespace holdfast::format
