#pragma once

// Values as text for people.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// `text` with a '?' for each control character. Text from an unknown file could contain commands to the terminal.
std::string printable(std::string_view text);

// "[3, 4]"; "[]" for a scalar.
std::string describe_shape(const std::vector<std::uint64_t>& shape);

// Six significant digits: "0.000123457", "1.5e+10", "nan".
std::string describe_number(double value);

// "1 array", "2 arrays".
std::string describe_count(std::int64_t count, const std::string& noun);

// The size in memory divided by the size in the file: "1.19". "-" when the size in the file is not known.
std::string describe_ratio(std::uint64_t bytes, std::uint64_t stored_bytes);

// At most `most` bytes of the text; "..." follows where it was cut.
std::string shortened(const std::string& text, std::size_t most);

std::string joined(const std::vector<std::string>& parts, const std::string& separator);

}  // namespace holdfast::cli
