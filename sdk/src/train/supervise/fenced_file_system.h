#pragma once

// The files of a replica on one of several hosts. Once its host is cut off from the run, the other hosts may go on
// without it, and nothing that it did before may appear or go after that: no savepoint gets its name, none is deleted
// and none is set aside. docs/decisions/fences.md

#include <functional>
#include <memory>

#include "holdfast/base/file_system.h"

namespace holdfast {

// Passes everything to `target`. While `may_change` returns false, renames and removals fail with Error{input_output},
// as those of a storage that fails for a while: the replica keeps its state and trains on when its host is back.
// `may_change` is called on the thread of the operation, by several threads at once where several work.
std::unique_ptr<FileSystem> fenced_file_system(std::unique_ptr<FileSystem> target, std::function<bool()> may_change);

}  // namespace holdfast
