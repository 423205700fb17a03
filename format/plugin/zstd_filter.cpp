// HDF5's registered filter 32015, zstd, as a plug-in. With its folder in HDF5_PLUGIN_PATH, any program that
// uses HDF5 reads and writes zstd chunks. It calls no function of HDF5, so one module serves every version
// of the library, including copies that programs ship.
//
// Chunks come from files of unknown origin: a frame is refused when it claims more than its bytes can hold.

#include <H5PLextern.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

namespace {

constexpr H5Z_filter_t kZstdFilter = 32015;

// HDF5 owns and frees a filter's buffers with the C library.
struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<void, Free>;

// HDF5 takes a size of 0 for a failure; its buffer must then be unchanged.
constexpr std::size_t kFailure = 0;

std::size_t replace(void** buffer, std::size_t* buffer_bytes, Buffer replacement, std::size_t capacity,
                    std::size_t size) {
  std::free(*buffer);
  *buffer = replacement.release();
  *buffer_bytes = capacity;
  return size;
}

std::size_t decompress(std::size_t frame_bytes, std::size_t* buffer_bytes, void** buffer) {
  // A block of 4 bytes expands to 128 KiB at most.
  constexpr std::uint64_t kMaxBytesPerByte = std::uint64_t{128} * 1024 / 4;
  const unsigned long long size = ZSTD_getFrameContentSize(*buffer, frame_bytes);
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size == 0) return kFailure;
  if (size / kMaxBytesPerByte > frame_bytes) return kFailure;
  Buffer content(std::malloc(size));
  if (content == nullptr) return kFailure;
  // Also fails for bytes after the frame, and for a frame with more or fewer bytes than it states.
  if (ZSTD_decompress(content.get(), size, *buffer, frame_bytes) != size) return kFailure;
  return replace(buffer, buffer_bytes, std::move(content), size, size);
}

std::size_t compress(int level, std::size_t bytes, std::size_t* buffer_bytes, void** buffer) {
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  const std::size_t capacity = ZSTD_compressBound(bytes);
  Buffer frame(std::malloc(capacity));
  if (context == nullptr || frame == nullptr) return kFailure;
  const int possible = std::clamp(level, ZSTD_minCLevel(), ZSTD_maxCLevel());
  if (ZSTD_isError(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, possible)) ||
      ZSTD_isError(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1))) {
    return kFailure;
  }
  const std::size_t size = ZSTD_compress2(context.get(), frame.get(), capacity, *buffer, bytes);
  if (ZSTD_isError(size)) return kFailure;
  return replace(buffer, buffer_bytes, std::move(frame), capacity, size);
}

// The filter's one parameter is zstd's level, stored as unsigned.
std::size_t filter(unsigned flags, std::size_t parameters, const unsigned* values, std::size_t bytes,
                   std::size_t* buffer_bytes, void** buffer) {
  if ((flags & H5Z_FLAG_REVERSE) != 0) return decompress(bytes, buffer_bytes, buffer);
  return compress(parameters > 0 ? static_cast<int>(values[0]) : ZSTD_CLEVEL_DEFAULT, bytes, buffer_bytes, buffer);
}

const H5Z_class2_t kFilterClass = {H5Z_CLASS_T_VERS, kZstdFilter, 1, 1, "zstd", nullptr, nullptr, filter};

}  // namespace

H5PL_type_t H5PLget_plugin_type() {
  return H5PL_TYPE_FILTER;
}

const void* H5PLget_plugin_info() {
  return &kFilterClass;
}
