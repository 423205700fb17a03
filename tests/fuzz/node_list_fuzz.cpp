// A list of nodes, as Slurm puts it into the environment.

#include <string_view>

#include "fuzz_input.h"
#include "hosts/node_list.h"

using namespace holdfast;
using namespace holdfast::recovery;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::succeeds([&] {
    const auto names = nodes_of(std::string_view(reinterpret_cast<const char*>(data), size));
    HOLDFAST_ASSERT(!names.empty() && names.size() <= kMostHosts);
  });
  return 0;
}
