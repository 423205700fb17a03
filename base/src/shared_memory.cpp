// Memory that outlives the process that created it: replicas add gradients in it, and the watchdog keeps
// snapshots there after their process has died. A memfd has no name in any folder, so nothing is left
// when the last process goes (docs/decisions/sums.md).

#include "holdfast/base/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

struct stat look_at(const FileDescriptor& memory) {
  struct stat status {};
  if (::fstat(memory.value(), &status) != 0) throw system_error(errno, "cannot look at shared memory");
  return status;
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    reset();
    value_ = other.release();
  }
  return *this;
}

int FileDescriptor::release() {
  return std::exchange(value_, -1);
}

void FileDescriptor::reset() {
  if (value_ >= 0) ::close(std::exchange(value_, -1));
}

SharedMemory SharedMemory::create(const std::string& name, std::size_t bytes) {
  // MFD_CLOEXEC: a program that this process starts would otherwise keep the memory alive after all
  // replicas have gone.
  FileDescriptor descriptor(::memfd_create(name.c_str(), MFD_CLOEXEC));
  if (!descriptor.is_open()) throw system_error(errno, fmt::format("cannot create shared memory \"{}\"", name));
  if (::ftruncate(descriptor.value(), static_cast<off_t>(bytes)) != 0) {
    throw system_error(errno, fmt::format("cannot grow shared memory \"{}\" to {} bytes", name, bytes));
  }
  return SharedMemory(std::move(descriptor), bytes, true);
}

SharedMemory SharedMemory::map_writable(FileDescriptor descriptor, std::size_t bytes) {
  return SharedMemory(std::move(descriptor), bytes, true);
}

SharedMemory SharedMemory::map_read_only(FileDescriptor descriptor, std::size_t bytes) {
  return SharedMemory(std::move(descriptor), bytes, false);
}

SharedMemory SharedMemory::map_read_only(FileDescriptor descriptor) {
  const auto bytes = static_cast<std::size_t>(look_at(descriptor).st_size);
  return map_read_only(std::move(descriptor), bytes);
}

SharedMemory::SharedMemory(FileDescriptor descriptor, std::size_t bytes, bool is_writable)
    : descriptor_(std::move(descriptor)), bytes_(bytes), is_writable_(is_writable) {
  const off_t there = look_at(descriptor_).st_size;
  // An access to a mapping beyond the end of the memory would be SIGBUS.
  if (static_cast<std::size_t>(there) < bytes) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("shared memory has {} bytes, too few to map {}; map the size with which it was created",
                            there, bytes));
  }
  const int protection = is_writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* address = ::mmap(nullptr, bytes, protection, MAP_SHARED, descriptor_.value(), 0);
  if (address == MAP_FAILED) throw system_error(errno, fmt::format("cannot map {} bytes of shared memory", bytes));
  data_ = static_cast<std::byte*>(address);
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept {
  *this = std::move(other);
}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  // The destructor of `other` releases what this object had.
  std::swap(descriptor_, other.descriptor_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(is_writable_, other.is_writable_);
  return *this;
}

std::span<std::byte> SharedMemory::writable() {
  HOLDFAST_ASSERT(is_writable_);
  return {data_, bytes_};
}

FileDescriptor SharedMemory::read_only_descriptor() const {
  // Opening through /proc gives a descriptor with rights of its own. A duplicate would share the rights to
  // write.
  const std::string path = fmt::format("/proc/self/fd/{}", descriptor_.value());
  FileDescriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.is_open()) {
    throw system_error(errno, fmt::format("cannot open shared memory for reading through {}", path));
  }
  return descriptor;
}

bool SharedMemory::is_same_as(const FileDescriptor& descriptor) const {
  // A memfd has no name; device and inode identify it.
  const struct stat own = look_at(descriptor_);
  const struct stat other = look_at(descriptor);
  return own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

}  // namespace holdfast
