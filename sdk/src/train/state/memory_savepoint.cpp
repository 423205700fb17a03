// For a run that ends unfinished. The watchdog calls this in its own process, which has no Trainable: the image alone
// must be enough.

#include "holdfast/train/memory_savepoint.h"

#include "train/state/resume.h"
#include "train/state/snapshot.h"

namespace holdfast {

std::optional<std::string> save_from_memory(const std::string& run_directory, std::int64_t step,
                                            std::span<const std::byte> image) {
  if (newest_savepoint_step(posix_file_system(), run_directory).value_or(-1) >= step) return std::nullopt;
  const std::string path = run_directory + "/" + savepoint_name(step);
  write_savepoint(posix_file_system(), path, view_of_image(image));
  return path;
}

}  // namespace holdfast
