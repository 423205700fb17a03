// A forked process that keeps a descriptor open keeps locks, sockets and pipes of its parent alive. So everything is
// closed that is not named, by the fastest way that the kernel offers. docs/decisions/processes.md

#include "process/open_descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "holdfast/base/whole_number.h"

namespace holdfast::recovery {
namespace {

// Without close_range(2) and /proc, numbers up to this one are tried. All numbers up to a limit of a billion would
// take minutes.
constexpr rlim_t kMostTried = 65536;

template <class Act>
void for_each_number(int first, const Act& act) {
  rlimit limit{};
  const bool is_known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
  const int end = static_cast<int>(std::min(is_known ? limit.rlim_cur : kMostTried, kMostTried));
  for (int number = first; number < end; ++number) act(number);
}

// The descriptor of the listing is in the list, and closing it would end the loop.
template <class Act>
void act_on(const char* name, int first, int listing, const Act& act) {
  const std::optional<int> number = whole_number<int>(name);
  if (number && *number >= first && *number != listing) act(*number);
}

// Calls act(descriptor) for each open descriptor from `first` on; act() may close it.
template <class Act>
void for_each_open(int first, const Act& act) {
  const int listing = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (listing < 0) return for_each_number(first, act);
  alignas(dirent64) std::array<char, 4096> entries;
  for (;;) {
    const ssize_t bytes = ::getdents64(listing, entries.data(), entries.size());
    if (bytes <= 0) break;
    for (ssize_t at = 0; at < bytes;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      act_on(entry->d_name, first, listing, act);
      at += entry->d_reclen;
    }
  }
  ::close(listing);
}

// False when the kernel lacks the call.
bool try_to_close_all_but(int first, std::span<const int> kept) {
  auto next = static_cast<unsigned>(first);
  for (const int descriptor : kept) {
    const auto number = static_cast<unsigned>(descriptor);
    if (number > next && ::close_range(next, number - 1, 0) != 0) return false;
    next = std::max(next, number + 1);
  }
  return ::close_range(next, ~0U, 0) == 0;
}

}  // namespace

void close_on_exec_from(int first) {
  if (::close_range(static_cast<unsigned>(first), ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  for_each_open(first, [](int descriptor) { ::fcntl(descriptor, F_SETFD, FD_CLOEXEC); });
}

void close_all_but(int first, std::span<const int> kept) {
  if (try_to_close_all_but(first, kept)) return;
  for_each_open(first, [kept](int descriptor) {
    if (!std::binary_search(kept.begin(), kept.end(), descriptor)) ::close(descriptor);
  });
}

}  // namespace holdfast::recovery
