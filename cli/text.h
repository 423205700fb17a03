#pragma once

// Values as text for people.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// Without control characters, which in a stranger's file could be commands to the terminal; '?' stands for each.
std::string printable(std::string_view text);

// "[3, 4]"; "[]" for a scalar.
std::string describe_shape(const std::vector<std::uint64_t>& shape);

// With six digits: "0.000123457", "1.5e+10", "nan".
std::string describe_number(double value);

// "1 array", "2 arrays".
std::string describe_count(std::uint64_t count, const std::string& noun);

// How many times smaller the bytes lie in the file than in memory: "1.19"; "-" when nothing is known.
std::string describe_ratio(std::uint64_t bytes, std::uint64_t stored_bytes);

// At most so many bytes, "..." behind what was cut.
std::string shortened(const std::string& text, std::size_t most);

std::string joined(const std::vector<std::string>& parts, const std::string& separator);

}  // namespace holdfast::cli
