#pragma once

// How a source of several arrays stands in a description, wherever its arrays are.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace holdfast {

// `digests` are those of all inputs, then of all targets, in hexadecimal. Equal arrays give equal texts.
std::string content_of_arrays(std::int64_t size, const std::vector<std::string>& digests);
nlohmann::ordered_json description_of_arrays(const std::vector<std::string>& digests);

}  // namespace holdfast
