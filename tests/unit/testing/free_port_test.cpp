#include "free_port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <fstream>

#include "holdfast/base/shared_memory.h"

namespace holdfast::resilience {
namespace {

TEST(FreePort, CanBeListenedAtAndIsGivenToNoConnection) {
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  int first_of_connections = 0;
  range >> first_of_connections;

  const int port = free_port();

  EXPECT_GE(port, 1024);
  EXPECT_LT(port, first_of_connections);
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  EXPECT_EQ(::bind(socket.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(socket.value(), 1), 0);
}

}  // namespace
}  // namespace holdfast::resilience
