// The variable is removed from the environment before main() begins. So a program that main() starts is not a worker,
// and holds neither the run directory's lock nor the channel.

#include "worker/inheritance.h"

#include <fcntl.h>

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "channel/messages.h"
#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

Inheritance parse_inheritance(std::string_view value) {
  Inheritance numbers{-1, -1, -1, -1};
  const char* position = value.data();
  const char* const end = value.data() + value.size();
  for (int& number : numbers) {
    const auto [next, error] = std::from_chars(position, end, number);
    // adopt() refuses it later, when an exception can be caught. Here main() has not begun.
    if (error != std::errc{}) number = -1;
    position = next == end ? end : next + 1;
  }
  return numbers;
}

std::optional<Inheritance> take_inheritance() {
  const char* value = std::getenv(kWorkerVariable);
  if (value == nullptr) return std::nullopt;
  const Inheritance inheritance = parse_inheritance(value);
  ::unsetenv(kWorkerVariable);
  for (const int descriptor : inheritance) {
    if (descriptor >= 0) ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  }
  return inheritance;
}

// Runs before the constructors of the program's own objects, which may start programs, too.
__attribute__((constructor(101))) void take_inheritance_early() {
  static_cast<void>(inheritance());
}

}  // namespace

const std::optional<Inheritance>& inheritance() {
  static const std::optional<Inheritance> taken = take_inheritance();
  return taken;
}

FileDescriptor adopt(int descriptor) {
  // Programs that the application starts must neither hold the run directory's lock nor keep the channel open.
  if (descriptor < 0 || ::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} names the descriptor {}, which is not open; it is for the watchdog to set",
                            kWorkerVariable, descriptor));
  }
  return FileDescriptor(descriptor);
}

}  // namespace holdfast::recovery
