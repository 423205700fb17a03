#pragma once

// Digits for machines without a data set. Each is drawn from a 5 x 7 dot font, then scaled, moved and slanted, with
// random strength and noise. They are easier than handwriting, but a model has to learn them. Sample i is a function of
// (seed, i).

#include <cstdint>

#include "holdfast/holdfast.h"

// Features are [28, 28, 1] in [0, 1], targets are 0 to 9.
holdfast::Dataset drawn_digits(std::int64_t count, std::uint64_t seed);
