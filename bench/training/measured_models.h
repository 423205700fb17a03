#pragma once

// The models that are compared with other frameworks, and samples for them.

#include <cstdint>

#include "holdfast/holdfast.h"

// 8000-4000-2000-500-300-1 with 41,157,101 parameters when the divisor of all widths is 1. bench/gpu/peer.py has the
// same model.
holdfast::Sequential measured_mlp(std::int64_t divisor = 1);
// LeNet-5 with tanh and average pooling: 61,706 parameters.
holdfast::Sequential measured_lenet5();
// A decoder like GPT-2's with 4 blocks of width 256 and 4 heads and 128 positions, whose output is tied to the table of
// words. bench/training/train_peer.cpp and bench/training/train_peer.py have this model and the LSTM, too, with 512
// words.
holdfast::Model measured_gpt(std::int64_t words = 512);
// Two LSTM layers of width 256 over 64 of 512 words.
holdfast::Model measured_lstm();
// Eight different batches of `length` words each, and the words that follow them: [length] i32 of so many words.
holdfast::Dataset measured_words(std::int64_t length, std::int64_t batch, std::int64_t words = 512);
// Eight different batches of numbers in [0, 1). The first feature decides the class, so that there is something to
// learn. Two classes have targets [1], others a number.
holdfast::Dataset measured_noise(const holdfast::Shape& features, std::int64_t classes, std::int64_t batch);
