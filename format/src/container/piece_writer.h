#pragma once

// Encodes all pieces in several threads and writes them to their places while others are still being encoded.

#include "container/piece_encoder.h"
#include "holdfast/base/file_system.h"

namespace holdfast::format {

// Blocks until all pieces are handed to the operating system, which has begun to bring them to the disk.
void write_pieces(File& file, PieceEncoder& encoder, const WriteOptions& options);

}  // namespace holdfast::format
