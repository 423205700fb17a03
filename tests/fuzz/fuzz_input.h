#pragma once

// What every fuzz target shares. A target calls a reader with any bytes; the reader may throw Error and nothing else.

#include <cstddef>
#include <cstdint>
#include <span>

#include "holdfast/base/error.h"

// What libFuzzer and corpus_main call. Other values than 0 mean nothing to us.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace holdfast::fuzz {

// Whether `action` came to its end without an Error; other exceptions pass, and end the program.
template <typename Action>
bool succeeds(Action action) {
  try {
    action();
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace holdfast::fuzz
