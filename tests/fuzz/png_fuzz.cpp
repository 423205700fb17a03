// Decodes files of PNG; see picture_fuzz.h.

#include "picture_fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  holdfast::fuzz::decode_twice(data, size);
  return 0;
}
