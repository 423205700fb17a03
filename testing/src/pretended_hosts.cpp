// The first host listens at a port below those that the system gives to connections, so that no connection takes it
// between two starts of the program.

#include "pretended_hosts.h"

#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::resilience {
namespace {

constexpr int kFirstPort = 1024;  // of those that any user may listen at
constexpr int kAttempts = 1000;
constexpr std::size_t kSecretBytes = 32;

void fill_with_random_bytes(void* bytes, std::size_t count) {
  // Up to 256 bytes come whole.
  if (::getrandom(bytes, count, 0) != static_cast<ssize_t>(count)) throw system_error(errno, "cannot draw a secret");
}

// The first port that the system may give to a connection.
int first_of_connections() {
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  int first = 0;
  return range >> first && first > kFirstPort ? first : 32768;
}

bool is_free(int port) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return ::bind(socket.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

int find_free_port() {
  const int end = first_of_connections();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::uint32_t drawn = 0;
    fill_with_random_bytes(&drawn, sizeof drawn);
    const int port = kFirstPort + static_cast<int>(drawn % static_cast<std::uint32_t>(end - kFirstPort));
    if (is_free(port)) return port;
  }
  throw Error(ErrorCode::unavailable,
              fmt::format("no port from {} to {} is free for the first of several hosts; end what listens there",
                          kFirstPort, end - 1));
}

// mkstemp() makes a file that its owner alone may read.
std::string make_secret_file() {
  std::array<std::byte, kSecretBytes> secret{};
  fill_with_random_bytes(secret.data(), secret.size());
  std::string path = (std::filesystem::temp_directory_path() / "holdfast-secret-XXXXXX").string();
  const FileDescriptor file(::mkstemp(path.data()));
  if (!file.is_open() || ::write(file.value(), secret.data(), secret.size()) != static_cast<ssize_t>(secret.size())) {
    throw system_error(errno, "cannot make a file with a secret like " + path);
  }
  return path;
}

}  // namespace

PretendedHosts::PretendedHosts(int hosts) : hosts_(hosts) {
  if (hosts < 1) throw Error(ErrorCode::invalid_argument, fmt::format("a run cannot have {} hosts", hosts));
  if (hosts == 1) return;
  port_ = find_free_port();
  secret_file_ = make_secret_file();
}

PretendedHosts::~PretendedHosts() {
  if (!secret_file_.empty()) ::unlink(secret_file_.c_str());
}

std::vector<std::string> PretendedHosts::variables_of(int host) const {
  if (hosts_ == 1) return {};
  return {fmt::format("HOLDFAST_NNODES={}", hosts_), fmt::format("HOLDFAST_NODE_RANK={}", host),
          fmt::format("HOLDFAST_HEAD=127.0.0.1:{}", port_), "HOLDFAST_SECRET_FILE=" + secret_file_};
}

}  // namespace holdfast::resilience
