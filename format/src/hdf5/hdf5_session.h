#pragma once

// The base of every use of the HDF5 library: one lock for the whole process, handles that close themselves,
// and errors that name the file.

#include <hdf5.h>

#include <mutex>
#include <string>

#include "holdfast/base/dtype.h"
#include "holdfast/base/error.h"

namespace holdfast::format {

// Held by every function that calls HDF5, as long as it has any handle. An application may use HDF5 too, and
// the settings that a Session changes belong to the whole process or thread, so the destructor restores
// them.
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

// Owns one HDF5 object and closes it with the function for its kind.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() { reset(); }
  Handle(Handle&& other) noexcept;
  Handle& operator=(Handle&&) = delete;

  operator hid_t() const { return id_; }
  // Closes the object. Negative when that failed; for a file this means that it could not be written.
  herr_t reset();

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// HDF5's own words for its latest failure, as " (HDF5: ...)". The innermost entry of its stack names the
// cause. Empty when HDF5 reports nothing.
std::string hdf5_message();

// Makes the errors of one pass through a file: head + problem + tail, which name the file and what to do.
class Checker {
 public:
  Checker(ErrorCode code, std::string head, std::string tail);
  // Checks the composing of a file in memory. Arguments were checked and no disk is involved, so only memory can be
  // missing.
  static Checker of_writing(const std::string& path);

  [[noreturn]] void fail(const std::string& problem) const;
  void require(bool condition, const std::string& problem) const {
    if (!condition) fail(problem);
  }
  // Checks the result of a call that returns something negative when it fails.
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

// A property list of `kind` (H5P_FILE_CREATE, H5P_GROUP_CREATE, H5P_DATASET_CREATE) without object times.
// Times would make the bytes of equal content differ.
Handle untimed_list(const Checker& check, hid_t kind);

// A link creation list for names in UTF-8.
Handle utf8_link_list(const Checker& check);

// Sets the versions of HDF5's structures on a file's access list. Those of HDF5 1.8 are compact and have no
// limit of 64 KiB on attributes. Later ones mark a file as open for writing, and the mark stays when the
// writer dies.
void set_format_bounds(const Checker& check, hid_t access_list);

// The little-endian type of the elements. HDF5 1.10 has no bf16 and no boolean, so these are unsigned
// integers of the same size.
Handle element_type(const Checker& check, DType dtype);

// IEEE binary16, which HDF5 1.10 has no name for: 1 sign bit, 5 exponent bits with bias 15, 10 mantissa bits.
Handle half_type(const Checker& check);

}  // namespace holdfast::format
