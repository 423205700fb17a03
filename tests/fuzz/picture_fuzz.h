#pragma once

// What the targets of both formats share. The first byte chooses the channels. Decoding gives as many pixels as the
// sizes promise, the same twice, and never more than the limit.

#include <algorithm>
#include <utility>
#include <vector>

#include "data/pictures/picture.h"
#include "fuzz_input.h"

namespace holdfast::fuzz {

inline void decode_twice(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return;
  static constexpr int kChannels[] = {1, 3, 4};
  const PictureDecodeOptions options{.channels = kChannels[data[0] % 3], .max_pixels = 1 << 16};
  const std::vector<std::uint8_t> bytes(data + 1, data + size);
  Picture first;
  if (!succeeds([&] { first = decode_picture(bytes, options, "a.jpg"); })) return;
  HOLDFAST_ASSERT(first.channels == options.channels && first.height * first.width <= options.max_pixels);
  HOLDFAST_ASSERT(std::cmp_equal(first.pixels.size(), first.height * first.width * first.channels));
  HOLDFAST_ASSERT(decode_picture(bytes, options, "a.jpg").pixels == first.pixels);
}

}  // namespace holdfast::fuzz
