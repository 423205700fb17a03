#include "support/free_port.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <fstream>
#include <random>
#include <stdexcept>

#include "holdfast/base/shared_memory.h"

namespace holdfast {
namespace {

constexpr int kFirstPort = 1024;  // of those that any user may listen at

// The first port that the system may give to a connection.
int first_of_connections() {
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  int first = 0;
  if (!(range >> first) || first <= kFirstPort) throw std::runtime_error("all ports are for connections");
  return first;
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
  std::random_device random;
  std::uniform_int_distribution<int> ports(kFirstPort, first_of_connections() - 1);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const int port = ports(random);
    if (is_free(port)) return port;
  }
  throw std::runtime_error("no port is free");
}

}  // namespace holdfast
