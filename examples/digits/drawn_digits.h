#pragma once

// Digits that need no file: each is drawn from a 5 x 7 dot font, scaled, moved, slanted, with strokes of uneven
// strength and noise. Easier than handwriting, but a model has to learn them. Sample i is a function of (seed, i).

#include <cstdint>

#include "holdfast/holdfast.h"

// Features [28, 28, 1] in [0, 1], targets 0 to 9.
holdfast::Dataset drawn_digits(std::int64_t count, std::uint64_t seed);
