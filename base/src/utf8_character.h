#pragma once

#include <cstddef>
#include <string_view>

namespace holdfast {

// The length in bytes of the character that `text` begins with; 0 when it does not begin with UTF-8. U+0000 counts as
// not UTF-8.
std::size_t bytes_of_character(std::string_view text);

}  // namespace holdfast
