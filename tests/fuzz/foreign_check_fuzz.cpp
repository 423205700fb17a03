// The look at strangers' HDF5 files that comes before HDF5's own. It says nothing of what it passes; this looks for
// reads outside the file, for circles, and for memory beyond the input's.

#include "foreign_hdf5/foreign_check.h"

#include "fuzz_input.h"

using namespace holdfast;
using namespace holdfast::format;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::succeeds([&] { check_foreign_hdf5(std::as_bytes(std::span(data, size)), {.max_objects = 1000}); });
  return 0;
}
