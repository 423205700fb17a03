// A vocabulary is a sorted list of characters; an id is a place in it. Looking up is a table by code point, since a
// text has millions of characters and few different ones. A text of JSON may come from anywhere, so it is checked.
// See docs/decisions/tables.md.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/json_text.h"
#include "data/tables/encoder_file.h"
#include "data/tables/text_characters.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/base/utf8.h"
#include "holdfast/data/text.h"

namespace holdfast {

struct TextEncoder::Vocabulary {
  TextUnit unit = TextUnit::characters;
  bool has_other = false;
  std::vector<std::string> characters;
  std::unordered_map<std::string_view, std::int32_t> ids;  // views of `characters`

  // The list never changes afterwards, so the views stay valid.
  void number_characters() {
    std::int32_t next = has_other ? 1 : 0;
    for (const std::string& character : characters) ids.emplace(character, next++);
  }
};

namespace {

// Both stand in the files of users. Another meaning of any member needs another version.
constexpr const char* kTextEncoderFormat = "holdfast text encoder";
constexpr int kTextEncoderVersion = 1;
constexpr std::int64_t kByteIds = 256;
// Targets are f32, which counts whole numbers up to 2^24.
constexpr std::int64_t kMostTextIds = std::int64_t{1} << 24;
// What Unicode has for a character that cannot be shown, and so what stands for those of id 0.
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

Error damaged_text_encoder(const std::string& reason) {
  return Error(
      ErrorCode::invalid_file,
      fmt::format("the text is not that of a text encoder: {}; take one that TextEncoder::text() wrote", reason));
}

nlohmann::json parse_text_encoder(std::string_view text) {
  if (is_deep_json(text)) throw damaged_text_encoder("it is nested too deeply");
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) throw damaged_text_encoder("it is not a JSON object");
  // Compared as values: a member that is missing or has another type is not equal.
  const auto is = [&](const char* name, const nlohmann::json& value) {
    const auto found = json.find(name);
    return found != json.end() && *found == value;
  };
  if (!is("format", kTextEncoderFormat) || !is("version", kTextEncoderVersion)) {
    throw damaged_text_encoder(
        fmt::format("its format and version are not \"{}\" and {}", kTextEncoderFormat, kTextEncoderVersion));
  }
  if (!is("unit", "characters") && !is("unit", "bytes")) throw damaged_text_encoder("its unit is not known");
  return json;
}

// One character each, in their order, none twice.
std::vector<std::string> characters_of(const nlohmann::json& json) {
  const auto list = json.find("vocabulary");
  if (list == json.end() || !list->is_array()) throw damaged_text_encoder("it has no list \"vocabulary\"");
  std::vector<std::string> characters;
  for (const nlohmann::json& entry : *list) {
    const auto* text = entry.get_ptr<const std::string*>();
    const bool is_character =
        text != nullptr && !text->empty() && is_utf8(*text) && bytes_of_first_character(*text) == text->size();
    if (!is_character) throw damaged_text_encoder(fmt::format("entry {} is not a character", characters.size()));
    // Sorted means in the order of code points, and no character twice. Ids are places in the list, so another order
    // would be another encoder.
    if (!characters.empty() && characters.back() >= *text) throw damaged_text_encoder("its vocabulary is not sorted");
    characters.push_back(*text);
  }
  if (static_cast<std::int64_t>(characters.size()) >= kMostTextIds) throw damaged_text_encoder("it is too long");
  return characters;
}

}  // namespace

TextEncoder TextEncoder::fit(const Text& training, const TextEncoderOptions& options) {
  auto vocabulary = std::make_shared<Vocabulary>();
  vocabulary->unit = training.unit();
  if (training.unit() == TextUnit::bytes) return TextEncoder(std::move(vocabulary));
  // Its file could not be read back: from_text() takes an empty vocabulary for damage.
  if (training.size() == 0) {
    throw Error(ErrorCode::invalid_argument,
                "a text encoder cannot be fitted to an empty text, which has no character to number; give it the text "
                "for training");
  }
  vocabulary->has_other = options.unknown == UnknownCategory::other;
  // The order of the bytes of UTF-8 is that of code points.
  std::set<std::string_view> found;
  for (std::string_view rest = training.content(); !rest.empty();) {
    const std::size_t bytes = bytes_of_first_character(rest);
    found.insert(rest.substr(0, bytes));
    rest.remove_prefix(bytes);
  }
  if (static_cast<std::int64_t>(found.size()) >= kMostTextIds) {
    throw Error(ErrorCode::unsupported, fmt::format("a text has {} different characters; at most {} are supported",
                                                    found.size(), kMostTextIds - 1));
  }
  vocabulary->characters.assign(found.begin(), found.end());
  // After the list is complete: the map holds views of its strings, and a longer vector would move short ones.
  vocabulary->number_characters();
  return TextEncoder(std::move(vocabulary));
}

TextUnit TextEncoder::unit() const {
  return vocabulary_->unit;
}

std::int64_t TextEncoder::ids() const {
  if (unit() == TextUnit::bytes) return kByteIds;
  return static_cast<std::int64_t>(vocabulary_->characters.size()) + (vocabulary_->has_other ? 1 : 0);
}

const std::vector<std::string>& TextEncoder::vocabulary() const {
  return vocabulary_->characters;
}

Tensor TextEncoder::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  // At most as many ids as bytes; a text of other letters than ASCII gives fewer.
  ids.reserve(text.size());
  if (unit() == TextUnit::bytes) {
    for (const char byte : text) ids.push_back(static_cast<std::uint8_t>(byte));
    return Tensor(Shape{static_cast<std::int64_t>(ids.size())}, ids);
  }
  if (const auto bad = find_bad_character(text)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a text cannot be encoded: {} is not a character of UTF-8", place_in_text(text, *bad)));
  }
  for (std::size_t offset = 0; offset < text.size();) {
    const std::string_view character = text.substr(offset, bytes_of_first_character(text.substr(offset)));
    const auto found = vocabulary_->ids.find(character);
    if (found == vocabulary_->ids.end() && !vocabulary_->has_other) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("character {} at {} is not in the text for training; fit the encoder with "
                              "UnknownCategory::other, or leave it out",
                              quoted_text(character), place_in_text(text, offset)));
    }
    ids.push_back(found == vocabulary_->ids.end() ? 0 : found->second);
    offset += character.size();
  }
  return Tensor(Shape{static_cast<std::int64_t>(ids.size())}, ids);
}

// Sample i is the unit i with the unit i + 1 as its target, so both tensors are the same ids, shifted by one. window()
// cuts them into sequences later, at any length, without encoding again.
Dataset TextEncoder::dataset(const Text& text) const {
  if (text.unit() != unit() || text.size() < 2) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a data set needs a text of two or more {}, as the encoder was fitted to, not {} of {}",
                            unit() == TextUnit::bytes ? "bytes" : "characters", text.size(),
                            text.unit() == TextUnit::bytes ? "bytes" : "characters"));
  }
  const Tensor ids = encode(text.content());
  const std::span<const std::int32_t> all = ids.elements<std::int32_t>();
  Tensor inputs(Shape{text.size() - 1}, std::vector<std::int32_t>(all.begin(), all.end() - 1));
  Tensor targets(Shape{text.size() - 1}, std::vector<float>(all.begin() + 1, all.end()));
  return from_tensors(std::move(inputs), std::move(targets));
}

std::string TextEncoder::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= this->ids()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} is not an id of this encoder, which has ids 0 to {}", id, this->ids() - 1));
    }
    if (unit() == TextUnit::bytes) {
      text += static_cast<char>(id);
    } else if (vocabulary_->has_other && id == 0) {
      // So text that was encoded with `other` does not come back as it was; nothing else is lost.
      text += kReplacement;
    } else {
      text += vocabulary_->characters[static_cast<std::size_t>(id - (vocabulary_->has_other ? 1 : 0))];
    }
  }
  return text;
}

// Members in a fixed order, and the vocabulary is sorted: equal encoders have equal texts.
std::string TextEncoder::text() const {
  nlohmann::ordered_json json = {{"format", kTextEncoderFormat},
                                 {"version", kTextEncoderVersion},
                                 {"unit", unit() == TextUnit::bytes ? "bytes" : "characters"}};
  if (unit() == TextUnit::characters) {
    json["other"] = vocabulary_->has_other;
    json["vocabulary"] = vocabulary_->characters;
  }
  return json.dump();
}

TextEncoder TextEncoder::from_text(std::string_view text) {
  const nlohmann::json json = parse_text_encoder(text);
  auto vocabulary = std::make_shared<Vocabulary>();
  // A byte is its own id, so the text has no vocabulary.
  if (json["unit"] == "bytes") {
    vocabulary->unit = TextUnit::bytes;
    return TextEncoder(std::move(vocabulary));
  }
  const auto other = json.find("other");
  if (other == json.end() || !other->is_boolean()) throw damaged_text_encoder("\"other\" is neither true nor false");
  vocabulary->has_other = other->get<bool>();
  vocabulary->characters = characters_of(json);
  if (vocabulary->characters.empty()) throw damaged_text_encoder("its vocabulary is empty");
  vocabulary->number_characters();
  return TextEncoder(std::move(vocabulary));
}

void TextEncoder::save(const std::string& path) const {
  save_encoder(*this, path);
}

TextEncoder TextEncoder::load(const std::string& path) {
  return load_encoder<TextEncoder>(path);
}

}  // namespace holdfast
