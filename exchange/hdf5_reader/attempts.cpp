// Tries what a hijacked helper might try, one action a run. The tests start the helper itself for this, so that they
// check the sandbox of the very program that is installed. Whatever an action needs is opened before the sandbox is
// entered. docs/decisions/exchange.md

#include "attempts.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "sandbox.h"

namespace holdfast::hdf5_reader {
namespace {

constexpr int kNotStopped = 1;
constexpr int kMemoryRefused = 42;

void* map(int protection, int flags, int descriptor) {
  return ::mmap(nullptr, 4096, protection, flags, descriptor, 0);
}

// Allocates more than the limit and touches it. The pointer is volatile because compilers drop memory that nothing
// reads.
int take_memory() {
  constexpr std::size_t kBytes = std::size_t{4} << 30;
  void* volatile memory = std::malloc(kBytes);
  if (memory == nullptr) return kMemoryRefused;
  std::memset(memory, 1, kBytes);
  return kNotStopped;
}

// What honest parsing needs must still work: allocating, growing, freeing, writing.
int compute() {
  void* volatile memory = std::malloc(std::size_t{64} << 20);
  if (memory == nullptr) return kNotStopped;
  std::memset(memory, 1, std::size_t{64} << 20);
  memory = std::realloc(memory, std::size_t{128} << 20);
  std::free(memory);
  return ::write(STDOUT_FILENO, "done", 4) == 4 ? 0 : kNotStopped;
}

// An empty asm statement keeps the compiler from removing the endless loop.
void take_processor() {
  for (;;) __asm__ volatile("");
}

// In the 32-bit interface the same numbers mean other calls, so the filter must refuse that interface.
void call_by_other_interface() {
#if defined(__x86_64__)
  long result = 20;  // getpid of i386
  __asm__ volatile("int $0x80" : "+a"(result) : : "memory");
#else
  ::syscall(SYS_getpid);
#endif
}

}  // namespace

int attempt(std::string_view action) {
  const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  void* page = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  char* arguments[] = {nullptr};
  char byte = 0;
  if (!lock_in({.memory_bytes = std::uint64_t{1} << 30, .cpu_seconds = 1, .output = STDOUT_FILENO})) return 3;

  if (action == "compute") return compute();
  if (action == "memory") return take_memory();
  if (action == "cpu") take_processor();
  if (action == "open") ::syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY);
  if (action == "create") ::syscall(SYS_openat, AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR, 0600);
  if (action == "create-memory") ::syscall(SYS_memfd_create, "a", 0);
  if (action == "truncate") ::syscall(SYS_ftruncate, file, 0);
  if (action == "remove") ::syscall(SYS_unlinkat, -1, "", 0);
  if (action == "trace") ::syscall(SYS_ptrace, 0, 0, nullptr, nullptr);
  if (action == "io-uring") ::syscall(SYS_io_uring_setup, 1, nullptr);
  if (action == "read") ::syscall(SYS_read, file, &byte, 1);
  if (action == "write-other") ::syscall(SYS_write, STDERR_FILENO, &byte, 1);
  if (action == "socket") ::syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
  if (action == "exec") ::syscall(SYS_execve, "/bin/true", arguments, arguments);
  if (action == "fork") ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (action == "thread") ::syscall(SYS_clone3, nullptr, 0);
  if (action == "kill") ::syscall(SYS_kill, 1, 0);
  if (action == "map-file") map(PROT_READ, MAP_PRIVATE, file);
  if (action == "map-executable") map(PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (action == "make-executable") ::mprotect(page, 4096, PROT_READ | PROT_EXEC);
  if (action == "other-abi") call_by_other_interface();
  return kNotStopped;
}

}  // namespace holdfast::hdf5_reader
