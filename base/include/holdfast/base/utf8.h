#pragma once

// One check for every text that comes from a file or a peer and is shown, stored or compared.

#include <string_view>

namespace holdfast {

// Whether `text` is UTF-8 as Unicode defines it: no overlong forms, no surrogates, nothing above
// U+10FFFF. A NUL is refused too, because C functions would take it for the end.
bool is_utf8(std::string_view text);

}  // namespace holdfast
