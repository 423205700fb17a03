#pragma once

// What every use of HDF5's library here stands on: one lock for the whole process, handles that close themselves, and
// errors that name the file. Only for sources in this folder: the header names HDF5.

#include <hdf5.h>

#include <mutex>
#include <string>

#include "holdfast/base/dtype.h"
#include "holdfast/base/error.h"

namespace holdfast::format {

// Held by every function that calls HDF5, for as long as it has any handle. The settings that it changes belong to the
// whole process (or thread), and an application may use HDF5 too: they are put back.
class Session {
 public:
  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  std::lock_guard<std::mutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
  unsigned plugins_ = 0;
};

// One of HDF5's objects, closed by the function that HDF5 has for its kind.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() { reset(); }
  Handle(Handle&& other) noexcept;
  Handle& operator=(Handle&&) = delete;

  operator hid_t() const { return id_; }
  // Negative when HDF5 failed to close, which for a file means to write it.
  herr_t reset();

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// What HDF5 says of its latest failure, in brackets behind a blank; the innermost entry names the cause.
std::string hdf5_message();

// Names the file and what to do in the errors of one pass through it: head + problem + tail.
class Checker {
 public:
  Checker(ErrorCode code, std::string head, std::string tail);
  // Arguments were checked and no disk is involved: what can still be wanting is memory.
  static Checker of_writing(const std::string& path);

  [[noreturn]] void fail(const std::string& problem) const;
  void require(bool condition, const std::string& problem) const {
    if (!condition) fail(problem);
  }
  // Of a call that returns something negative when it fails.
  template <typename Result>
  Result succeeded(Result result, const std::string& problem) const {
    if (result < 0) fail(problem + hdf5_message());
    return result;
  }
  Handle opened(hid_t id, herr_t (*close)(hid_t), const std::string& problem) const {
    return {succeeded(id, problem), close};
  }

 private:
  ErrorCode code_;
  std::string head_;
  std::string tail_;
};

// A property list of `kind` (H5P_FILE_CREATE, H5P_GROUP_CREATE, H5P_DATASET_CREATE) without object times, which would
// make the bytes of equal content differ.
Handle untimed_list(const Checker& check, hid_t kind);

// A link creation list for names in UTF-8.
Handle utf8_link_list(const Checker& check);

// For a file's access list: structures of HDF5 1.8 are compact and have no limit of 64 KiB on attributes; later ones
// mark a file as open for writing, which outlives a writer that died.
void set_format_bounds(const Checker& check, hid_t access_list);

// The little-endian type of the elements; bf16 and boolean as the unsigned integers of their size, since HDF5 1.10 has
// neither.
Handle element_type(const Checker& check, DType dtype);

// IEEE binary16, which HDF5 1.10 has no name for: 1 sign bit, 5 exponent bits with bias 15, 10 mantissa bits.
Handle half_type(const Checker& check);

}  // namespace holdfast::format
