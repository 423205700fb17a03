#pragma once

// JSON from a stranger's file: bounded in length and depth before it is parsed, and read without exceptions of the
// JSON library.

#include <string>
#include <string_view>

#include "bytes/json.h"

namespace holdfast::format {

// The longest text; parsed, a text takes up to about 30 times its length in memory.
inline constexpr std::size_t kMaxKerasJsonBytes = std::size_t{64} << 20;

// `label` names the text in errors: "the model's configuration in model.keras". The numbers that Python writes and JSON
// lacks (NaN, Infinity) become null. Throws Error{invalid_file}.
Json parse_keras_json(std::string_view text, const std::string& label);
// Throws Error{invalid_file}, with what to do about it; `label` is what has the problem.
[[noreturn]] void refuse_keras_model(const std::string& label, const std::string& problem);

// The member, or null where `object` is no object or has none.
const Json& member(const Json& object, std::string_view key);
// Empty where it is no text.
std::string text_member(const Json& object, std::string_view key);
// 0 where it is no number.
double number_member(const Json& object, std::string_view key);
// `otherwise` where it is no boolean.
bool flag_member(const Json& object, std::string_view key, bool otherwise);

}  // namespace holdfast::format
