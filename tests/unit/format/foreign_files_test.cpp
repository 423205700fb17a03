// Files that other programs wrote (files/make_files.py): one that keeps to docs/format.md, and many that carry the
// right digests and break one rule each. Those give an error that says what is wrong, never a crash or a giant
// allocation.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "holdfast/format/array_file.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format {
namespace {

using ::testing::HasSubstr;

std::string path_of(const std::string& name) {
  return std::string(HOLDFAST_SOURCE_DIR) + "/tests/unit/format/files/" + name + ".h5";
}

template <typename Element>
std::vector<Element> elements(const ArrayFile& file, const std::string& name) {
  const std::vector<std::byte> bytes = file.read(name);
  std::vector<Element> result(bytes.size() / sizeof(Element));
  file.read_into(name, std::as_writable_bytes(std::span(result)));
  return result;
}

TEST(FileByAStranger, IsRead) {
  const ArrayFile file = ArrayFile::open(posix_file_system(), path_of("by_a_stranger"));

  EXPECT_EQ(file.metadata(), R"({"step": 7})");
  ASSERT_EQ(file.arrays().size(), 6U);
  EXPECT_EQ(elements<std::int64_t>(file, "scalar"), std::vector<std::int64_t>{7});
  EXPECT_EQ(file.find("scalar")->shape, std::vector<std::uint64_t>{});
  EXPECT_EQ(file.find("model/half")->dtype, DType::f16);
  EXPECT_EQ(elements<std::uint16_t>(file, "model/half"), (std::vector<std::uint16_t>{0x3C00, 0x4000, 0x4200}));
  EXPECT_EQ(file.find("model/brain")->dtype, DType::bf16);
  EXPECT_EQ(file.find("model/brain")->shape, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(elements<std::uint16_t>(file, "model/brain"), (std::vector<std::uint16_t>{0x3F80, 0x4000}));
  EXPECT_EQ(file.find("model/flags")->dtype, DType::boolean);
  EXPECT_EQ(elements<std::uint8_t>(file, "model/flags"), (std::vector<std::uint8_t>{1, 0, 1}));
}

TEST(FileByAStranger, HasItsChunksDecoded) {
  const ArrayFile file = ArrayFile::open(posix_file_system(), path_of("by_a_stranger"));

  for (const auto& [name, count] : {std::pair<std::string, std::size_t>{"model/rows", 1100}, {"model/wide", 300'000}}) {
    const std::vector<float> values = elements<float>(file, name);

    ASSERT_EQ(values.size(), count);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(values[i], static_cast<float>(i)) << name;
  }
}

struct Hostile {
  const char* file;
  const char* sentence_part;
};
void PrintTo(const Hostile& hostile, std::ostream* out) {
  *out << hostile.file;
}

class HostileFile : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileFile, GivesAnErrorThatSaysWhatIsWrong) {
  const testing::Thrown thrown = testing::thrown_by([] {
    const ArrayFile file = ArrayFile::open(posix_file_system(), path_of(GetParam().file));
    for (const ArrayInfo& array : file.arrays()) static_cast<void>(file.read(array.name));
  });

  EXPECT_EQ(thrown.code, ErrorCode::invalid_file);
  EXPECT_THAT(thrown.sentence, HasSubstr(path_of(GetParam().file)));
  EXPECT_THAT(thrown.sentence, HasSubstr(GetParam().sentence_part));
}

constexpr Hostile kHostile[] = {
    {"shape_without_chunks", "a has 0 of its 4194304 chunks"},
    {"shape_beyond_64_bits", "a is larger than 64 bits count"},
    {"shape_never_written", "a is not stored in chunks"},
    {"external_storage", "a is not stored plainly in the file"},
    {"virtual_dataset", "a is not stored plainly in the file"},
    {"soft_link", "a is a soft or external link"},
    {"external_link", "a is a soft or external link"},
    {"cycle_of_groups", "is a second name of another object"},
    {"second_name", "is a second name of another object"},
    {"named_type", "type is no group or dataset"},
    {"deep_groups", "lies in too many groups"},
    {"long_name", "a name is longer than 1024 bytes"},
    {"no_digest", "a has no digest"},
    {"digest_of_variable_length", "attribute digest of a is no string of fixed length"},
    {"digest_of_wrong_length", "the digest of a is none"},
    {"digest_without_digits", "the digest of a is none"},
    {"digest_as_list", "attribute digest of a is no short text"},
    {"digest_too_long", "attribute digest of a is no short text"},
    {"digest_of_other_bytes", "has digest"},
    {"big_endian", "a has an element type that the format does not have"},
    {"compound", "a has an element type that the format does not have"},
    {"enumeration", "a has an element type that the format does not have"},
    {"dtype_of_other_width", "a has an element type that the format does not have"},
    {"dtype_unknown", "a has an element type that the format does not have"},
    {"dtype_superfluous", "a has an element type that the format does not have"},
    {"unknown_filter", "a is not encoded by shuffle and zstd"},
    {"no_filter", "a is not encoded by shuffle and zstd"},
    {"gzip_filter", "a is not encoded by shuffle and zstd"},
    {"large_and_contiguous", "a is not stored in chunks"},
    {"other_chunk_shape", "a is cut into other chunks"},
    {"missing_chunk", "a has 1 of its 2 chunks"},
    {"chunk_not_encoded", "chunk 0 of a is not encoded"},
    {"chunk_shorter_than_its_shape", "a cannot be stored in 1 bytes"},
    {"chunk_of_garbage", "chunk 0 of a is no whole zstd frame of 4400 bytes"},
    {"frame_of_fewer_bytes", "chunk 0 of a is no whole zstd frame of 4400 bytes"},
    {"frame_of_more_bytes", "chunk 0 of a is no whole zstd frame of 4400 bytes"},
    {"frame_cut_off", "chunk 0 of a is no whole zstd frame of 4400 bytes"},
    {"frame_with_a_tail", "chunk 0 of a is no whole zstd frame of 4400 bytes"},
    {"frame_that_claims_terabytes", "chunk 0 of a is no whole zstd frame of 4400 bytes"},
    {"null_space", "a has no shape"},
    {"no_metadata", "it has no metadata"},
    {"metadata_of_variable_length", "metadata is no string of fixed length"},
    {"metadata_as_number", "metadata is no string of fixed length"},
    {"metadata_as_list", "the metadata is no scalar"},
    {"metadata_never_written", "metadata needs 2 bytes, and 0 are stored"},
    {"metadata_as_group", "it has no metadata"},
};

INSTANTIATE_TEST_SUITE_P(All, HostileFile, ::testing::ValuesIn(kHostile),
                         [](const auto& test) { return std::string(test.param.file); });

}  // namespace
}  // namespace holdfast::format
