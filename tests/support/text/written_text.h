#pragma once

// A function that writes the pieces of a text, as code that writes piece by piece takes it.

#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <string>

namespace holdfast {

inline std::function<void(std::size_t, std::span<std::byte>)> pieces_of(const std::string& text) {
  return [text](std::size_t begin, std::span<std::byte> piece) {
    std::memcpy(piece.data(), text.data() + begin, piece.size());
  };
}

}  // namespace holdfast
