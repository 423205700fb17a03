// The reading half of array_file.h. Each part of the file is checked against its digest before it is
// parsed: header, index, metadata, then each piece. HDF5 is not needed to read, so its parser never sees
// a file of unknown origin here. See docs/decisions/savepoint-file.md.

#include "holdfast/format/array_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "container/index.h"
#include "container/names.h"
#include "container/piece_reader.h"
#include "container/user_block.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shape_bytes.h"

namespace holdfast::format {
namespace {

// Structures may be as large as the index of a file with many chunks, so they are digested in parts.
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

// Exactly `count` bytes, which exist according to the header.
std::vector<std::byte> read_range(File& file, const std::string& path, std::uint64_t offset, std::uint64_t count) {
  std::vector<std::byte> bytes(count);
  if (file.read_at(offset, bytes) != count) fail_damaged(path, "it ends in the middle of what its header promises");
  return bytes;
}

// A file may be shorter than a header. decode_user_block() then says what is wrong with it.
UserBlock read_user_block(File& file, const std::string& path) {
  const std::uint64_t file_bytes = file.size_bytes();
  std::vector<std::byte> head(std::min<std::uint64_t>(file_bytes, kUserBlockBytes));
  head.resize(file.read_at(0, head));
  return decode_user_block(path, head, file_bytes);
}

// The digest is checked before the first number is parsed, so the decoder never sees damage.
Index read_index(File& file, const std::string& path, const UserBlock& block) {
  const std::vector<std::byte> bytes = read_range(file, path, block.index_offset, block.index_bytes);
  // Both digests go into the sentence: the owner of the file can compare them with those of a copy.
  const Digest actual = digest(bytes);
  if (actual != block.index_digest) {
    fail_damaged(
        path, fmt::format("its index has digest {}, and its header says {}", actual.hex(), block.index_digest.hex()));
  }
  return decode_index(path, bytes, block.index_offset);
}

// The digest of HDF5's superblock and structures, which only other programs read.
Digest digest_of_structure(File& file, const std::string& path, const Index& index) {
  DigestBuilder builder;
  builder.update(read_range(file, path, kUserBlockBytes, kDataOffset - kUserBlockBytes));
  for (std::uint64_t done = 0; done < index.hdf5_bytes; done += kBufferBytes) {
    const std::uint64_t count = std::min<std::uint64_t>(kBufferBytes, index.hdf5_bytes - done);
    builder.update(read_range(file, path, index.hdf5_offset + done, count));
  }
  return builder.finish();
}

}  // namespace

struct ArrayFile::State {
  std::string path;
  ReadOptions options;
  std::unique_ptr<File> file;
  UserBlock block;
  Index index;
  std::string metadata;
  std::vector<ArrayInfo> infos;

  // The decoder of the index has checked that arrays are sorted by name.
  const IndexedArray* find(std::string_view name) const {
    const auto found =
        std::lower_bound(index.arrays.begin(), index.arrays.end(), name,
                         [](const IndexedArray& array, std::string_view wanted) { return array.info.name < wanted; });
    return found != index.arrays.end() && found->info.name == name ? &*found : nullptr;
  }

  const IndexedArray& get(std::string_view name) const {
    const IndexedArray* array = find(name);
    if (array == nullptr) {
      throw Error(ErrorCode::not_found,
                  fmt::format("{} has no array \"{}\" among its {} arrays; \"holdfast inspect\" lists them", path, name,
                              infos.size()));
    }
    return *array;
  }

  // A target of another size is a mistake of the caller: the rest of the array would be missing, or never be filled.
  ReadTarget target(const Target& target) const {
    const IndexedArray& array = get(target.name);
    if (target.out.size() != size_bytes(array.info)) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("array \"{}\" of {} has {} bytes and cannot be read into {}; pass memory of exactly its size",
                      array.info.name, path, size_bytes(array.info), target.out.size()));
    }
    return {&array, target.out};
  }

  void read_metadata() {
    // The metadata is stored as an array, so it is read and checked like one.
    metadata.resize(size_bytes(index.metadata.info));
    const ReadTarget text{&index.metadata, std::as_writable_bytes(std::span(metadata))};
    read_pieces(*file, path, std::span(&text, 1), {.threads = 1});
    if (metadata.find('\0') != std::string::npos || !nlohmann::json::accept(metadata)) {
      fail_not_allowed(path, "its metadata is not JSON");
    }
  }
};

ArrayFile::ArrayFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
ArrayFile::~ArrayFile() = default;
ArrayFile::ArrayFile(ArrayFile&&) noexcept = default;
ArrayFile& ArrayFile::operator=(ArrayFile&&) noexcept = default;

ArrayFile ArrayFile::open(FileSystem& files, const std::string& path, const ReadOptions& options) {
  if (options.threads < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("cannot read {} with {} threads; use 0 for all cores, or more", path, options.threads));
  }
  auto state = std::make_unique<State>();
  state->path = path;
  state->options = options;
  state->file = files.open_for_reading(path);
  // The header comes first: it says where the index is, and it has the digest of the index.
  state->block = read_user_block(*state->file, path);
  try {
    // What the index needs in memory is in proportion to its size, whatever it claims.
    state->index = read_index(*state->file, path, state->block);
    state->read_metadata();
    for (const IndexedArray& array : state->index.arrays) state->infos.push_back(array.info);
  } catch (const std::bad_alloc&) {
    throw Error(
        ErrorCode::out_of_memory,
        fmt::format("cannot read {}: there is no memory for its index of {} bytes; free some memory and try again",
                    path, state->block.index_bytes));
  }
  return ArrayFile(std::move(state));
}

const std::string& ArrayFile::metadata() const {
  return state_->metadata;
}

std::span<const ArrayInfo> ArrayFile::arrays() const {
  return state_->infos;
}

const ArrayInfo* ArrayFile::find(std::string_view name) const {
  const IndexedArray* array = state_->find(name);
  return array == nullptr ? nullptr : &array->info;
}

std::vector<std::byte> ArrayFile::read(std::string_view name) const {
  const std::uint64_t count = size_bytes(state_->get(name).info);
  try {
    // The index was checked, so the size is right. It may still be more than this machine has.
    std::vector<std::byte> bytes(count);
    read_into(name, bytes);
    return bytes;
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("there is no memory for the {} bytes of array \"{}\" of {}; free some memory and try again",
                            count, name, state_->path));
  }
}

void ArrayFile::read_into(std::string_view name, std::span<std::byte> out) const {
  const Target target{name, out};
  read_into(std::span(&target, 1));
}

void ArrayFile::read_into(std::span<const Target> targets, const std::function<void(const Arrival&)>& arrived) const {
  std::vector<ReadTarget> read_targets;
  for (const Target& target : targets) read_targets.push_back(state_->target(target));
  read_pieces(*state_->file, state_->path, read_targets, {.threads = state_->options.threads, .arrived = arrived});
}

void ArrayFile::read_parts(std::string_view name, const std::function<void(std::span<const std::byte>)>& take) const {
  // Large enough to keep all threads busy, and small next to an array that does not fit into memory.
  constexpr std::size_t kPartBytes = std::size_t{64} << 20;
  read_pieces_in_order(*state_->file, state_->path, state_->get(name),
                       {.threads = state_->options.threads, .part_bytes = kPartBytes, .take = take});
}

void ArrayFile::verify_structure() const {
  if (digest_of_structure(*state_->file, state_->path, state_->index) != state_->index.structure) {
    fail_damaged(state_->path, "HDF5's structures do not have the digest that is in its index");
  }
}

void ArrayFile::verify(const std::function<void(std::uint64_t done, std::uint64_t total)>& progress) const {
  // The structures come first: they are small, and a damaged file is found sooner.
  verify_structure();
  verify_pieces(*state_->file, state_->path, state_->index, {.threads = state_->options.threads, .progress = progress});
}

Digest ArrayFile::file_digest() const {
  return state_->block.index_digest;
}

std::uint64_t ArrayFile::file_bytes() const {
  return state_->block.file_bytes;
}

}  // namespace holdfast::format
