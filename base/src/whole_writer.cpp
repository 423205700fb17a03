#include "holdfast/base/whole_writer.h"

#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/temporary_files.h"

namespace holdfast {

WholeWriter::WholeWriter(FileSystem& files, std::string path)
    : files_(files), path_(std::move(path)), temporary_(temporary_path(path_)), file_(files.create(temporary_)) {}

WholeWriter::~WholeWriter() {
  if (is_renamed_) return;
  try {
    file_.reset();
    files_.remove(temporary_);
  } catch (...) {
    // The error that led here says more. remove_temporary_files() finds a file that stays.
  }
}

void WholeWriter::append(std::span<const std::byte> bytes) {
  write_at(appended_bytes_, bytes);
  appended_bytes_ += bytes.size();
}

void WholeWriter::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  HOLDFAST_ASSERT(file_ != nullptr);
  if (!bytes.empty()) file_->write_at(offset, bytes);
}

void WholeWriter::commit() {
  HOLDFAST_ASSERT(file_ != nullptr);
  // The content must be durable before the name: after a power cut the new name could otherwise
  // stand for an empty file.
  file_->sync();
  file_.reset();
  files_.rename(temporary_, path_);
  is_renamed_ = true;
  // Without this, a power cut could undo the rename.
  files_.sync_folder(parent_folder(path_));
}

}  // namespace holdfast
