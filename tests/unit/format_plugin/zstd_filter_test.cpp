// Loads the module as HDF5 does, and calls its filter as HDF5 does.

#include <H5PLextern.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "support/folders.h"

namespace holdfast::format {
namespace {

class ZstdFilter : public ::testing::Test {
 protected:
  struct Chunk {
    std::size_t size;  // 0: the filter failed
    std::vector<std::byte> bytes;
  };

  ZstdFilter()
      : module_(
            dlopen((program_folder() + "/../hdf5-plugins/libholdfast_hdf5_zstd.so").c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (module_ == nullptr) throw std::runtime_error(dlerror());
    const auto info = reinterpret_cast<const void* (*)()>(dlsym(module_, "H5PLget_plugin_info"));
    filter_ = static_cast<const H5Z_class2_t*>(info());
  }
  ~ZstdFilter() override { dlclose(module_); }

  Chunk apply(unsigned flags, const std::vector<std::byte>& bytes, std::vector<unsigned> parameters = {}) const {
    std::size_t buffer_bytes = bytes.size();
    void* buffer = std::malloc(buffer_bytes + 1);
    std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(buffer));
    Chunk chunk;
    chunk.size = filter_->filter(flags, parameters.size(), parameters.data(), bytes.size(), &buffer_bytes, &buffer);
    EXPECT_LE(chunk.size, buffer_bytes);
    if (chunk.size > 0) {
      chunk.bytes.resize(chunk.size);
      std::memcpy(chunk.bytes.data(), buffer, chunk.size);
    }
    // HDF5 frees the buffer. After a failure it is the one that HDF5 passed.
    std::free(buffer);
    return chunk;
  }
  Chunk compress(const std::vector<std::byte>& bytes, std::vector<unsigned> parameters = {}) const {
    return apply(0, bytes, std::move(parameters));
  }
  Chunk decompress(const std::vector<std::byte>& frame) const { return apply(H5Z_FLAG_REVERSE, frame); }

  static std::vector<std::byte> content() {
    std::vector<std::byte> bytes(20'000);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i / 100);
    return bytes;
  }

  void* module_;
  const H5Z_class2_t* filter_;
};

TEST_F(ZstdFilter, HasNumber32015AndBothDirections) {
  EXPECT_EQ(reinterpret_cast<H5PL_type_t (*)()>(dlsym(module_, "H5PLget_plugin_type"))(), H5PL_TYPE_FILTER);
  EXPECT_EQ(filter_->version, H5Z_CLASS_T_VERS);
  EXPECT_EQ(filter_->id, 32015);
  EXPECT_EQ(filter_->encoder_present, 1U);
  EXPECT_EQ(filter_->decoder_present, 1U);
}

TEST_F(ZstdFilter, DecompressesWhatItCompressedAtAnyLevel) {
  for (const int level : {-7, 0, 1, 3, 19, 1000, -1'000'000'000}) {
    const Chunk frame = compress(content(), {static_cast<unsigned>(level)});
    ASSERT_GT(frame.size, 0U) << level;

    const Chunk back = decompress(frame.bytes);

    EXPECT_TRUE(back.bytes == content()) << level;
  }
  EXPECT_TRUE(decompress(compress(content()).bytes).bytes == content());
}

TEST_F(ZstdFilter, ObeysTheLevel) {
  EXPECT_LT(compress(content(), {19}).size, compress(content(), {static_cast<unsigned>(-50)}).size);
}

TEST_F(ZstdFilter, FailsOnAFrameThatIsCutOffAnywhere) {
  const Chunk frame = compress(content());
  for (std::size_t length = 0; length < frame.size; length += 7) {
    const std::vector<std::byte> part(frame.bytes.begin(), frame.bytes.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_EQ(decompress(part).size, 0U) << length;
  }
}

TEST_F(ZstdFilter, FailsOnDamageAndOnBytesAfterTheFrame) {
  Chunk frame = compress(content());
  std::vector<std::byte> longer = frame.bytes;
  longer.push_back(std::byte{0});
  std::vector<std::byte> twice = frame.bytes;
  twice.insert(twice.end(), frame.bytes.begin(), frame.bytes.end());

  EXPECT_EQ(decompress(longer).size, 0U);
  EXPECT_EQ(decompress(twice).size, 0U);
  EXPECT_EQ(decompress(content()).size, 0U);
  for (std::size_t i = 0; i < frame.size; ++i) {
    frame.bytes[i] ^= std::byte{0x40};
    const Chunk back = decompress(frame.bytes);
    EXPECT_TRUE(back.size == 0 || back.bytes == content()) << i;
    frame.bytes[i] ^= std::byte{0x40};
  }
}

TEST_F(ZstdFilter, AllocatesNoMemoryForMoreThanAFrameCanContain) {
  // One empty raw block in a frame that claims 2^45 bytes, and one that claims 2^30.
  for (const unsigned exponent : {45U, 30U}) {
    std::vector<std::byte> frame = {std::byte{0x28}, std::byte{0xB5}, std::byte{0x2F}, std::byte{0xFD},
                                    std::byte{0xE0}};
    for (unsigned i = 0; i < 8; ++i) frame.push_back(static_cast<std::byte>(std::uint64_t{1} << exponent >> 8 * i));
    frame.insert(frame.end(), {std::byte{1}, std::byte{0}, std::byte{0}});
    ASSERT_EQ(ZSTD_getFrameContentSize(frame.data(), frame.size()), std::uint64_t{1} << exponent);

    EXPECT_EQ(decompress(frame).size, 0U);
  }
}

TEST_F(ZstdFilter, FailsIfAFrameDoesNotStateItsSize) {
  const std::vector<std::byte> bytes = content();
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  std::vector<std::byte> frame(ZSTD_compressBound(bytes.size()));
  frame.resize(ZSTD_compress2(context, frame.data(), frame.size(), bytes.data(), bytes.size()));
  ZSTD_freeCCtx(context);

  EXPECT_EQ(decompress(frame).size, 0U);
}

}  // namespace
}  // namespace holdfast::format
