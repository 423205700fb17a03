#pragma once

#include <string>
#include <string_view>

namespace holdfast {

// Whether `text` is UTF-8 as Unicode defines it (no overlong forms, no surrogates, nothing above U+10FFFF) without NUL.
bool is_utf8(std::string_view text);

// `text` of an unknown file, for an error that users see: in quotation marks, of bounded length, control characters and
// what is not UTF-8 as \x1b.
std::string shown(std::string_view text);

}  // namespace holdfast
