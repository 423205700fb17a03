#include "subcommands.h"

#include "option_checks.h"

namespace holdfast::cli {

void add_max_memory(CLI::App& command, std::uint64_t& bytes) {
  command
      .add_option("--max-memory", bytes,
                  "The most memory to use for another program's HDF5 file, such as 16GiB (default: 4GiB)")
      ->transform(size_in_bytes())
      ->type_name("SIZE");
}

}  // namespace holdfast::cli
