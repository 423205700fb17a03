#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast {

// Text out of a file, for a sentence that a user reads. Control characters, which a terminal would obey, and what is
// not UTF-8 are shown as "\x1b". A text of more than `most` bytes is cut between two characters, and its length is
// given.
std::string shown_text(std::string_view text, std::size_t most = 200);

// The same in quotation marks; where it was cut, it ends with "...".
std::string quoted_text(std::string_view text, std::size_t most = 200);

}  // namespace holdfast
