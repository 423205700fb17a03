#include "holdfast/format/array_file.h"

#include <zstd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "hdf5/hdf5_file.h"
#include "holdfast/base/error.h"
#include "temporary_files.h"
#include "user_block.h"

namespace holdfast::format {
namespace {

// Files go to and from the disk in pieces of this size.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

[[noreturn]] void refuse(const std::string& path, const std::string& problem) {
  throw Error(ErrorCode::invalid_argument, "cannot write " + path + ": " + problem);
}

bool is_valid_part(std::string_view part) {
  return !part.empty() && part != "." && part != "..";
}

bool is_valid_name(std::string_view name) {
  if (name.size() > kMaxNameBytes) return false;
  std::size_t parts = 1;
  for (std::size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/'), ++parts) {
    if (!is_valid_part(name.substr(0, slash))) return false;
    name.remove_prefix(slash + 1);
  }
  return is_valid_part(name) && parts <= kMaxNameParts;
}

bool holds_nul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

bool is_utf8_text(const std::string& text) {
  if (holds_nul(text)) return false;
  try {
    // The JSON library is strict about UTF-8 in strings.
    static_cast<void>(nlohmann::json(text).dump());
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

void check_array(const std::string& path, const ArrayView& array) {
  if (!is_utf8_text(array.name)) refuse(path, "the name of an array is not UTF-8 text; rename the array");
  const std::string label = "array \"" + array.name + "\"";
  if (!is_valid_name(array.name)) {
    refuse(path, label + " has no valid name; use 1 to " + std::to_string(kMaxNameBytes) + " bytes in up to " +
                     std::to_string(kMaxNameParts) + " parts separated by '/', none of them empty, \".\" or \"..\"");
  }
  if (array.shape.size() > kMaxAxes) {
    refuse(path, label + " has " + std::to_string(array.shape.size()) + " axes, and the format has at most " +
                     std::to_string(kMaxAxes) + "; give it another shape");
  }
  std::uint64_t bytes = 0;
  if (!multiply_shape(array.shape, size_bytes(array.dtype), bytes) || bytes != array.bytes.size()) {
    refuse(path, label + " comes with " + std::to_string(array.bytes.size()) + " bytes, and its shape takes " +
                     std::to_string(bytes) + "; give it all its elements");
  }
}

// A name can be an array or a group of arrays, once.
void check_names(const std::string& path, std::span<const ArrayView> arrays) {
  std::set<std::string_view> names{kMetadataName};
  for (const ArrayView& array : arrays) {
    if (!names.insert(array.name).second) {
      refuse(path, "the name \"" + array.name + "\" is taken; rename one of the arrays (\"metadata\" is no array)");
    }
  }
  for (const ArrayView& array : arrays) {
    const std::string_view name = array.name;
    for (std::size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', slash + 1)) {
      if (names.contains(name.substr(0, slash))) {
        refuse(path, "\"" + array.name + "\" would lie inside the array \"" + array.name.substr(0, slash) +
                         "\"; rename one of them");
      }
    }
  }
}

void check_arguments(const std::string& path, std::string_view metadata_json, std::span<const ArrayView> arrays,
                     const WriteOptions& options) {
  // The JSON library takes a NUL for the end of its input, and a file would hand it back as padding.
  if (holds_nul(metadata_json) || !nlohmann::json::accept(metadata_json))
    refuse(path, "the metadata is not JSON; give a JSON text");
  if (options.zstd_level < ZSTD_minCLevel() || options.zstd_level > ZSTD_maxCLevel()) {
    refuse(path, "zstd has no level " + std::to_string(options.zstd_level) + "; choose 1 to " +
                     std::to_string(ZSTD_maxCLevel()));
  }
  for (const ArrayView& array : arrays) check_array(path, array);
  check_names(path, arrays);
}

std::vector<std::byte> compose(const std::string& path, std::string_view metadata_json,
                               std::span<const ArrayView> arrays, const WriteOptions& options) {
  std::vector<ArrayView> sorted(arrays.begin(), arrays.end());
  std::sort(sorted.begin(), sorted.end(), [](const ArrayView& a, const ArrayView& b) { return a.name < b.name; });
  try {
    return compose_hdf5(path, metadata_json, sorted, options);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, "no memory to compose " + path + "; free some memory and try again");
  }
}

// Returns the digest of what follows the header. The header goes last: a file without it is no file yet.
Digest write_pieces(File& file, std::span<const std::byte> image) {
  DigestBuilder builder;
  for (std::size_t offset = kUserBlockBytes; offset < image.size(); offset += kPieceBytes) {
    const auto piece = image.subspan(offset, std::min(kPieceBytes, image.size() - offset));
    builder.update(piece);
    file.write_at(offset, piece);
  }
  const Digest content = builder.finish();
  file.write_at(0, encode(UserBlock{.file_bytes = image.size(), .content = content}));
  return content;
}

std::vector<std::byte> read_verified(File& file, const std::string& path, UserBlock& block) {
  std::vector<std::byte> bytes(std::min<std::uint64_t>(file.size_bytes(), kUserBlockBytes));
  bytes.resize(file.read_at(0, bytes));
  block = decode_user_block(path, bytes, file.size_bytes());

  bytes.resize(block.file_bytes);
  DigestBuilder builder;
  for (std::size_t offset = kUserBlockBytes; offset < bytes.size(); offset += kPieceBytes) {
    const auto piece = std::span(bytes).subspan(offset, std::min(kPieceBytes, bytes.size() - offset));
    builder.update(piece.first(file.read_at(offset, piece)));
  }
  const Digest actual = builder.finish();
  if (actual != block.content) {
    throw Error(ErrorCode::invalid_file, path + " is damaged: its content has digest " + actual.hex() +
                                             " where its header says " + block.content.hex() +
                                             "; use another savepoint or a copy of this one");
  }
  return bytes;
}

}  // namespace

std::uint64_t size_bytes(const ArrayInfo& array) {
  std::uint64_t bytes = 0;
  HOLDFAST_ASSERT(multiply_shape(array.shape, size_bytes(array.dtype), bytes));
  return bytes;
}

Digest write_array_file(FileSystem& files, const std::string& path, std::string_view metadata_json,
                        std::span<const ArrayView> arrays, const WriteOptions& options) {
  check_arguments(path, metadata_json, arrays, options);
  const std::vector<std::byte> image = compose(path, metadata_json, arrays, options);

  const std::string temporary = temporary_path(path);
  std::unique_ptr<File> file = files.create(temporary);
  Digest content;
  try {
    content = write_pieces(*file, image);
    file->sync();
    file.reset();
    files.rename(temporary, path);
  } catch (...) {
    try {
      file.reset();
      files.remove(temporary);
    } catch (const Error&) {
      // The first error says more; remove_temporary_files finds what is left.
    }
    throw;
  }
  // After a power cut the folder could otherwise still hold the old name.
  files.sync_folder(parent_folder(path));
  return content;
}

struct ArrayFile::State {
  std::string path;
  UserBlock block;
  Hdf5Reader reader;
};

ArrayFile::ArrayFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
ArrayFile::~ArrayFile() = default;
ArrayFile::ArrayFile(ArrayFile&&) noexcept = default;
ArrayFile& ArrayFile::operator=(ArrayFile&&) noexcept = default;

ArrayFile ArrayFile::open(FileSystem& files, const std::string& path) {
  const std::unique_ptr<File> file = files.open_for_reading(path);
  UserBlock block;
  try {
    std::vector<std::byte> bytes = read_verified(*file, path, block);
    return ArrayFile(std::unique_ptr<State>(new State{path, block, Hdf5Reader(path, std::move(bytes))}));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, "no memory to load " + path + " of " + std::to_string(block.file_bytes) +
                                              " bytes; free some memory and try again");
  }
}

const std::string& ArrayFile::metadata() const {
  return state_->reader.metadata();
}

std::span<const ArrayInfo> ArrayFile::arrays() const {
  return state_->reader.arrays();
}

const ArrayInfo* ArrayFile::find(std::string_view name) const {
  const std::vector<ArrayInfo>& arrays = state_->reader.arrays();
  const auto found =
      std::lower_bound(arrays.begin(), arrays.end(), name,
                       [](const ArrayInfo& array, std::string_view wanted) { return array.name < wanted; });
  return found != arrays.end() && found->name == name ? &*found : nullptr;
}

const ArrayInfo& ArrayFile::get(std::string_view name) const {
  const ArrayInfo* array = find(name);
  if (array == nullptr) {
    throw Error(ErrorCode::not_found, state_->path + " has no array \"" + std::string(name) + "\" among its " +
                                          std::to_string(arrays().size()) + "; \"holdfast inspect\" lists them");
  }
  return *array;
}

std::vector<std::byte> ArrayFile::read(std::string_view name) const {
  const ArrayInfo& array = get(name);
  try {
    std::vector<std::byte> bytes(size_bytes(array));
    read_into(name, bytes);
    return bytes;
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, "no memory for the " + std::to_string(size_bytes(array)) +
                                              " bytes of array \"" + array.name + "\" of " + state_->path +
                                              "; free some memory and try again");
  }
}

void ArrayFile::read_into(std::string_view name, std::span<std::byte> out) const {
  const ArrayInfo& array = get(name);
  if (out.size() != size_bytes(array)) {
    throw Error(ErrorCode::invalid_argument, "array \"" + array.name + "\" of " + state_->path + " has " +
                                                 std::to_string(size_bytes(array)) + " bytes and was to be read into " +
                                                 std::to_string(out.size()) + "; give it as many as it has");
  }
  state_->reader.read(array, out);
  const Digest actual = digest(out);
  if (actual != array.digest) {
    throw Error(ErrorCode::invalid_file,
                "array \"" + array.name + "\" of " + state_->path + " has digest " + actual.hex() +
                    " where the file says " + array.digest.hex() +
                    "; use another savepoint, and check the memory of the machine that wrote it");
  }
}

Digest ArrayFile::file_digest() const {
  return state_->block.content;
}

std::uint64_t ArrayFile::file_bytes() const {
  return state_->block.file_bytes;
}

}  // namespace holdfast::format
