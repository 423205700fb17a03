// A secret that others could have read protects nothing, so such a file is refused, as ssh does with keys. Checked is
// the open file, since a name may lead to another one a moment later. docs/decisions/host-connections.md

#include "hosts/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {
namespace {

constexpr std::size_t kSecretBytes = std::tuple_size_v<decltype(Secret::bytes)>;

std::string how_to_make(const std::string& path) {
  return fmt::format("make one with: (umask 077; head -c {} /dev/urandom > {}), and copy it to all hosts", kSecretBytes,
                     path);
}

std::optional<unsigned char> hex_digit(char character) {
  if (character >= '0' && character <= '9') return static_cast<unsigned char>(character - '0');
  if (character >= 'a' && character <= 'f') return static_cast<unsigned char>(character - 'a' + 10);
  if (character >= 'A' && character <= 'F') return static_cast<unsigned char>(character - 'A' + 10);
  return std::nullopt;
}

std::optional<Secret> from_digits(std::string_view text) {
  // A line of text ends with a line break, as echo(1) and editors write it.
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.size() != 2 * kSecretBytes) return std::nullopt;
  Secret secret;
  for (std::size_t i = 0; i < kSecretBytes; ++i) {
    const auto high = hex_digit(text[2 * i]);
    const auto low = hex_digit(text[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    secret.bytes.at(i) = static_cast<unsigned char>(*high << 4U | *low);
  }
  return secret;
}

// Looks at the open file and not at its name.
void check_rights(const std::string& path, int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) throw system_error(errno, fmt::format("cannot look at the secret file {}", path));
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::refused, fmt::format("the secret file {} is not a file; {}", path, how_to_make(path)));
  }
  // Kubernetes mounts a secret as a file of root for the group of a pod. The group may read it, and nobody else.
  const bool is_mounted = status.st_uid == 0 && ::geteuid() != 0;
  const mode_t forbidden = is_mounted ? S_IWGRP | S_IRWXO : S_IRWXG | S_IRWXO;
  if ((status.st_mode & forbidden) == 0) return;
  throw Error(ErrorCode::refused, fmt::format("other users may use the secret file {} (its mode is {:04o}); allow its "
                                              "owner alone: chmod 600 {}",
                                              path, status.st_mode & 07777U, path));
}

}  // namespace

Secret read_secret(const std::string& path) {
  // Not blocking: the path may name a pipe.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) {
    if (errno == ENOENT) {
      throw Error(ErrorCode::not_found, fmt::format("there is no secret file {}; {}", path, how_to_make(path)));
    }
    throw system_error(errno, fmt::format("cannot read the secret file {}", path));
  }
  check_rights(path, file.value());
  // One byte more than any right content has.
  std::array<char, 2 * kSecretBytes + 2> content{};
  std::size_t size = 0;
  while (size < content.size()) {
    const ssize_t got = ::read(file.value(), content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw system_error(errno, fmt::format("cannot read the secret file {}", path));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  // The length alone tells bytes from digits: random bytes may look like digits, of which there are twice as many.
  if (size == kSecretBytes) {
    Secret secret;
    std::copy_n(content.begin(), kSecretBytes, secret.bytes.begin());
    return secret;
  }
  if (const auto secret = from_digits(std::string_view(content.data(), size))) return *secret;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the secret file {} must have {} bytes, or {} hexadecimal digits; {}", path, kSecretBytes,
                          2 * kSecretBytes, how_to_make(path)));
}

}  // namespace holdfast::recovery
