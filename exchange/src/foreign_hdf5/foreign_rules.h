#pragma once

// Limits for files of other programs, shared by the check before HDF5 and by the helper process.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

namespace holdfast::format {

// A dataset may declare up to kAlwaysAllowedBytes. Beyond that, it may declare at most kMaxCompression times its
// stored bytes.
inline constexpr std::uint64_t kAlwaysAllowedBytes = std::uint64_t{4} << 30;
inline constexpr std::uint64_t kMaxCompression = 1000;

inline bool may_declare(std::uint64_t bytes, std::uint64_t stored_bytes) {
  return bytes <= kAlwaysAllowedBytes || bytes / kMaxCompression <= stored_bytes;
}

// The HDF5 filters that are supported, by their registered numbers.
enum class Filter : int { deflate = 1, shuffle = 2, fletcher32 = 3, zstd = 32015 };

inline bool is_known_filter(int number) {
  constexpr int kKnown[] = {static_cast<int>(Filter::deflate), static_cast<int>(Filter::shuffle),
                            static_cast<int>(Filter::fletcher32), static_cast<int>(Filter::zstd)};
  return std::find(std::begin(kKnown), std::end(kKnown), number) != std::end(kKnown);
}

// Problems found in several places. They follow the object's label.
inline std::string unknown_filter(int number) {
  return " is encoded by HDF5's filter " + std::to_string(number) +
         ", and only deflate, shuffle, fletcher32 and zstd (32015) are supported";
}
inline constexpr const char* kSecondName = " is a second name of another object";
inline constexpr const char* kStoredOutside = " is stored in other files";
inline constexpr const char* kVirtual = " is a virtual dataset, whose elements lie in other files";

inline std::string label_of(const std::string& path) {
  return path.empty() ? "the root" : "\"" + path + "\"";
}

}  // namespace holdfast::format
