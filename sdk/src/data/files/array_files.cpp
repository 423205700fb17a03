// The readers of files are those of the holdfast command (exchange), which checks files of strangers. This source makes
// tensors of what they return, and lies in the only folder of the SDK that includes their headers.
// docs/decisions/array-files.md

#include "holdfast/data/array_files.h"

#include <fmt/format.h>

#include "data/files/array_conversion.h"
#include "data/files/file_array.h"
#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/format/exchange/chosen_arrays.h"

namespace holdfast {
namespace {

using format::ArrayFileKind;
using format::ArrayInfo;
using format::ChosenArrays;

Tensor tensor_of(const ArrayInfo& array, std::vector<std::byte> bytes, const std::string& path,
                 const ArrayFileOptions& options) {
  const std::string label = file_array_label(path, array.name);
  Tensor tensor(shape_of_file_array(array.shape, label), converted_type(array.dtype, options.dtype, label));
  convert_elements(bytes, array.dtype, tensor.bytes(), tensor.dtype(), 0, label);
  return tensor;
}

std::vector<NamedTensor> read_chosen(const std::string& path, ArrayFileKind kind, const std::vector<std::string>& names,
                                     const ArrayFileOptions& options) {
  if (names.empty() || options.max_bytes < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("reading arrays of {} needs the name of at least one and max_bytes of at least 1, not {} "
                            "names and {}",
                            quoted_path(path), names.size(), options.max_bytes));
  }
  // Opens the file and checks what it says of the chosen arrays, but reads no element yet.
  const ChosenArrays chosen(posix_file_system(), path, kind, names,
                            {.max_bytes = static_cast<std::uint64_t>(options.max_bytes)});
  // Before elements are read: what is wrong with a type should not take minutes to be said.
  for (const ArrayInfo& array : chosen.arrays()) {
    converted_type(array.dtype, options.dtype, file_array_label(path, array.name));
  }
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < names.size(); ++i) {
    tensors.push_back({.name = names[i], .tensor = tensor_of(chosen.arrays()[i], chosen.read(i), path, options)});
  }
  return tensors;
}

}  // namespace

Tensor read_npy(const std::string& path, const ArrayFileOptions& options) {
  return std::move(read_chosen(path, ArrayFileKind::npy, {""}, options)[0].tensor);
}

std::vector<NamedTensor> read_npz(const std::string& path, const std::vector<std::string>& arrays,
                                  const ArrayFileOptions& options) {
  return read_chosen(path, ArrayFileKind::npz, arrays, options);
}

std::vector<NamedTensor> read_safetensors(const std::string& path, const std::vector<std::string>& arrays,
                                          const ArrayFileOptions& options) {
  return read_chosen(path, ArrayFileKind::safetensors, arrays, options);
}

std::vector<NamedTensor> read_hdf5(const std::string& path, const std::vector<std::string>& arrays,
                                   const ArrayFileOptions& options) {
  return read_chosen(path, ArrayFileKind::hdf5, arrays, options);
}

}  // namespace holdfast
