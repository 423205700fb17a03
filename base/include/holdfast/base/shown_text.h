#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast {

// Text out of a file, for a sentence that a user reads: control characters, which a terminal would obey or which would
// end the sentence, and bytes that are not ASCII stand there as "\x1b"; a long one is cut, and its length is said.
std::string shown_text(std::string_view text, std::size_t most = 200);

}  // namespace holdfast
