// Checks what a dataset declares before anything is read or allocated for it. Compression allows small files to
// declare huge arrays, so sizes are compared with the stored bytes. The order of the questions matters, because HDF5
// acts on some of them. docs/decisions/exchange.md

#include "dataset_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bytes/element_bytes.h"
#include "foreign_hdf5/foreign_rules.h"
#include "holdfast/base/shape_bytes.h"
#include "strings.h"

namespace holdfast::hdf5_reader {
namespace {

using format::Filter;
using format::Handle;

// The number of bytes read at once, where the chunks allow it.
constexpr std::uint64_t kReadBytes = std::uint64_t{8} << 20;

// The bytes that refer to a string of variable length: its length and its position.
constexpr std::size_t kReferenceBytes = 4 + 8 + 4;

// Returns whole rows of chunks, so that every chunk is decoded once.
std::uint64_t rows_at_once(const DatasetInfo& info, std::uint64_t row_bytes) {
  const std::uint64_t wanted = std::max<std::uint64_t>(1, kReadBytes / row_bytes);
  if (!info.chunked) return wanted;
  const std::uint64_t chunk_rows = info.chunked->chunk_shape[0];
  return wanted <= chunk_rows ? chunk_rows : wanted / chunk_rows * chunk_rows;
}

// Returns the number of chunks in the grid, or the largest number if 64 bits cannot count them.
std::uint64_t count_chunks(const ChunkedStorage& storage) {
  std::vector<std::uint64_t> grid;
  for (std::size_t axis = 0; axis < storage.shape.size(); ++axis) {
    const std::uint64_t extent = storage.shape[axis];
    grid.push_back(extent / storage.chunk_shape[axis] + (extent % storage.chunk_shape[axis] == 0 ? 0 : 1));
  }
  std::uint64_t count = 0;
  return multiply_shape(grid, 1, count) ? count : ~std::uint64_t{0};
}

}  // namespace

// Storage is checked before the shape: HDF5 opens other files when asked for the shape of a virtual dataset.
DatasetInfo DatasetReader::describe(hid_t dataset, const std::string& label) const {
  const Handle creation = check_.opened(H5Dget_create_plist(dataset), H5Pclose,
                                        fmt::format("cannot read the creation properties of {}", label));
  check_.require(H5Pget_external_count(creation) == 0, label + format::kStoredOutside);
  const H5D_layout_t layout = H5Pget_layout(creation);
  check_.require(layout != H5D_VIRTUAL, label + format::kVirtual);
  check_.require(layout == H5D_COMPACT || layout == H5D_CONTIGUOUS || layout == H5D_CHUNKED,
                 fmt::format("{} has an unknown layout", label));
  DatasetInfo info;
  describe_type(dataset, label, info);
  info.shape = read_shape(dataset, label);
  check_.require(!info.is_text || info.shape.empty(),
                 fmt::format("{} is an array of strings, and only single strings are supported", label));
  check_.require(multiply_shape(info.shape, info.element_bytes, info.bytes),
                 fmt::format("{} is too large for a 64-bit size", label));
  info.stored_bytes = H5Dget_storage_size(dataset);
  if (layout == H5D_CHUNKED) info.chunked = describe_chunks(creation, dataset, info, label);
  check_sizes(info, label);
  return info;
}

void DatasetReader::describe_type(hid_t dataset, const std::string& label, DatasetInfo& info) const {
  const Handle type = check_.opened(H5Dget_type(dataset), H5Tclose, fmt::format("cannot read the type of {}", label));
  // HDF5 stores texts of variable length elsewhere, and here only where they are.
  info.element_bytes = H5Tis_variable_str(type) > 0 ? kReferenceBytes : H5Tget_size(type);
  info.is_text = H5Tget_class(type) == H5T_STRING;
  if (info.is_text) return;
  if (const std::optional<ElementType> found = types_.find(type)) {
    info.type = *found;
    return;
  }
  check_.require(is_keras_bfloat16(dataset, type, label),
                 fmt::format("{} has elements of an unsupported type ({})", label, class_name(type)));
  info.type = {DType::bf16};
  info.is_opaque = true;
}

bool DatasetReader::is_keras_bfloat16(hid_t dataset, hid_t type, const std::string& label) const {
  if (H5Tget_class(type) != H5T_OPAQUE || H5Tget_size(type) != 2 || H5Aexists(dataset, "dtype") <= 0) return false;
  const format::Hdf5Attribute attribute = attributes_.read(dataset, "dtype", label);
  const auto* text = std::get_if<std::string>(&attribute.value);
  return text != nullptr && *text == "bfloat16";
}

std::vector<std::uint64_t> DatasetReader::read_shape(hid_t dataset, const std::string& label) const {
  const Handle space =
      check_.opened(H5Dget_space(dataset), H5Sclose, fmt::format("cannot read the dataspace of {}", label));
  const H5S_class_t kind = H5Sget_simple_extent_type(space);
  check_.require(kind == H5S_SCALAR || kind == H5S_SIMPLE, fmt::format("{} has no shape", label));
  return hdf5_reader::read_shape(check_, space, label);
}

ChunkedStorage DatasetReader::describe_chunks(hid_t creation, hid_t dataset, const DatasetInfo& info,
                                              const std::string& label) const {
  // Everything that RowReader needs, so that it asks HDF5 for raw chunks alone.
  ChunkedStorage storage;
  storage.shape = info.shape;
  storage.element_bytes = info.element_bytes;
  storage.stored_bytes = info.stored_bytes;
  std::vector<hsize_t> chunk(info.shape.size());
  // The chunk must have as many axes as the dataset, none of them empty.
  const int axes = H5Pget_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
  const bool is_possible = !chunk.empty() && axes == static_cast<int>(chunk.size()) &&
                           std::find(chunk.begin(), chunk.end(), 0U) == chunk.end();
  check_.require(is_possible, fmt::format("{} has an invalid chunk shape", label));
  storage.chunk_shape.assign(chunk.begin(), chunk.end());
  check_.require(multiply_shape(storage.chunk_shape, storage.element_bytes, storage.chunk_bytes),
                 fmt::format("{} has an invalid chunk shape", label));
  storage.filters = read_filters(creation, storage.element_bytes, label);

  const Handle type = check_.opened(H5Dget_type(dataset), H5Tclose, fmt::format("cannot read the type of {}", label));
  // Where the file defines no fill value, zeros stand for it.
  storage.fill_value.resize(storage.element_bytes);
  H5D_fill_value_t kind = H5D_FILL_VALUE_UNDEFINED;
  check_.succeeded(H5Pfill_value_defined(creation, &kind), fmt::format("cannot read the fill value of {}", label));
  if (kind != H5D_FILL_VALUE_UNDEFINED) {
    check_.succeeded(H5Pget_fill_value(creation, type, storage.fill_value.data()),
                     fmt::format("cannot read the fill value of {}", label));
  }
  return storage;
}

std::vector<FilterStep> DatasetReader::read_filters(hid_t creation, std::size_t element_bytes,
                                                    const std::string& label) const {
  const int count = check_.succeeded(H5Pget_nfilters(creation), fmt::format("cannot read the filters of {}", label));
  std::vector<FilterStep> steps;
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0;
    std::size_t values = 0;
    const H5Z_filter_t number =
        H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, nullptr);
    check_.require(format::is_known_filter(number), label + format::unknown_filter(number));
    steps.push_back({static_cast<Filter>(number), element_bytes});
  }
  const auto compressing = std::count_if(steps.begin(), steps.end(), [](const FilterStep& step) {
    return step.filter == Filter::deflate || step.filter == Filter::zstd;
  });
  // With two compressing filters, the size between them would be unknown (see size_before in filters.cpp).
  check_.require(compressing <= 1, fmt::format("{} is compressed twice", label));
  return steps;
}

void DatasetReader::check_sizes(const DatasetInfo& info, const std::string& label) const {
  // One sentence for all of these: each of them says that sizes and bytes do not fit.
  const std::string sizes =
      fmt::format("{} declares {} bytes, but {} are stored", label, info.bytes, info.stored_bytes);
  check_.require(info.stored_bytes <= file_bytes_, sizes);
  check_.require(format::may_declare(info.bytes, info.stored_bytes), sizes);
  check_.require(!info.is_text || info.bytes <= file_bytes_, sizes);
  if (!info.chunked) {
    // Either all bytes are stored, or none yet; then all elements are the fill value.
    check_.require(info.stored_bytes == info.bytes || info.stored_bytes == 0, sizes);
    return;
  }
  if (info.stored_bytes == 0) return;
  // Reading looks at every position of the grid, so empty positions must not be free.
  const std::uint64_t chunks = count_chunks(*info.chunked);
  check_.require(chunks <= info.stored_bytes, fmt::format("{} is cut into {} chunks, but only {} bytes are stored",
                                                          label, chunks, info.stored_bytes));
}

// The caller limits what one piece may take. A chunk is decoded next to the piece, so both count.
void DatasetReader::check_memory(const DatasetInfo& info, std::uint64_t rows, std::uint64_t row_bytes,
                                 const std::string& label) const {
  const std::uint64_t piece_bytes = rows * row_bytes;
  const std::uint64_t chunk_bytes = info.chunked ? info.chunked->chunk_bytes : 0;
  if (piece_bytes <= max_memory_bytes_ && chunk_bytes <= max_memory_bytes_ - piece_bytes) return;
  throw Error(ErrorCode::out_of_memory,
              fmt::format("{} is stored in chunks that take {} bytes of memory at once, and {} are allowed", label,
                          std::max(piece_bytes, chunk_bytes), max_memory_bytes_));
}

void DatasetReader::read(hid_t dataset, const DatasetInfo& info, const std::string& label,
                         format::TreeEncoder& encoder) const {
  if (info.bytes == 0) return;
  // A scalar is one row. The shape has no empty axis here, since there are bytes.
  const std::uint64_t rows = info.shape.empty() ? 1 : info.shape[0];
  const std::uint64_t row_bytes = info.bytes / rows;
  const std::uint64_t step = rows_at_once(info, row_bytes);
  check_memory(info, std::min(step, rows), row_bytes, label);
  std::vector<std::byte> elements;
  std::uint64_t chunks = 0;
  for (std::uint64_t row = 0; row < rows;) {
    const std::uint64_t count = std::min(step, rows - row);
    elements.resize(count * row_bytes);
    if (info.chunked) {
      // The chunks are counted, to find out below whether some could not be found.
      chunks += read_chunk_rows(dataset, *info.chunked, row, count, check_, label, elements);
    } else {
      read_plain_rows(dataset, info, row, count, elements, label);
    }
    if (info.type.is_big_endian) format::swap_bytes(elements, size_bytes(info.type.dtype));
    check_.require(info.type.dtype != DType::boolean || format::holds_booleans(elements),
                   fmt::format("{} has boolean elements other than 0 and 1", label));
    encoder.add_elements(elements);
    row += count;
  }
  if (info.chunked) check_all_were_read(dataset, chunks, label);
}

std::string DatasetReader::read_text(hid_t dataset, const std::string& label) const {
  const std::string problem = fmt::format("{} cannot be read", label);
  const Handle stored_type = check_.opened(H5Dget_type(dataset), H5Tclose, problem);
  const Handle space = check_.opened(H5Dget_space(dataset), H5Sclose, problem);
  const Handle type = string_memory_type(check_, stored_type, label);
  std::vector<std::byte> elements(H5Tget_size(type));
  check_.succeeded(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, elements.data()), problem);
  return std::move(take_strings(check_, type, space, elements, label).at(0));
}

// HDF5 may report a chunk as absent if it cannot find it in a damaged index.
void DatasetReader::check_all_were_read(hid_t dataset, std::uint64_t chunks, const std::string& label) const {
  const Handle space =
      check_.opened(H5Dget_space(dataset), H5Sclose, fmt::format("cannot read the dataspace of {}", label));
  hsize_t stored = 0;
  check_.succeeded(H5Dget_num_chunks(dataset, space, &stored),
                   fmt::format("the chunks of {} cannot be counted", label));
  check_.require(stored == chunks,
                 fmt::format("{} has {} chunks, but only {} of them can be found", label, stored, chunks));
}

void DatasetReader::read_plain_rows(hid_t dataset, const DatasetInfo& info, std::uint64_t row, std::uint64_t rows,
                                    std::span<std::byte> out, const std::string& label) const {
  const std::string problem = fmt::format("{} cannot be read", label);
  const Handle type = check_.opened(H5Dget_type(dataset), H5Tclose, problem);
  if (info.shape.empty()) {
    check_.succeeded(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()), problem);
    return;
  }
  std::vector<hsize_t> start(info.shape.size());
  std::vector<hsize_t> count(info.shape.begin(), info.shape.end());
  // Contiguous data is read by HDF5, which converts nothing: both types are the stored one.
  start[0] = row;
  count[0] = rows;
  const Handle from = check_.opened(H5Dget_space(dataset), H5Sclose, problem);
  const Handle to =
      check_.opened(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), H5Sclose, problem);
  check_.succeeded(H5Sselect_hyperslab(from, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr), problem);
  check_.succeeded(H5Dread(dataset, type, to, from, H5P_DEFAULT, out.data()), problem);
}

}  // namespace holdfast::hdf5_reader
