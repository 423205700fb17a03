#pragma once

#include <string_view>

namespace holdfast {

// Whether `text` is UTF-8 as Unicode defines it (no overlong forms, no surrogates, nothing above U+10FFFF) without NUL.
bool is_utf8(std::string_view text);

}  // namespace holdfast
