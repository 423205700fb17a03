#pragma once

// Whether all ranks of a generation train the same model on the same data. Each process builds both by itself, so a
// program that asks for its rank may build others, and the sums of such ranks would be those of no training at all.

#include <string>

#include "train/step/training.h"

namespace holdfast {

// Compares `own`, the text of a JSON object, with that of every rank. Throws Error{incompatible} on all ranks if they
// are not equal: the sentence names the first rank that differs from rank 0 and what differs. `what` says what the
// ranks are about to do, such as "call 2 of the Trainer (fit)". A call of all ranks, which waits for them; may throw
// GenerationEnded.
void require_same_program(Training& training, const std::string& what, const std::string& own);

// Compares what the bits of the ranks depend on besides: instruction set and libraries, which differ between hosts at
// most. Throws Error{incompatible} on all ranks if they are not equal, unless the run accepts that. A call of all ranks
// as above.
void require_same_arithmetic(Training& training);

}  // namespace holdfast
