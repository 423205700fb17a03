// The check of foreign HDF5 files that runs before HDF5 reads them. Its result cannot be verified here; the target
// looks for reads outside the file, endless loops, and memory out of proportion to the input.

#include "foreign_hdf5/foreign_check.h"

#include "fuzz_input.h"

using namespace holdfast;
using namespace holdfast::format;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::succeeds([&] { check_foreign_hdf5(std::as_bytes(std::span(data, size)), {.max_objects = 1000}); });
  return 0;
}
