// HDF5 has settings for the whole process: by default it prints its errors, and it loads plug-ins for the
// filters that a file names. A Session holds one lock for the process, turns both off, and restores the
// application's settings at its end.

#include "hdf5/hdf5_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
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

// The first entry of the walk is the innermost one. The others only repeat how HDF5 got there.
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

// The fields are set before the size, because HDF5 refuses a size that they do not fit into.
Handle half_type(const Checker& check) {
  Handle type = check.opened(H5Tcopy(H5T_IEEE_F32LE), H5Tclose, "no half type");
  check.succeeded(H5Tset_fields(type, 15, 10, 5, 0, 10), "no half type");
  check.succeeded(H5Tset_size(type, 2), "no half type");
  check.succeeded(H5Tset_ebias(type, 15), "no half type");
  return type;
}

Handle element_type(const Checker& check, DType dtype) {
  if (dtype == DType::f16) return half_type(check);
  const std::pair<DType, hid_t> types[] = {
      {DType::f64, H5T_IEEE_F64LE}, {DType::f32, H5T_IEEE_F32LE}, {DType::bf16, H5T_STD_U16LE},
      {DType::i8, H5T_STD_I8LE},    {DType::i16, H5T_STD_I16LE},  {DType::i32, H5T_STD_I32LE},
      {DType::i64, H5T_STD_I64LE},  {DType::u8, H5T_STD_U8LE},    {DType::u16, H5T_STD_U16LE},
      {DType::u32, H5T_STD_U32LE},  {DType::u64, H5T_STD_U64LE},  {DType::boolean, H5T_STD_U8LE}};
  const auto* type =
      std::find_if(std::begin(types), std::end(types), [&](const auto& each) { return each.first == dtype; });
  check.require(type != std::end(types), "no element type");
  return check.opened(H5Tcopy(type->second), H5Tclose, "no element type");
}

// Without it HDF5 would mark names as ASCII, and other programs could show them wrong.
Handle utf8_link_list(const Checker& check) {
  Handle list = check.opened(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "no link creation list");
  check.succeeded(H5Pset_char_encoding(list, H5T_CSET_UTF8), "cannot set UTF-8 names");
  return list;
}

// With an upper bound a later HDF5 writes no newer structures.
void set_format_bounds(const Checker& check, hid_t access_list) {
  check.succeeded(H5Pset_libver_bounds(access_list, H5F_LIBVER_V18, H5F_LIBVER_V110),
                  "HDF5 does not take the format bounds");
  check.succeeded(H5Pset_fclose_degree(access_list, H5F_CLOSE_STRONG), "HDF5 does not take the close degree");
}

}  // namespace holdfast::format
