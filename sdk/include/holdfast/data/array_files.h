#pragma once

// Arrays from files of NumPy (.npy, .npz), safetensors and HDF5 as data. The content decides whether a file is of the
// expected kind, never its name. Nothing in a file is run: pickled objects are refused.
//
//   const Dataset digits = from_tensors(read_npz("digits.npz", "x"), read_npz("digits.npz", "y"));
//   const Dataset pairs = from_tensors(read_hdf5("pairs.h5", {"left", "right"}), read_hdf5("pairs.h5", {"same"}));
//   const Dataset large = from_files({{.path = "images.npy"}}, {{.path = "labels.npy"}});   // stays on disk
//
// Only the arrays that are asked for matter. Whatever else a file holds may be of any type.

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/tensor.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

// How an array of a file becomes an array of samples.
struct ArrayFileOptions {
  // Converts the elements to this type. Without it, elements of types that samples can have (f32, bf16, i32, i64, u8,
  // u16, boolean) stay as they are, bit for bit, and others such as f64 are refused. Floats are rounded to the nearest.
  // A value that the type cannot hold is an error: 300 as u8, 0.5 as i32, 2 as boolean, 1e300 as f32.
  std::optional<DType> dtype = {};
  // The limit for the elements of one array, and for an HDF5 file, which is in memory as a whole while it is read.
  std::int64_t max_bytes = std::int64_t{64} << 30;
};

// The one array of a .npy file. Arrays come row-major, whatever order and byte order they have in the file.
//
// This and all functions below throw
//   - Error{not_found} if the file, or an array in it, does not exist. It lists the arrays that do;
//   - Error{invalid_file} for damaged content, a file of another kind, and a value that `dtype` cannot hold;
//   - Error{unsupported} for elements that samples cannot have without a conversion, and for pickled objects, texts,
//     complex numbers and compounds;
//   - Error{out_of_memory} above the limit, before the memory is taken. A member of a .npz that claims more than 4 GiB
//     and more than 100 times its compressed size gets Error{invalid_file};
//   - Error{refused, input_output} from the file system.
Tensor read_npy(const std::string& path, const ArrayFileOptions& options = {});

// Arrays of a .npz file by name, stored or compressed, in the order that was asked for.
std::vector<NamedTensor> read_npz(const std::string& path, const std::vector<std::string>& arrays,
                                  const ArrayFileOptions& options = {});

// Arrays of a safetensors file by name.
std::vector<NamedTensor> read_safetensors(const std::string& path, const std::vector<std::string>& arrays,
                                          const ArrayFileOptions& options = {});

// Arrays of an HDF5 file by path, such as "train/x": of h5py, PyTables, MATLAB 7.3 and others, or of Holdfast. A
// process of its own parses the file in a sandbox. Links are not followed, except for hard ones. "holdfast inspect"
// lists what can be read of a file.
std::vector<NamedTensor> read_hdf5(const std::string& path, const std::vector<std::string>& arrays,
                                   const ArrayFileOptions& options = {});

// One array. These are templates so that a list in braces always means several arrays.
template <std::convertible_to<std::string> Name>
Tensor read_npz(const std::string& path, const Name& array, const ArrayFileOptions& options = {}) {
  return std::move(read_npz(path, std::vector<std::string>{array}, options)[0].tensor);
}
template <std::convertible_to<std::string> Name>
Tensor read_safetensors(const std::string& path, const Name& array, const ArrayFileOptions& options = {}) {
  return std::move(read_safetensors(path, std::vector<std::string>{array}, options)[0].tensor);
}
template <std::convertible_to<std::string> Name>
Tensor read_hdf5(const std::string& path, const Name& array, const ArrayFileOptions& options = {}) {
  return std::move(read_hdf5(path, std::vector<std::string>{array}, options)[0].tensor);
}

// An array that stays in its file.
struct FileArray {
  std::string path;                 // .npy, .npz or safetensors
  std::string array = {};           // its name in the file; empty for .npy
  std::string name = {};            // in the samples; empty: that of the file
  std::optional<DType> dtype = {};  // as in ArrayFileOptions
};

// A data set of arrays that need not fit into memory. Samples are read as batches need them, one row of each array, so
// shuffle() with a window keeps reads close together. Opening reads each file once, for the digests of the description:
// they are those of from_tensors() with the same arrays and names, so a run may go on with the other one.
//
// The files must not change as long as the data set is in use. Besides the errors above, it throws
// Error{unsupported} for arrays whose rows do not lie in the file as such: compressed (numpy.savez_compressed),
// column-major, or in HDF5. Throws Error{invalid_argument} for arrays of different numbers of rows and no inputs.
Dataset from_files(const std::vector<FileArray>& inputs, const std::vector<FileArray>& targets);

}  // namespace holdfast
