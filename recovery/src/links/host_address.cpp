#include "links/host_address.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/base/whole_number.h"

namespace holdfast::recovery {
namespace {

constexpr std::size_t kLongestName = 253;  // of a host, in the domain name system

// Letters, digits and what separates them. A percent sign names the interface of a link-local address.
bool is_of_a_host(char character) {
  return std::isalnum(static_cast<unsigned char>(character)) != 0 ||
         std::string_view("-._:%").find(character) != std::string_view::npos;
}

bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && std::all_of(text.begin(), text.end(), is_of_a_host);
}

}  // namespace

HostAddress parse_host_address(std::string_view text, std::string_view where) {
  std::string_view host = text;
  std::string_view port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    // Without an end there is no host, which is refused below.
    host = end == std::string_view::npos ? "" : text.substr(1, end - 1);
    const std::string_view rest = end == std::string_view::npos ? "" : text.substr(end + 1);
    has_port = !rest.empty();
    // What follows the bracket without a colon cannot be a port.
    port = rest.starts_with(':') ? rest.substr(1) : "";
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    // More colons belong to an address of IPv6, which has a port only after brackets.
    has_port = true;
    host = text.substr(0, text.find(':'));
    port = text.substr(text.find(':') + 1);
  }
  const std::optional<int> number = has_port ? whole_number<int>(port) : kHeadPort;
  if (is_host(host) && number && *number >= 1 && *number <= 65535) {
    return {.host = std::string(host), .port = *number};
  }
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{} is \"{}\", where HOST or HOST:PORT is expected, such as node7:{}", where, text, kHeadPort));
}

std::string to_string(const HostAddress& address) {
  const bool has_colons = address.host.find(':') != std::string::npos;
  return has_colons ? fmt::format("[{}]:{}", address.host, address.port)
                    : fmt::format("{}:{}", address.host, address.port);
}

// The address may have colons itself.
std::string address_of_peer(const std::string& peer) {
  constexpr std::string_view kOfIpv4 = "::ffff:";
  const std::string address = peer.substr(0, peer.rfind(':'));
  const bool is_of_ipv4 = address.starts_with(kOfIpv4) && address.find('.') != std::string::npos;
  return is_of_ipv4 ? address.substr(kOfIpv4.size()) : address;
}

}  // namespace holdfast::recovery
