// Rows are read with pread, not through a mapping: a file that becomes shorter is then an error and not a SIGBUS, and
// the kernel keeps the pages that are used in both cases. docs/decisions/array-files.md

#include "data/files/file_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "data/files/array_conversion.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/format/exchange/chosen_arrays.h"

namespace holdfast {
namespace {

// What digest() reads at once: enough that the disk reads in long runs, and little next to the memory of a batch.
constexpr std::int64_t kDigestedBytes = std::int64_t{8} << 20;

// A file on disk in another byte order is as good as one in ours.
void swap_elements(std::span<std::byte> bytes, std::size_t element_bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += element_bytes) {
    const auto element = bytes.subspan(i, element_bytes);
    std::reverse(element.begin(), element.end());
  }
}

}  // namespace

std::string file_array_label(const std::string& path, const std::string& array) {
  return array.empty() ? quoted_path(path) : fmt::format("array {} of {}", quoted_text(array), quoted_path(path));
}

Shape shape_of_file_array(const std::vector<std::uint64_t>& extents, const std::string& label) {
  std::vector<std::int64_t> shape;
  // Files count in 64 bits without a sign, and shapes with one.
  for (const std::uint64_t extent : extents) {
    if (extent > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      throw Error(ErrorCode::invalid_file,
                  fmt::format("{} has an axis of {} elements; use another copy of the file", label, extent));
    }
    shape.push_back(static_cast<std::int64_t>(extent));
  }
  return Shape(std::move(shape));
}

OpenFileArray::OpenFileArray(FileSystem& files, const FileArray& array)
    : label_(file_array_label(array.path, array.array)) {
  const format::ArrayFileKind kind = format::recognise_array_file(files, array.path);
  const format::ChosenArrays chosen(files, array.path, kind, {array.array});
  const format::ArrayInfo& info = chosen.arrays()[0];
  shape_ = shape_of_file_array(info.shape, label_);
  stored_ = info.dtype;
  dtype_ = converted_type(stored_, array.dtype, label_);
  const std::optional<format::StoredElements> stored = chosen.stored(0);
  if (!stored) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("the rows of {} cannot be read one by one, since it is compressed, column-major or in HDF5; "
                    "save it with numpy.save() or read it into memory",
                    label_));
  }
  offset_ = stored->offset;
  is_big_endian_ = stored->is_big_endian;
  // Opened once more, because the reader above ends with this function. From here on the file stays open, so another
  // file under its name does not matter.
  file_ = files.open_for_reading(array.path);
}

OpenFileArray::OpenFileArray(RawElements elements, Shape shape, DType dtype)
    : label_(std::move(elements.label)),
      file_(std::move(elements.file)),
      offset_(elements.offset),
      stored_(elements.dtype),
      dtype_(dtype),
      shape_(std::move(shape)) {}

void OpenFileArray::read(std::int64_t row, std::int64_t rows, std::span<std::byte> to) const {
  const std::uint64_t row_elements =
      shape_[0] == 0 ? 0 : static_cast<std::uint64_t>(shape_.element_count() / shape_[0]);
  const std::uint64_t first = static_cast<std::uint64_t>(row) * row_elements;
  const std::size_t count = static_cast<std::size_t>(rows) * row_elements;
  // Elements that stay as they are go to their place at once. Others need memory in the type of the file first.
  const bool is_same = stored_ == dtype_;
  std::vector<std::byte> memory(is_same ? 0 : count * size_bytes(stored_));
  const std::span<std::byte> bytes = is_same ? to : std::span<std::byte>(memory);
  if (bytes.empty()) return;
  if (file_->read_at(offset_ + first * size_bytes(stored_), bytes) != bytes.size()) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("{} became shorter: row {} is missing; files of a data set must not change", label_, row));
  }
  if (is_big_endian_) swap_elements(bytes, size_bytes(stored_));
  // A bool of C++ with another byte is undefined, and programs that write files may have stored 255 for true.
  const bool holds_truths =
      stored_ != DType::boolean || std::ranges::all_of(bytes, [](std::byte byte) { return byte <= std::byte{1}; });
  if (!holds_truths) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("{} is boolean but row {} holds bytes other than 0 and 1; use another copy of the file",
                            label_, row));
  }
  if (!is_same) convert_elements(bytes, stored_, to, dtype_, first, label_);
}

// For short rows the call would take longer than it saves.
void OpenFileArray::expect(std::int64_t row, std::int64_t rows) const {
  constexpr std::uint64_t kLeastBytes = 16U << 10;
  const std::uint64_t row_bytes = static_cast<std::uint64_t>(shape_.element_count() / shape_[0]) * size_bytes(stored_);
  const std::uint64_t bytes = row_bytes * static_cast<std::uint64_t>(rows);
  if (bytes >= kLeastBytes) file_->start_reading(offset_ + static_cast<std::uint64_t>(row) * row_bytes, bytes);
}

Digest OpenFileArray::digest() const {
  DigestBuilder builder;
  const std::int64_t rows = shape_[0];
  const std::int64_t row_bytes =
      rows == 0 ? 0 : shape_.element_count() / rows * static_cast<std::int64_t>(size_bytes(dtype_));
  if (row_bytes == 0) return builder.finish();
  const std::int64_t step = std::max<std::int64_t>(1, kDigestedBytes / row_bytes);
  std::vector<std::byte> piece;
  for (std::int64_t row = 0; row < rows; row += step) {
    const std::int64_t count = std::min(step, rows - row);
    // By rows, so no element is cut and each piece can be converted by itself. A
    // digest does not depend on how it is cut.
    piece.resize(static_cast<std::size_t>(count * row_bytes));
    read(row, count, piece);
    builder.update(piece);
  }
  return builder.finish();
}

}  // namespace holdfast
