#pragma once

// Encodes all pieces in several threads, and writes each as soon as its offset is known.

#include "container/piece_encoder.h"
#include "holdfast/base/file_system.h"

namespace holdfast::format {

// Blocks until the operating system has all pieces and has started to write them to the disk. Not durable
// before File::sync(). Rethrows the first exception of any thread.
void write_pieces(File& file, PieceEncoder& encoder, const WriteOptions& options);

}  // namespace holdfast::format
