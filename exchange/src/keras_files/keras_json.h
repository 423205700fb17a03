#pragma once

// JSON from a file of another program. Length and depth are bounded before it is parsed, and it is read without
// exceptions of the JSON library.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bytes/json.h"

namespace holdfast::format {

// The longest text that is accepted. A parsed text takes up to about 30 times its length in memory.
inline constexpr std::size_t kMaxKerasJsonBytes = std::size_t{64} << 20;

// Parses `text`. The numbers NaN and Infinity, which Python writes and JSON lacks, become null. `label` names the
// text in errors: "the model's configuration in model.keras". Throws Error{invalid_file}.
Json parse_keras_json(std::string_view text, const std::string& label);
// Throws Error{invalid_file, "LABEL PROBLEM"} with the advice to save the model again.
[[noreturn]] void refuse_keras_model(const std::string& label, const std::string& problem);

// Returns the member, or null if `object` is not an object or lacks it.
const Json& member(const Json& object, std::string_view key);
// Returns an empty text if the member is not a text.
std::string text_member(const Json& object, std::string_view key);
// Empty unless `value` is an integer of 64 bits with a sign. Comparisons of the JSON library take larger ones for
// negative ones.
std::optional<std::int64_t> integer_value(const Json& value);
// Returns 0 if the member is not a number.
double number_member(const Json& object, std::string_view key);
// A number as a finite f32; `otherwise` for null. Missing for every other value.
std::optional<float> finite_f32(const Json& value, float otherwise);
// Returns `otherwise` if the member is not a boolean.
bool flag_member(const Json& object, std::string_view key, bool otherwise);

}  // namespace holdfast::format
