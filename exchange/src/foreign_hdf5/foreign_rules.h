#pragma once

// What a stranger's file may not go beyond, wherever it is checked.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

namespace holdfast::format {

// A dataset may declare this much, and beyond it at most so many times what is stored of it.
inline constexpr std::uint64_t kAlwaysAllowedBytes = std::uint64_t{4} << 30;
inline constexpr std::uint64_t kMaxCompression = 1000;

inline bool may_declare(std::uint64_t bytes, std::uint64_t stored_bytes) {
  return bytes <= kAlwaysAllowedBytes || bytes / kMaxCompression <= stored_bytes;
}

// HDF5's filters that are read, by their registered numbers.
enum class Filter : int { deflate = 1, shuffle = 2, fletcher32 = 3, zstd = 32015 };

inline bool is_known_filter(int number) {
  constexpr int kKnown[] = {static_cast<int>(Filter::deflate), static_cast<int>(Filter::shuffle),
                            static_cast<int>(Filter::fletcher32), static_cast<int>(Filter::zstd)};
  return std::find(std::begin(kKnown), std::end(kKnown), number) != std::end(kKnown);
}

// Problems that several places find, behind the name of the object.
inline std::string unknown_filter(int number) {
  return " is encoded by HDF5's filter " + std::to_string(number) +
         ", and deflate, shuffle, fletcher32 and zstd (32015) are read";
}
inline constexpr const char* kNoHardLink = " is a soft, external or user-defined link, which may lead anywhere";
inline constexpr const char* kSecondName = " is a second name of another object";
inline constexpr const char* kStoredOutside = " is stored in other files";
inline constexpr const char* kVirtual = " is a virtual dataset, which other files hold";

inline std::string label_of(const std::string& path) {
  return path.empty() ? "the root" : "\"" + path + "\"";
}

}  // namespace holdfast::format
