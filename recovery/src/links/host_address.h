#pragma once

// Where a host of a run is reached: a name or a number, and a port.

#include <string>
#include <string_view>

namespace holdfast::recovery {

inline constexpr int kHeadPort = 29400;  // of the head, where nothing else is said

struct HostAddress {
  std::string host{};  // a name, or an address of IPv4 or IPv6 without brackets
  int port = kHeadPort;

  friend bool operator==(const HostAddress&, const HostAddress&) = default;
};

// Reads "node7", "node7:29400", "10.0.0.7:29400", "fd00::7" and "[fd00::7]:29400". Throws Error{invalid_argument} that
// names `where` the text was given.
HostAddress parse_host_address(std::string_view text, std::string_view where);

// As parse_host_address() reads it.
std::string to_string(const HostAddress& address);

// The address of "ADDRESS:PORT", as a socket names its peer. One of IPv4 is shown there as one of IPv6 where both are
// listened to; this returns it as one of IPv4, since another host may have IPv4 alone.
std::string address_of_peer(const std::string& peer);

}  // namespace holdfast::recovery
