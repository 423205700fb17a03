#pragma once

// A block of anonymous memory that other processes can map: a memfd with its mapping. The creator may hand out the
// descriptor as it is, or a read-only one that can never be mapped for writing. The memory lives as long as any
// descriptor or mapping of it.

#include <cstddef>
#include <span>
#include <string>

namespace holdfast {

// A file descriptor that is closed when its owner goes. -1 stands for none.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int value) : value_(value) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(FileDescriptor&& other) noexcept : value_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;

  int value() const { return value_; }
  bool is_open() const { return value_ >= 0; }
  int release();
  void reset();

 private:
  int value_ = -1;
};

class SharedMemory {
 public:
  // Zero-filled. `name` shows in /proc/PID/maps. Throws Error{out_of_memory or input_output}.
  static SharedMemory create(const std::string& name, std::size_t bytes);
  // Maps what another process created; `descriptor` is taken over. Throws Error{invalid_argument} when it is smaller
  // than `bytes`.
  static SharedMemory map_writable(FileDescriptor descriptor, std::size_t bytes);
  static SharedMemory map_read_only(FileDescriptor descriptor, std::size_t bytes);
  // All of it, whatever its size.
  static SharedMemory map_read_only(FileDescriptor descriptor);

  SharedMemory() = default;
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  std::size_t size_bytes() const { return bytes_; }
  // Asserts that the mapping may be written.
  std::span<std::byte> writable();
  std::span<const std::byte> readable() const { return {data_, bytes_}; }

  int descriptor() const { return descriptor_.value(); }
  // A descriptor of the same memory that cannot be mapped for writing.
  FileDescriptor read_only_descriptor() const;
  // Whether both are the same memory, whatever each of them may do with it.
  bool is_same_as(const FileDescriptor& descriptor) const;

 private:
  SharedMemory(FileDescriptor descriptor, std::size_t bytes, bool is_writable);

  FileDescriptor descriptor_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool is_writable_ = false;
};

}  // namespace holdfast
