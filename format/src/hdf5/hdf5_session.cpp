// HDF5 has settings for the whole process: by default it prints its errors, and it loads plug-ins for the
// filters that a file names. A Session holds one lock for the process, turns both off, and restores the
// application's settings at its end.

#include "hdf5/hdf5_session.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

namespace holdfast::format {
namespace {

std::mutex& session_mutex() {
  static std::mutex instance;
  return instance;
}

}  // namespace

Session::Session() : lock_(session_mutex()) {
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  // Errors become sentences (hdf5_message()) instead of text on standard error.
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5PLget_loading_state(&plugins_);
  // No plug-in is loaded, whatever filters a file names.
  H5PLset_loading_state(0);
}

Session::~Session() {
  H5PLset_loading_state(plugins_);
  H5Eclear2(H5E_DEFAULT);
  H5Eset_auto2(H5E_DEFAULT, print_, print_data_);
}

Handle::Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}

herr_t Handle::reset() {
  return id_ < 0 ? 0 : close_(std::exchange(id_, H5I_INVALID_HID));
}

std::string hdf5_message() {
  const auto keep_first = [](unsigned index, const H5E_error2_t* entry, void* text) -> herr_t {
    if (index == 0 && entry->desc != nullptr) {
      std::strncpy(static_cast<char*>(text), entry->desc, 255);  // 256 zero bytes: stays terminated
    }
    return 0;
  };
  std::array<char, 256> text{};
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, text.data());
  return text[0] == '\0' ? "" : fmt::format(" (HDF5: {})", text.data());
}

Checker::Checker(ErrorCode code, std::string head, std::string tail)
    : code_(code), head_(std::move(head)), tail_(std::move(tail)) {}

Checker Checker::of_writing(const std::string& path) {
  return {ErrorCode::out_of_memory, fmt::format("cannot compose the HDF5 structures of {}: ", path),
          "; free some memory and try again"};
}

void Checker::fail(const std::string& problem) const {
  throw Error(code_, head_ + problem + tail_);
}

Handle untimed_list(const Checker& check, hid_t kind) {
  Handle list = check.opened(H5Pcreate(kind), H5Pclose, "no creation list");
  check.succeeded(H5Pset_obj_track_times(list, false), "cannot leave out times");
  return list;
}

Handle half_type(const Checker& check) {
  Handle type = check.opened(H5Tcopy(H5T_IEEE_F32LE), H5Tclose, "no half type");
  check.succeeded(H5Tset_fields(type, 15, 10, 5, 0, 10), "no half type");
  check.succeeded(H5Tset_size(type, 2), "no half type");
  check.succeeded(H5Tset_ebias(type, 15), "no half type");
  return type;
}

Handle element_type(const Checker& check, DType dtype) {
  const auto copy = [&](hid_t type) { return check.opened(H5Tcopy(type), H5Tclose, "no element type"); };
  switch (dtype) {
    case DType::f64:
      return copy(H5T_IEEE_F64LE);
    case DType::f32:
      return copy(H5T_IEEE_F32LE);
    case DType::f16:
      return half_type(check);
    case DType::bf16:
      return copy(H5T_STD_U16LE);
    case DType::i8:
      return copy(H5T_STD_I8LE);
    case DType::i16:
      return copy(H5T_STD_I16LE);
    case DType::i32:
      return copy(H5T_STD_I32LE);
    case DType::i64:
      return copy(H5T_STD_I64LE);
    case DType::u8:
      return copy(H5T_STD_U8LE);
    case DType::u16:
      return copy(H5T_STD_U16LE);
    case DType::u32:
      return copy(H5T_STD_U32LE);
    case DType::u64:
      return copy(H5T_STD_U64LE);
    case DType::boolean:
      return copy(H5T_STD_U8LE);
  }
  check.fail("no element type");
}

Handle utf8_link_list(const Checker& check) {
  Handle list = check.opened(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "no link creation list");
  check.succeeded(H5Pset_char_encoding(list, H5T_CSET_UTF8), "cannot set UTF-8 names");
  return list;
}

void set_format_bounds(const Checker& check, hid_t access_list) {
  check.succeeded(H5Pset_libver_bounds(access_list, H5F_LIBVER_V18, H5F_LIBVER_V110),
                  "HDF5 does not take the format bounds");
  check.succeeded(H5Pset_fclose_degree(access_list, H5F_CLOSE_STRONG), "HDF5 does not take the close degree");
}

}  // namespace holdfast::format
