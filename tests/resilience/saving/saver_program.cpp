// Saves as a run does, until it is killed. Finds the newest savepoint, continues from it, and writes the step of each
// savepoint to standard output once it is durable; first the step of the savepoint that it found, or -1.
//
//   savepoint_saver FOLDER COPY

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "holdfast/base/temporary_files.h"
#include "holdfast/format/catalogue.h"
#include "holdfast/format/savepoint_keeper.h"
#include "resilience/saving/support/known_savepoints.h"

namespace holdfast {
namespace {

void report(std::int64_t step) {
  if (::write(STDOUT_FILENO, &step, sizeof step) != static_cast<ssize_t>(sizeof step)) ::_exit(4);
}

bool has_leftovers(FileSystem& files, const std::string& folder) {
  const std::vector<std::string> names = files.list(folder);
  return std::any_of(names.begin(), names.end(), is_temporary_name);
}

int save_for_ever(const std::string& folder, const std::string& copy) {
  FileSystem& files = posix_file_system();
  const std::vector<std::string> folders = {folder, copy};
  std::int64_t step = -1;
  format::find_newest_savepoint(
      files, folders, [&](const std::string& path) { step = read_known_savepoint(files, path); }, {.is_owner = true});
  if (has_leftovers(files, folder) || has_leftovers(files, copy)) return 3;
  report(step);
  format::SavepointKeeper keeper(files, folder, {.copies = {copy}, .retention = {.keep_last = 2}});
  for (;;) {
    ++step;
    write_known_savepoint(files, folder + "/" + format::savepoint_name(step), step);
    report(step);
    keeper.keep(format::savepoint_name(step));
  }
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    return holdfast::save_for_ever(argv[1], argv[2]);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
