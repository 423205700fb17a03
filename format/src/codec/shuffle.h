#pragma once

// HDF5's shuffle: byte 0 of all elements, then byte 1 of all, and so on. Bytes of the same significance then
// lie together, in one *plane* for each byte of an element. A plane of exponents compresses well; whole floating
// point numbers do not.

#include <cstddef>
#include <span>

namespace holdfast::format {

// plain: one byte at a time, for comparison.
//
// vectors: 16 bytes at a time, which every processor that we support can do, so nothing is chosen at run time.
// Wider vectors gained nothing reliably (7 to 25 GB/s against 11 to 27 with 16 bytes; one core of a Xeon, g++
// 12.2).
//
// vectors_past_caches: for results that are not read soon. Memory is then not read before it is overwritten.
// This saves a fifth of the time to load a state from the page cache (82 against 101 ms for 256 MiB of fp32,
// 100 against 129 ms for bf16; the same core, 2026-11-21). It affects unshuffle() only.
enum class ShuffleMethod { plain, vectors, vectors_past_caches };

// Elements have 1, 2, 4 or 8 bytes. `out` has room for `plane_elements` elements, which is at least as many as
// `in` contains. Elements that `in` does not have become zero. All methods give the same bytes.
void shuffle(std::span<const std::byte> in, std::size_t element_bytes, std::size_t plane_elements, std::byte* out,
             ShuffleMethod method = ShuffleMethod::vectors);

// The reverse, for as many elements as `out` holds, at most `plane_elements`.
void unshuffle(const std::byte* in, std::size_t element_bytes, std::size_t plane_elements, std::span<std::byte> out,
               ShuffleMethod method = ShuffleMethod::vectors);

// The same with planes at any addresses, one for each byte of an element.
void unshuffle(std::span<const std::byte* const> planes, std::span<std::byte> out,
               ShuffleMethod method = ShuffleMethod::vectors);

}  // namespace holdfast::format
