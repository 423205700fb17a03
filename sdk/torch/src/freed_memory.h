#pragma once

// What the process does with memory that a step of LibTorch frees.

namespace holdfast::torch {

// From here on the process keeps memory that it frees, instead of returning it to the system and asking for it again in
// the next step. Arrays of more than 32 MiB are returned as before. Limits of malloc that the environment sets
// (MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_, GLIBC_TUNABLES) stay. Changes no number that is computed.
void keep_freed_memory();

}  // namespace holdfast::torch
