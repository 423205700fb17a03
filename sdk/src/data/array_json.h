#pragma once

// What stages share that handle samples of several arrays: how arrays are described, and which integers a model can
// read.

#include <cstdint>
#include <nlohmann/json.hpp>

#include "data/stage.h"

namespace holdfast {

// [{"name": "ids", "shape": [128], "dtype": "i32"}, ...]
nlohmann::ordered_json json_of(const RowLayout& layout);

// Models compute with 32-bit integers. Throws Error{invalid_argument} that names the array, the element and the sample
// of an i64 that is none.
void check_integers(const SampleLayouts& layouts, Sample sample, std::int64_t position);

}  // namespace holdfast
