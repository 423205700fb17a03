#pragma once

// Reads datasets: what they declare, and their elements.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attribute_reader.h"
#include "chunk_reader.h"
#include "element_types.h"
#include "foreign_hdf5/tree_stream.h"

namespace holdfast::hdf5_reader {

// What a dataset declares. It was checked: the dataset is stored in this file alone, all its filters are supported,
// and its size is within the limits.
struct DatasetInfo {
  ElementType type{};
  bool is_opaque = false;  // Keras's bfloat16, known by its attribute `dtype`
  bool is_text = false;    // a single string; `type` is not used
  std::size_t element_bytes = 0;
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes = 0;                // of all elements; for a string of variable length, of the reference
  std::uint64_t stored_bytes = 0;         // in the file
  std::optional<ChunkedStorage> chunked;  // empty for contiguous and compact storage
};

class DatasetReader {
 public:
  // All references must outlive the object.
  DatasetReader(const format::Checker& check, const ElementTypes& types, const AttributeReader& attributes,
                std::uint64_t file_bytes, std::uint64_t max_memory_bytes)
      : check_(check),
        types_(types),
        attributes_(attributes),
        file_bytes_(file_bytes),
        max_memory_bytes_(max_memory_bytes) {}

  // Reads no elements. `label` names the dataset in errors.
  DatasetInfo describe(hid_t dataset, const std::string& label) const;
  // Passes all elements of a dataset that is not a text to `encoder`, in pieces of a few MiB or one row of chunks.
  // Throws Error{out_of_memory} before the first piece if a piece is larger than allowed.
  void read(hid_t dataset, const DatasetInfo& info, const std::string& label, format::TreeEncoder& encoder) const;
  // The dataset must be a text.
  std::string read_text(hid_t dataset, const std::string& label) const;

 private:
  void describe_type(hid_t dataset, const std::string& label, DatasetInfo& info) const;
  bool is_keras_bfloat16(hid_t dataset, hid_t type, const std::string& label) const;
  std::vector<std::uint64_t> read_shape(hid_t dataset, const std::string& label) const;
  ChunkedStorage describe_chunks(hid_t creation, hid_t dataset, const DatasetInfo& info,
                                 const std::string& label) const;
  std::vector<FilterStep> read_filters(hid_t creation, std::size_t element_bytes, const std::string& label) const;
  void check_sizes(const DatasetInfo& info, const std::string& label) const;
  void check_memory(const DatasetInfo& info, std::uint64_t rows, std::uint64_t row_bytes,
                    const std::string& label) const;
  void check_all_were_read(hid_t dataset, std::uint64_t chunks, const std::string& label) const;
  void read_plain_rows(hid_t dataset, const DatasetInfo& info, std::uint64_t row, std::uint64_t rows,
                       std::span<std::byte> out, const std::string& label) const;

  const format::Checker& check_;
  const ElementTypes& types_;
  const AttributeReader& attributes_;
  std::uint64_t file_bytes_;
  std::uint64_t max_memory_bytes_;
};

}  // namespace holdfast::hdf5_reader
