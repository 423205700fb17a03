#pragma once

// HDF5's shuffle: byte 0 of all elements, then byte 1 of all, and so on. The bytes of one significance lie together
// then, one *plane* of them per byte of an element, and a plane of exponents compresses where whole numbers do not.

#include <cstddef>
#include <span>

namespace holdfast::format {

// Vectors need no choice at run time: those of 16 bytes are in every processor that we run on, and wider ones gained
// nothing steady (7 to 25 GB/s against 11 to 27 with 16 bytes; one core of a Xeon, g++ 12.2).
//
// Past the caches: for results that nobody reads soon. Memory is then not read before it is overwritten, which saves a
// fifth of the time to load a state from the page cache (82 against 101 ms for 256 MiB of fp32, 100 against 129 ms for
// bf16; the same core, 2026-11-21). Only the way back knows it.
enum class ShuffleMethod { plain, vectors, vectors_past_caches };

// Elements have 1, 2, 4 or 8 bytes. `out` has room for `plane_elements` of them, at least as many as `in` holds: those
// that `in` lacks are zero. All methods give the same bytes.
void shuffle(std::span<const std::byte> in, std::size_t element_bytes, std::size_t plane_elements, std::byte* out,
             ShuffleMethod method = ShuffleMethod::vectors);

// The way back, for as many elements as `out` takes, at most the `plane_elements` of `in`.
void unshuffle(const std::byte* in, std::size_t element_bytes, std::size_t plane_elements, std::span<std::byte> out,
               ShuffleMethod method = ShuffleMethod::vectors);

// The same from planes that may lie anywhere, one for each byte of an element.
void unshuffle(std::span<const std::byte* const> planes, std::span<std::byte> out,
               ShuffleMethod method = ShuffleMethod::vectors);

}  // namespace holdfast::format
