#pragma once

// Text as data: a file of characters or bytes, a vocabulary of those in the part for training, and samples that predict
// what comes next.
//
//   const auto [train, test] = read_text("shakespeare.txt").split(0.1);
//   const TextEncoder encoder = TextEncoder::fit(train);
//   const Dataset data = encoder.dataset(train).window(64, {.shift = 64, .targets = WindowTargets::all});
//   const Value ids = input({64}, {.dtype = DType::i32});
//   const Model model(ids, Dense{encoder.ids()}(Embedding{encoder.ids(), 32}(ids)));  // inputs [64], targets [64]
//   encoder.save("run/text.json");                           // for the program that writes text
//
// A Text and a TextEncoder are values: cheap to copy, and safe to use from several threads.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/tensor.h"
#include "holdfast/data/dataset.h"
#include "holdfast/data/table_encoder.h"

namespace holdfast {

// What one id stands for.
enum class TextUnit {
  characters,  // of UTF-8: Unicode code points
  bytes,       // of any content
};

struct TextOptions {
  TextUnit unit = TextUnit::characters;            // what ids will stand for
  std::int64_t max_bytes = std::int64_t{2} << 30;  // of the content, after decompression
};

struct TextSplit;

class Text {
 public:
  // Throws Error{invalid_argument} that names the byte and the line where characters are not UTF-8 or NUL.
  explicit Text(std::string content, TextUnit unit = TextUnit::characters);

  TextUnit unit() const { return unit_; }  // as the constructor was given
  // Valid as long as the object or a copy of it.
  std::string_view content() const { return content_; }
  // Characters or bytes.
  std::int64_t size() const { return size_; }

  // Keeps the end of the text for validation: a fraction of its units, rounded down, and at least one in each part.
  // Windows of the two parts never overlap. Throws Error{invalid_argument} unless 0 < fraction < 1, and for a text of
  // fewer than two units.
  TextSplit split(double for_validation) const;

 private:
  Text(std::shared_ptr<const std::string> owner, std::string_view content, TextUnit unit, std::int64_t size)
      : owner_(std::move(owner)), content_(content), unit_(unit), size_(size) {}

  std::shared_ptr<const std::string> owner_;
  std::string_view content_;
  TextUnit unit_;
  std::int64_t size_;
};

// The two parts that Text::split() makes.
struct TextSplit {
  Text training;    // from the start of the text
  Text validation;  // the rest
};

// The content of a file, plain or compressed by gzip; the content decides which. Characters
// leave out a UTF-8 byte order mark. Nothing else is changed: line ends stay as they are. Throws Error{not_found},
// {refused} or {input_output} if the file cannot be read, and Error{invalid_file} that names the file, the byte and the
// line of text that is not UTF-8 or NUL, a damaged gzip stream, an empty file, and a content above the limit.
Text read_text(const std::string& path, const TextOptions& options = {});

struct TextEncoderOptions {
  // What becomes of a character that the text for training did not have. With `other`, id 0 stands for all of them.
  UnknownCategory unknown = UnknownCategory::refuse;
};

// Turns text into ids and ids into text.
class TextEncoder {
 public:
  // The vocabulary of characters is that of `training`, in the order of their code points. Bytes have 256 ids, their
  // values, whatever the text holds. Throws Error{invalid_argument} for a text of characters that is empty, and
  // Error{unsupported} for more than 2^24 ids, which targets of f32 cannot count.
  static TextEncoder fit(const Text& training, const TextEncoderOptions& options = {});

  TextUnit unit() const;  // that of the text for training
  // The number of ids, for Embedding{encoder.ids(), n} and the last Dense.
  std::int64_t ids() const;
  // The characters by id, without the one for others. Empty for bytes.
  const std::vector<std::string>& vocabulary() const;

  // One sample for each unit but the last: its id as an i32 input of shape [], and the id of the next unit as an f32
  // target of shape [] for the sparse losses. window() makes inputs [n] of it, and targets [n] or the last one alone.
  // The description holds digests of the ids, as that of from_tensors(). Throws as encode(), and
  // Error{invalid_argument} for a text of fewer than two units or of another unit.
  Dataset dataset(const Text& text) const;

  // The ids of a text, i32 [units]. Throws Error{invalid_argument} that names the byte and the line of a character
  // that is not known, or of what is not UTF-8.
  Tensor encode(std::string_view text) const;
  // The text of ids; "\uFFFD" for the id of others. Throws Error{invalid_argument} for a number that is not an id.
  std::string decode(std::span<const std::int32_t> ids) const;

  // The encoder as JSON. Equal encoders have equal texts.
  std::string text() const;
  // Throws Error{invalid_file} for a text that is not one of text().
  static TextEncoder from_text(std::string_view text);
  // The same in a file, which is replaced in one step. Throw as the file system does; the error of load() names the
  // file.
  void save(const std::string& path) const;
  // The encoder that save() wrote.
  static TextEncoder load(const std::string& path);

 private:
  struct Vocabulary;
  explicit TextEncoder(std::shared_ptr<const Vocabulary> vocabulary) : vocabulary_(std::move(vocabulary)) {}

  std::shared_ptr<const Vocabulary> vocabulary_;
};

}  // namespace holdfast
