// For a run that ends unfinished. The watchdog calls this in its own process, which has no Trainable: the image alone
// must be enough.

#include "holdfast/train/memory_savepoint.h"

#include "train/context/replica_context.h"
#include "train/state/resume.h"
#include "train/state/snapshot.h"

namespace holdfast {

std::optional<std::string> save_from_memory(const std::string& run_directory, std::int64_t,
                                            std::span<const std::byte> image) {
  // The steps of a watchdog are those of all Trainers of a run, and those of a state are its own.
  const Snapshot kept = view_of_image(image);
  const std::string folder = directory_of_trainer(run_directory, kept.state.trainer);
  posix_file_system().create_folders(folder);
  if (newest_savepoint_step(posix_file_system(), folder).value_or(-1) >= kept.state.step) return std::nullopt;
  const std::string path = folder + "/" + savepoint_name(kept.state.step);
  write_savepoint(posix_file_system(), path, kept);
  return path;
}

}  // namespace holdfast
