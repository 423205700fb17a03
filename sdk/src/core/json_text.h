#pragma once

// Numbers and strings in names and configurations. These are compared as text, so the same value must always give the
// same characters.

#include <string>
#include <string_view>

namespace holdfast {

// The shortest decimal that reads back as the same float: "0.001", "1e-07". Asserts that the value is finite.
std::string json_number(float value);

// The float that `text` spells from its first to its last character. Throws Error{invalid_argument} for anything else,
// infinities and NaN included.
float float_from_text(std::string_view text);

// The JSON string for `text`, with quotes and escapes. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

// Whether lists and objects are nested more than a thousand levels deep, which no text of Holdfast's is. The JSON
// library copies and prints by recursion, so ask before it parses a text of unknown origin.
bool is_deep_json(std::string_view text);

}  // namespace holdfast
