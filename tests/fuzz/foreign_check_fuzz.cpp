// The check of foreign HDF5 files that runs before HDF5 reads them. Its result cannot be verified here; the target
// looks for reads outside the file, endless loops, and memory out of proportion to the input.

#include "foreign_hdf5/foreign_check.h"

#include "fuzz_input.h"

using namespace holdfast;
using namespace holdfast::format;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto accepts = [&](TreeDemand demand) {
    return fuzz::succeeds(
        [&] { check_foreign_hdf5(std::as_bytes(std::span(data, size)), {.max_objects = 1000}, demand); });
  };
  // A caller that asks for what can be read gets what a caller that asks for all gets.
  HOLDFAST_ASSERT(!accepts(TreeDemand::whole) || accepts(TreeDemand::readable));
  return 0;
}
