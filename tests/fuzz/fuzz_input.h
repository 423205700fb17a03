#pragma once

// What all fuzz targets share. A target calls a reader with any bytes. The reader may throw Error and nothing else.

#include <cstddef>
#include <cstdint>
#include <span>

#include "holdfast/base/error.h"

// libFuzzer and corpus_main.cpp call it. It always returns 0.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace holdfast::fuzz {

// Whether `action` ended without an Error. Other exceptions are not caught and end the program.
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
