#include "free_port.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <fstream>
#include <random>

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::resilience {
namespace {

constexpr int kFirstPort = 1024;  // of those that any user may listen at
constexpr int kAttempts = 1000;

// The first port that the system may give to a connection.
int first_of_connections() {
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  int first = 0;
  if (range >> first && first > kFirstPort) return first;
  throw Error(ErrorCode::unavailable,
              fmt::format("the system may give each port from {} on to a connection, or does not say which; set "
                          "net.ipv4.ip_local_port_range so that it begins above",
                          kFirstPort));
}

bool is_free(int port) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return ::bind(socket.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

int free_port() {
  const int end = first_of_connections();
  std::random_device random;
  std::uniform_int_distribution<int> ports(kFirstPort, end - 1);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const int port = ports(random);
    if (is_free(port)) return port;
  }
  throw Error(ErrorCode::unavailable, fmt::format("none of {} ports from {} to {} was free; end what listens there",
                                                  kAttempts, kFirstPort, end - 1));
}

}  // namespace holdfast::resilience
