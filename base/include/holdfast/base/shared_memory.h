#pragma once

// A block of anonymous memory that other processes can map: a memfd and its mapping. The creator passes
// the descriptor on as it is, or a read-only one that can never be mapped for writing. The memory
// exists as long as any descriptor or mapping of it, so it survives the process that created it.
//
//   SharedMemory memory = SharedMemory::create("holdfast-snapshot", bytes);
//   send(peer, memory.read_only_descriptor());
//   // in the peer:
//   const SharedMemory seen = SharedMemory::map_read_only(receive_descriptor(), bytes);
//
// Nothing here synchronizes: signal_word.h tells a peer when the content is complete.

#include <cstddef>
#include <span>
#include <string>

namespace holdfast {

// Owns a file descriptor and closes it in the destructor. -1 stands for none.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  // Takes ownership of an open descriptor, or of -1.
  explicit FileDescriptor(int value) : value_(value) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(FileDescriptor&& other) noexcept : value_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;

  int value() const { return value_; }          // still owned by this object
  bool is_open() const { return value_ >= 0; }  // whether it owns a descriptor
  // Gives the ownership away: the caller closes what is returned.
  int release();
  // Closes the descriptor, if there is one.
  void reset();

 private:
  int value_ = -1;
};

// Owns one mapping and its descriptor; the destructor unmaps. Moving keeps the address.
class SharedMemory {
 public:
  // Creates `bytes` of memory, filled with zeros. `name` appears in /proc/PID/maps. Throws
  // Error{out_of_memory or input_output}.
  static SharedMemory create(const std::string& name, std::size_t bytes);
  // Maps memory that another process created, and takes the descriptor over. Throws
  // Error{invalid_argument} when the memory is smaller than `bytes`: access past its end would be
  // SIGBUS.
  static SharedMemory map_writable(FileDescriptor descriptor, std::size_t bytes);
  static SharedMemory map_read_only(FileDescriptor descriptor, std::size_t bytes);
  // Maps all of it, whatever its size.
  static SharedMemory map_read_only(FileDescriptor descriptor);

  SharedMemory() = default;
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  std::size_t size_bytes() const { return bytes_; }  // of the mapping
  // Asserts that this is a writable mapping.
  std::span<std::byte> writable();
  std::span<const std::byte> readable() const { return {data_, bytes_}; }  // valid as long as this object

  // Still owned by this object.
  int descriptor() const { return descriptor_.value(); }
  // A new descriptor of the same memory that can never be mapped for writing.
  FileDescriptor read_only_descriptor() const;
  // Whether `descriptor` is of this memory, read-only or not.
  bool is_same_as(const FileDescriptor& descriptor) const;

 private:
  SharedMemory(FileDescriptor descriptor, std::size_t bytes, bool is_writable);

  FileDescriptor descriptor_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool is_writable_ = false;
};

}  // namespace holdfast
