#pragma once

#include "holdfast/holdfast.h"

// Seven convolutions of 3 x 3 in three blocks, each with its normalization; 10 scores for an image [28, 28, 1].
holdfast::Model residual_network();
