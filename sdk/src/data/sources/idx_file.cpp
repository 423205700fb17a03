// Files come from outside, so nothing in them is believed: memory grows with the bytes that arrive, not
// with what the header promises, and a cut, damaged or padded file is refused with a reason. zlib reads
// plain and compressed files alike.

#include "data/sources/idx_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <span>

#include "data/sources/gzip_reader.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;
// The third byte of an IDX file is its element type: 08 unsigned byte, 09 signed byte, 0B to 0E wider numbers.
constexpr std::uint8_t kUnsignedByte = 0x08;

std::string count_of_bytes(std::int64_t bytes) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

void check_magic(const std::string& path, const GzipReader& reader, std::span<const std::uint8_t, 4> magic) {
  if (magic[0] != 0 || magic[1] != 0 || magic[2] < 0x08 || magic[2] > 0x0E) {
    reader.refuse(
        fmt::format("it begins with the bytes {:02x} {:02x} {:02x} {:02x}, not with 00 00, a type and a number "
                    "of axes",
                    magic[0], magic[1], magic[2], magic[3]));
  }
  if (magic[2] != kUnsignedByte) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{} is an IDX file of element type {}; only unsigned bytes (type 8) are read",
                            quoted_path(path), magic[2]));
  }
}

Shape read_shape(const std::string& path, GzipReader& reader) {
  std::array<std::uint8_t, 4> magic;
  if (reader.read(magic) < magic.size()) reader.refuse("it ends within its first 4 bytes");
  check_magic(path, reader, magic);
  // The number of axes is one byte, so this is at most 1020 bytes whatever the file says.
  std::vector<std::uint8_t> bytes(4 * static_cast<std::size_t>(magic[3]));
  if (reader.read(bytes) < bytes.size()) reader.refuse("it ends within the extents of its axes");
  std::vector<std::int64_t> extents;
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    // Extents are big-endian in this format.
    extents.push_back(std::int64_t{bytes[i]} << 24 | bytes[i + 1] << 16 | bytes[i + 2] << 8 | bytes[i + 3]);
  }
  // Shape counts its elements and notices an overflow. Here that is a damaged file, and not a wrong argument.
  try {
    return Shape(std::move(extents));
  } catch (const Error& error) {
    reader.refuse(error.what());
  }
}

// Grows with the bytes that arrive: the header may promise more than the file, or the machine, has.
std::vector<std::uint8_t> read_elements(GzipReader& reader, std::int64_t promised) {
  std::vector<std::uint8_t> elements;
  // The elements grow by what has arrived, at most a piece at a time.
  std::vector<std::uint8_t> piece(kPieceBytes);
  for (;;) {
    const std::int64_t left = promised - static_cast<std::int64_t>(elements.size());
    // Asks for one byte more than is left, so that trailing bytes show up and the checksum of a gzip
    // stream is reached.
    const auto wanted = static_cast<std::size_t>(std::min<std::int64_t>(left, kPieceBytes - 1) + 1);
    const std::size_t count = reader.read({piece.data(), wanted});
    if (static_cast<std::int64_t>(count) > left) {
      reader.refuse(
          fmt::format("more bytes follow the {} of elements that its header promises", count_of_bytes(promised)));
    }
    elements.insert(elements.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
    if (count < wanted) break;
  }
  if (static_cast<std::int64_t>(elements.size()) < promised) {
    reader.refuse(fmt::format("its header promises {} of elements, but only {} follow", count_of_bytes(promised),
                              elements.size()));
  }
  return elements;
}

}  // namespace

IdxFile read_idx_file(const std::string& path, const IdxLimit& limit) {
  if (limit.bytes < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("reading {}: {} is 1 or more, not {}", quoted_path(path), limit.option, limit.bytes));
  }
  GzipReader reader(path, "IDX");
  Shape shape = read_shape(path, reader);
  const std::int64_t bytes = shape.element_count();
  // Before anything is read for it, and no more than that is: a small gzip stream may expand to gigabytes.
  if (bytes > limit.bytes) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("{} has {} of elements, more than the {} that {} allows; raise the limit to read the file",
                            quoted_path(path), count_of_bytes(bytes), limit.bytes, limit.option));
  }
  try {
    std::vector<std::uint8_t> elements = read_elements(reader, bytes);
    return {.shape = std::move(shape), .elements = std::move(elements)};
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("the {} of elements of {} do not fit into memory; convert the file to .npy, which "
                            "from_files() reads as batches need it",
                            count_of_bytes(bytes), quoted_path(path)));
  }
}

}  // namespace holdfast
