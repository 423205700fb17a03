#include "hdf5/zstd_filter.h"

#include <hdf5.h>
#include <zstd.h>

#include <cstdint>
#include <cstdlib>

namespace holdfast::format {
namespace {

// The registered number of zstd among HDF5's filters.
constexpr H5Z_filter_t kNumber = 32015;

// HDF5's contract: `*buffer` is of malloc and is replaced; 0 says that the bytes are no such frame.
std::size_t decode(unsigned flags, std::size_t, const unsigned*, std::size_t bytes, std::size_t* buffer_bytes,
                   void** buffer) {
  if ((flags & H5Z_FLAG_REVERSE) == 0) return 0;
  const unsigned long long content = ZSTD_getFrameContentSize(*buffer, bytes);
  if (content == ZSTD_CONTENTSIZE_ERROR || content == ZSTD_CONTENTSIZE_UNKNOWN || content == 0) return 0;
  void* decoded = std::malloc(content);
  if (decoded == nullptr) return 0;
  const std::size_t size = ZSTD_decompress(decoded, content, *buffer, bytes);
  if (ZSTD_isError(size) != 0 || size != content) {
    std::free(decoded);
    return 0;
  }
  std::free(*buffer);
  *buffer = decoded;
  *buffer_bytes = content;
  return size;
}

}  // namespace

bool register_zstd_filter() {
  static const H5Z_class2_t kFilter = {.version = H5Z_CLASS_T_VERS,
                                       .id = kNumber,
                                       .encoder_present = 0,
                                       .decoder_present = 1,
                                       .name = "zstd",
                                       .can_apply = nullptr,
                                       .set_local = nullptr,
                                       .filter = decode};
  return H5Zfilter_avail(kNumber) > 0 || H5Zregister(&kFilter) >= 0;
}

}  // namespace holdfast::format
