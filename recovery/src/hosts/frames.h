#pragma once

// The bytes of a connection between agents, cut into messages: four bytes that say how many follow, the highest first,
// and then a JSON object with a "kind". A peer may send anything, so lengths, depths and numbers of values are limited.

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

namespace holdfast::recovery {

inline constexpr std::size_t kMostFrameBytes = std::size_t{16} * 1024 * 1024;
// Before the peer has said who it is.
inline constexpr std::size_t kMostFirstFrameBytes = std::size_t{64} * 1024;

// Throws Error{invalid_argument} for a message over kMostFrameBytes, or with text that is not UTF-8.
std::string frame_of(const nlohmann::json& message);

class FrameReader {
 public:
  explicit FrameReader(std::size_t most_bytes = kMostFrameBytes) : most_bytes_(most_bytes) {}

  // Holds for frames whose first bytes come later, too.
  void set_most_bytes(std::size_t most_bytes) { most_bytes_ = most_bytes; }
  void take(std::span<const std::byte> bytes);
  // Empty until the next message is complete. Throws Error{input_output} for bytes that are not a message; after that
  // the connection is of no use.
  std::optional<nlohmann::json> next();

 private:
  std::size_t most_bytes_;
  std::string bytes_;     // from the start of a frame on
  std::size_t read_ = 0;  // of these, by earlier calls
};

}  // namespace holdfast::recovery
