// A sample is a run of ids, so it is read with one call, where window() after a source of single ids would make one for
// each. Ids are i32 in a sample and in the digest, whatever the file has: the description is that of the ids.
// docs/decisions/array-files.md

#include "holdfast/data/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/files/token_array.h"
#include "data/stages/stage.h"
#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {
namespace {

// Targets are f32, which counts whole numbers up to here.
constexpr std::int64_t kMostTokenIds = std::int64_t{1} << 24;
// What is looked at once before training: 4 MiB, so that a disk reads in long runs. It is even, so that the check for
// halves below may count places within a piece.
constexpr std::int64_t kIdsAtOnce = std::int64_t{1} << 20;
// A file of fewer ids may well have 0 at every second position.
constexpr std::int64_t kLeastIdsOfHalves = 64;

// A range of the ids of an array, each of which is below the vocabulary.
struct TokenRange {
  std::shared_ptr<const TokenArray> ids;
  std::int64_t begin;
  std::int64_t size;
  std::int64_t vocabulary;
};

// The index of the first id that the vocabulary does not have. A negative id is a large number without its sign.
std::optional<std::size_t> first_unknown(std::span<const std::int32_t> ids, std::int64_t vocabulary) {
  const auto found = std::ranges::find_if(
      ids, [&](std::int32_t id) { return static_cast<std::uint32_t>(id) >= static_cast<std::uint64_t>(vocabulary); });
  if (found == ids.end()) return std::nullopt;
  return static_cast<std::size_t>(found - ids.begin());
}

// Looks at each id once. Throws as Tokens::windows() does.
Digest checked_digest(const TokenRange& range) {
  DigestBuilder builder;
  std::vector<std::int32_t> piece;
  bool has_even = false;
  bool has_odd = false;
  for (std::int64_t at = 0; at < range.size; at += kIdsAtOnce) {
    piece.resize(static_cast<std::size_t>(std::min(kIdsAtOnce, range.size - at)));
    range.ids->read(range.begin + at, piece);
    if (const auto unknown = first_unknown(piece, range.vocabulary)) {
      throw range.ids->error(fmt::format(
          "id {} at position {} of {} is not below the vocabulary of {}; give the vocabulary of the tokenizer that "
          "made the ids, and the type in which they were written (here {})",
          piece[*unknown], range.begin + at + static_cast<std::int64_t>(*unknown), range.ids->label(), range.vocabulary,
          name(range.ids->stored())));
    }
    for (std::size_t i = 0; i < piece.size(); i += 2) {
      has_even = has_even || piece[i] != 0;
      has_odd = has_odd || (i + 1 < piece.size() && piece[i + 1] != 0);
    }
    builder.update(std::as_bytes(std::span(piece)));
  }
  // The upper halves of integers of 32 bits. They are ids of any vocabulary, so nothing else would tell.
  const bool are_halves = range.ids->is_in_file() && range.ids->stored() == DType::u16 &&
                          range.size >= kLeastIdsOfHalves && has_even != has_odd;
  if (are_halves) {
    throw range.ids->error(fmt::format(
        "every second id of {} is 0, as where integers of 32 bits are read as u16; give it as .dtype = DType::i32",
        range.ids->label()));
  }
  return builder.finish();
}

// Targets have the type that an array has by default, f32, in which the sparse losses take class numbers.
SampleLayouts layouts_of_tokens(std::int64_t length) {
  return {.inputs = RowLayout({{.name = "ids", .shape = {length}, .dtype = DType::i32}}),
          .targets = RowLayout({{.name = "next", .shape = {length}}})};
}

class TokenWindowsSource : public SourceStage {
 public:
  TokenWindowsSource(TokenRange range, std::int64_t length, std::int64_t stride)
      // One id more than the length: the target of the last position.
      : SourceStage(layouts_of_tokens(length), (range.size - 1 - length) / stride + 1),
        range_(std::move(range)),
        length_(length),
        stride_(stride),
        digest_(checked_digest(range_)) {}

  void load(std::uint64_t, std::int64_t, std::int64_t position, Sample destination) const override {
    // The target of a position is the id after it, so one read of an id more gives both.
    const std::vector<std::int32_t> ids = read(position, 0, length_ + 1);
    std::memcpy(destination.features.data(), ids.data(), destination.features.size_bytes());
    std::copy(ids.begin() + 1, ids.end(), destination.targets.begin());
  }

  void load_targets(std::uint64_t, std::int64_t, std::int64_t position, std::span<float> targets) const override {
    std::ranges::copy(read(position, 1, length_), targets.begin());
  }

  bool reads_files() const override { return range_.ids->is_in_file(); }
  void expect(std::uint64_t, std::int64_t, std::int64_t position) const override {
    range_.ids->expect(range_.begin + position * stride_, length_ + 1);
  }

  std::string place(std::int64_t position) const override {
    return fmt::format("from id {} of {} on", range_.begin + position * stride_, range_.ids->label());
  }
  std::string content() const override {
    return fmt::format("tokens {} {} {} {}", range_.size, digest_.hex(), length_, stride_);
  }

  // The vocabulary is left out: the samples are the same.
  void describe(nlohmann::ordered_json& stages) const override {
    stages.push_back({{"kind", "tokens"},
                      {"ids", range_.size},
                      {"digest", digest_.hex()},
                      {"length", length_},
                      {"stride", stride_}});
  }

 private:
  // The ids of a sample from `offset` on. They were checked before, but a file may have changed since.
  std::vector<std::int32_t> read(std::int64_t position, std::int64_t offset, std::int64_t count) const {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
    const std::int64_t begin = range_.begin + position * stride_ + offset;
    range_.ids->read(begin, ids);
    if (const auto unknown = first_unknown(ids, range_.vocabulary)) {
      throw range_.ids->error(fmt::format(
          "id {} at position {} of {} is not below the vocabulary of {}, as all ids were when the data was opened; "
          "files of a data set must not change",
          ids[*unknown], begin + static_cast<std::int64_t>(*unknown), range_.ids->label(), range_.vocabulary));
    }
    return ids;
  }

  TokenRange range_;
  std::int64_t length_;
  std::int64_t stride_;
  Digest digest_;  // of all ids as i32
};

// Throws Error{invalid_file} for a file that NumPy wrote with a header: read as ids, it would train.
void refuse_numpy(File& file, const std::string& path) {
  constexpr std::array<std::uint8_t, 6> kStart = {0x93, 'N', 'U', 'M', 'P', 'Y'};
  std::array<std::byte, kStart.size()> start{};
  const bool is_numpy =
      file.read_at(0, start) == start.size() && std::memcmp(start.data(), kStart.data(), start.size()) == 0;
  if (!is_numpy) return;
  throw Error(
      ErrorCode::invalid_file,
      fmt::format("{} is a file of NumPy, not of ids alone; open_tokens({{.path = ...}}) reads it", quoted_path(path)));
}

}  // namespace

Tokens::Tokens(Tensor ids) : ids_(std::make_shared<const TokenArray>(std::move(ids))), begin_(0), size_(ids_->size()) {}

TokensSplit Tokens::split(double for_validation) const {
  if (!(for_validation > 0 && for_validation < 1) || size_ < 2) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("split() needs a fraction between 0 and 1 and two ids or more, not {} and {}",
                            for_validation, size_));
  }
  const auto wanted = static_cast<std::int64_t>(std::floor(for_validation * static_cast<double>(size_)));
  const std::int64_t validation = std::clamp<std::int64_t>(wanted, 1, size_ - 1);
  return {.training = Tokens(ids_, begin_, size_ - validation),
          .validation = Tokens(ids_, begin_ + size_ - validation, validation)};
}

Dataset Tokens::windows(std::int64_t length, const TokenWindows& options) const {
  if (length < 1 || options.stride < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("windows() needs a length of at least 1, and a stride of at least 1 or 0 for the length, "
                            "not {} and {}",
                            length, options.stride));
  }
  if (options.vocabulary < 1 || options.vocabulary > kMostTokenIds) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("windows() needs the vocabulary of the ids, from 1 to {}, not {}", kMostTokenIds,
                            options.vocabulary));
  }
  if (length >= size_) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has {} ids here, and a window of {} needs one more than its length; take a shorter "
                            "length or more ids",
                            ids_->label(), size_, length));
  }
  return Dataset(std::make_shared<TokenWindowsSource>(
      TokenRange{.ids = ids_, .begin = begin_, .size = size_, .vocabulary = options.vocabulary}, length,
      options.stride == 0 ? length : options.stride));
}

Tokens open_raw_tokens(const std::string& path, const RawTokens& options) {
  if ((options.dtype != DType::u16 && options.dtype != DType::i32) || options.header_bytes < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("open_raw_tokens() reads ids of u16 or i32 after a header of 0 bytes or more, not of {} "
                            "after {}; save other types with numpy.save(), for open_tokens()",
                            name(options.dtype), options.header_bytes));
  }
  std::unique_ptr<File> file = posix_file_system().open_for_reading(path);
  // A program that gives the size of a header may mean NumPy's.
  if (options.header_bytes == 0) refuse_numpy(*file, path);
  const auto header = static_cast<std::uint64_t>(options.header_bytes);
  const std::uint64_t bytes = file->size_bytes();
  const std::uint64_t id_bytes = size_bytes(options.dtype);
  // OpenFileArray trusts that the file is as long as the shape says, so the size is compared here.
  if (bytes < header || (bytes - header) % id_bytes != 0) {
    throw Error(
        ErrorCode::invalid_file,
        fmt::format("{} has {} bytes, which is not a header of {} and whole ids of {} bytes ({}): it was cut off "
                    "within an id, or has another type or header",
                    quoted_path(path), bytes, header, id_bytes, name(options.dtype)));
  }
  OpenFileArray array({.label = quoted_path(path), .file = std::move(file), .offset = header, .dtype = options.dtype},
                      Shape{static_cast<std::int64_t>((bytes - header) / id_bytes)}, DType::i32);
  auto ids = std::make_shared<const TokenArray>(std::move(array));
  return Tokens(ids, 0, ids->size());
}

Tokens open_tokens(const FileArray& array) {
  auto ids = std::make_shared<const TokenArray>(
      OpenFileArray(posix_file_system(), {.path = array.path, .array = array.array, .dtype = DType::i32}));
  return Tokens(ids, 0, ids->size());
}

}  // namespace holdfast
