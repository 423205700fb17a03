// The first host listens at a port below those that the system gives to connections, so that no connection takes it
// between two starts of the program.

#include "pretended_hosts.h"

#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include <fmt/format.h>

#include "free_port.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shared_memory.h"
#include "run_folder.h"

namespace holdfast::resilience {
namespace {

constexpr std::size_t kSecretBytes = 32;

// mkstemp() makes a file that its owner alone may read.
std::string make_secret_file() {
  std::array<std::byte, kSecretBytes> secret{};
  // Up to 256 bytes come whole.
  if (::getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size())) {
    throw system_error(errno, "cannot draw a secret");
  }
  std::string path = folder_for_temporary_files() + "/holdfast-secret-XXXXXX";
  const FileDescriptor file(::mkstemp(path.data()));
  if (!file.is_open() || ::write(file.value(), secret.data(), secret.size()) != static_cast<ssize_t>(secret.size())) {
    throw system_error(errno, fmt::format("cannot make a file with a secret like {}", path));
  }
  return path;
}

}  // namespace

PretendedHosts::PretendedHosts(int hosts) : hosts_(hosts) {
  if (hosts < 1) throw Error(ErrorCode::invalid_argument, fmt::format("a run cannot have {} hosts", hosts));
  if (hosts == 1) return;
  port_ = free_port();
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
