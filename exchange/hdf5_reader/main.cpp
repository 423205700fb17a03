// holdfast-hdf5-reader: parses an HDF5 file of another program inside a sandbox and writes its content to standard
// output as foreign_hdf5/tree_stream.h describes. Only read_hdf5_tree starts it. Descriptor 3 is the file's memory.
//
//   holdfast-hdf5-reader PARENT MAX_ARRAY_BYTES MAX_OBJECTS SECONDS MAX_MEMORY_BYTES all|heads whole|readable [PATH...]
//   holdfast-hdf5-reader --try ACTION      enters the sandbox and tries a forbidden action; see attempts.h
//
// docs/decisions/exchange.md

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attempts.h"
#include "foreign_hdf5/tree_stream.h"
#include "holdfast/base/whole_number.h"
#include "sandbox.h"
#include "tree_parser.h"

namespace holdfast::hdf5_reader {
namespace {

using format::TreeDemand;
using format::TreeEncoder;
using format::TreeLimits;

constexpr int kOutput = 1;
constexpr int kInput = 3;

constexpr int kUsage = 2;
constexpr int kOutputFailed = 3;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

struct Request {
  std::uint64_t parent = 0;
  TreeRequest tree;
};

// The arguments come from the library itself, so a mistake needs no message, only an exit code.
std::optional<Request> parse_arguments(const std::vector<std::string_view>& arguments) {
  std::array<std::uint64_t, 5> numbers{};
  const bool is_complete = arguments.size() >= numbers.size() + 2 &&
                           (arguments[5] == "all" || arguments[5] == "heads") &&
                           (arguments[6] == "whole" || arguments[6] == "readable");
  if (!is_complete) return {};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::optional<std::uint64_t> number = whole_number<std::uint64_t>(arguments[i]);
    if (!number) return {};
    numbers[i] = *number;
  }
  return Request{.parent = numbers[0],
                 .tree = {.limits = {.max_array_bytes = numbers[1],
                                     .max_objects = numbers[2],
                                     .max_memory_bytes = numbers[4],
                                     .time = std::chrono::seconds(numbers[3])},
                          .part = arguments[5] == "all" ? TreePart::all : TreePart::heads,
                          .demand = arguments[6] == "whole" ? TreeDemand::whole : TreeDemand::readable,
                          .paths = {arguments.begin() + 7, arguments.end()}}};
}

// Writes to the pipe in pieces of a useful size. A failure cannot be reported to anybody: the parent sees the pipe
// end.
class Output {
 public:
  void write(std::span<const std::byte> bytes) {
    if (buffer_.size() + bytes.size() <= kBufferBytes) {
      buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
      return;
    }
    flush();
    write_now(bytes);
  }
  void flush() {
    write_now(buffer_);
    buffer_.clear();
  }

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{64} * 1024;

  static void write_now(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(kOutput, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) ::_exit(kOutputFailed);
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }

  std::vector<std::byte> buffer_;
};

// Only the parent's memory file backs this mapping, and it cannot shrink, so reading the mapping cannot fail.
std::span<const std::byte> map_file() {
  struct stat status {};
  if (::fstat(kInput, &status) != 0 || status.st_size <= 0) ::_exit(kUsage);
  const auto bytes = static_cast<std::size_t>(status.st_size);
  void* address = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, kInput, 0);
  if (address == MAP_FAILED) ::_exit(kUsage);
  // The mapping stays. The sandbox allows no use of the descriptor.
  ::close(kInput);
  return {static_cast<const std::byte*>(address), bytes};
}

// A piece is a row of chunks, which may be most of a compressed dataset. The rest of the memory is for the libraries.
SandboxLimits sandbox_limits(const TreeLimits& limits, std::uint64_t file_bytes) {
  const std::uint64_t piece_bytes =
      std::min({limits.max_array_bytes, limits.max_memory_bytes, 64 * std::min(file_bytes, kGiB * 1024)});
  return {.memory_bytes = kGiB + file_bytes + piece_bytes,
          .cpu_seconds = static_cast<std::uint64_t>(limits.time.count()) + file_bytes / (8 << 20),
          .output = kOutput};
}

// Every problem is reported through the pipe, since the sandbox leaves no other way.
void read_tree(std::span<const std::byte> file, const TreeRequest& request, TreeEncoder& encoder) {
  try {
    parse_hdf5_tree(file, request, encoder);
    encoder.finish();
  } catch (const Error& error) {
    encoder.refuse(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    encoder.refuse(ErrorCode::out_of_memory, "parsing it takes more memory than such a file should need");
  }
}

int run(const Request& request) {
  // A helper must not outlive its reader.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the call above.
  if (static_cast<std::uint64_t>(::getppid()) != request.parent) return kUsage;
  const std::span<const std::byte> file = map_file();
  Output output;
  TreeEncoder encoder([&](std::span<const std::byte> bytes) { output.write(bytes); });
  if (!prepare_hdf5()) {
    encoder.refuse(ErrorCode::unavailable, "HDF5 cannot be initialised");
  } else if (!lock_in(sandbox_limits(request.tree.limits, file.size()))) {
    encoder.refuse(ErrorCode::unsupported, fmt::format("this system cannot put the reader of HDF5 files into a sandbox "
                                                       "({}), so files of other programs are not read",
                                                       std::strerror(errno)));
  } else {
    read_tree(file, request.tree, encoder);
  }
  output.flush();
  return 0;
}

}  // namespace
}  // namespace holdfast::hdf5_reader

// Leaves by _exit: exit handlers of the libraries would make forbidden system calls.
int main(int argc, char** argv) {
  using namespace holdfast::hdf5_reader;
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  if (arguments.size() == 2 && arguments[0] == "--try") ::_exit(attempt(arguments[1]));
  const auto request = parse_arguments(arguments);
  ::_exit(request ? run(*request) : kUsage);
}
