#pragma once

// What a connection between two hosts begins with: whose it is, in clear. The head gives each pair of hosts a random
// key for each generation, over encrypted connections. With it a connection names the exchange and the lane that it is
// for, and it is taken once. docs/decisions/agents.md

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::recovery {

using LinkKey = std::array<std::uint8_t, 16>;

// Throws Error{input_output} where the system gives no random bytes.
LinkKey new_link_key();
// 32 hexadecimal digits, and back. Throws Error{input_output} for other texts.
std::string to_text(const LinkKey& key);
LinkKey link_key_from(std::string_view text);

struct LinkToken {
  static constexpr std::size_t kBytes = 24;

  LinkKey key{};
  std::uint32_t exchange = 0;  // of arenas, which it comes with
  std::uint32_t lane = 0;      // the local rank, on both hosts, that gets the connection

  friend auto operator<=>(const LinkToken&, const LinkToken&) = default;

  // As it is sent: the key, and the numbers with their lowest byte first.
  std::array<std::uint8_t, kBytes> bytes() const;
  static LinkToken from(const std::array<std::uint8_t, kBytes>& bytes);
};

// The answer to a token that was taken. What follows it belongs to the replicas.
inline constexpr std::uint8_t kLinkTaken = 'T';

}  // namespace holdfast::recovery
