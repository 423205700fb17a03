#pragma once

// Makes text of unknown origin safe to show in a sentence: a name out of a file, a message of a peer.
//
//   "array " + quoted_text(name) + " has no data"    array "conv\x1b[2J" has no data

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast {

// The text for a sentence that a user reads. Control characters, which a terminal would obey, and bytes
// that are not UTF-8 are escaped: "\x1b". A text whose escaped form has more than `most` bytes is cut
// between two characters; "... (N bytes)" then gives its full length.
std::string shown_text(std::string_view text, std::size_t most = 200);

// The same in quotation marks. A text that was cut ends with "...".
std::string quoted_text(std::string_view text, std::size_t most = 200);

// The same for a path. One whose escaped form has more than 400 bytes keeps its first 100 and its
// last 300, so that the file is still named: "/data/runs...ings/0012.csv".
std::string quoted_path(std::string_view path);

}  // namespace holdfast
