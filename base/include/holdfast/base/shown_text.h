#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast {

// Text out of a file, for a sentence that a user reads. Control characters, which a terminal would obey, and bytes that
// are not ASCII are shown as "\x1b". A long text is cut, and its length is given.
std::string shown_text(std::string_view text, std::size_t most = 200);

}  // namespace holdfast
