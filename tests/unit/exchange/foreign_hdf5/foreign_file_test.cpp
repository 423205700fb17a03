// Files of other programs (files/make_files.py): good ones, and many that each use one feature that foreign files may
// not use. Each of these must give an error that names the object, never a crash or a giant allocation.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ostream>
#include <random>

#include "foreign_hdf5/tree.h"
#include "unit/exchange/support/trees.h"

namespace holdfast::format {
namespace {

using ::testing::HasSubstr;

template <typename Element>
std::vector<Element> elements(const NamedArray& array) {
  std::vector<Element> result(array.bytes.size() / sizeof(Element));
  std::copy(array.bytes.begin(), array.bytes.end(), std::as_writable_bytes(std::span(result)).begin());
  return result;
}

Hdf5Tree read_fixture(const std::string& name) {
  return read_hdf5_tree(posix_file_system(), testing::path_of(name));
}

// With the structures of HDF5 1.6 (symbol tables, version 1 of everything) and of 1.8 to 1.10.
class FileOfH5py : public ::testing::TestWithParam<const char*> {
 protected:
  static std::string file_name() { return std::string("all_kinds_") + GetParam() + ".h5"; }

  const NamedArray& array(const std::string& path) const {
    const Hdf5Dataset* dataset = tree_.find_dataset(path);
    EXPECT_NE(dataset, nullptr) << path;
    static const NamedArray kNone{};
    return dataset == nullptr ? kNone : dataset->array;
  }

  template <typename Value>
  Value attribute(const std::string& name) const {
    const Hdf5Attribute* found = find_attribute(tree_.find_group("attributes")->attributes, name);
    EXPECT_NE(found, nullptr) << name;
    return std::get<Value>(found->value);
  }

  template <typename Element>
  void expect_counting(const std::string& type, DType dtype, int first) const {
    for (const std::string order : {"little/", "big/"}) {
      const NamedArray& found = array(order + type);
      std::vector<Element> expected;
      for (int value = first; value < 9; ++value) expected.push_back(static_cast<Element>(value));
      EXPECT_EQ(found.dtype, dtype) << order << type;
      EXPECT_EQ(elements<Element>(found), expected) << order << type;
    }
  }

  const Hdf5Tree tree_ = read_fixture(file_name());
};

TEST_P(FileOfH5py, HasItsNumbersReadInEitherByteOrder) {
  expect_counting<double>("f8", DType::f64, -3);
  expect_counting<float>("f4", DType::f32, -3);
  expect_counting<std::int8_t>("i1", DType::i8, -3);
  expect_counting<std::int16_t>("i2", DType::i16, -3);
  expect_counting<std::int32_t>("i4", DType::i32, -3);
  expect_counting<std::int64_t>("i8", DType::i64, -3);
  expect_counting<std::uint8_t>("u1", DType::u8, 0);
  expect_counting<std::uint16_t>("u2", DType::u16, 0);
  expect_counting<std::uint32_t>("u4", DType::u32, 0);
  expect_counting<std::uint64_t>("u8", DType::u64, 0);
  const std::vector<std::uint16_t> halves = {0xC200, 0xC000, 0xBC00, 0,      0x3C00, 0x4000,
                                             0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800};
  EXPECT_EQ(elements<std::uint16_t>(array("little/f2")), halves);
  EXPECT_EQ(elements<std::uint16_t>(array("big/f2")), halves);
  EXPECT_EQ(array("big/f2").dtype, DType::f16);
}

TEST_P(FileOfH5py, HasItsUnusualTypesRead) {
  for (const char* path : {"bfloat16_of_keras", "bfloat16_of_hdf5"}) {
    EXPECT_EQ(array(path).dtype, DType::bf16) << path;
    EXPECT_EQ(elements<std::uint16_t>(array(path)), (std::vector<std::uint16_t>{0x3F80, 0x4000, 0xC000})) << path;
    EXPECT_TRUE(tree_.find_dataset(path)->attributes.empty()) << path;
  }
  EXPECT_EQ(array("bool").dtype, DType::boolean);
  EXPECT_EQ(array("bool").shape, (std::vector<std::uint64_t>{1, 3}));
  EXPECT_EQ(elements<std::uint8_t>(array("bool")), (std::vector<std::uint8_t>{1, 0, 1}));
}

TEST_P(FileOfH5py, HasItsSpecialShapesRead) {
  EXPECT_EQ(array("scalar").shape, std::vector<std::uint64_t>{});
  EXPECT_EQ(elements<float>(array("scalar")), std::vector<float>{1.5F});
  EXPECT_EQ(array("nothing").shape, (std::vector<std::uint64_t>{0, 3}));
  EXPECT_EQ(array("nothing").bytes.size(), 0U);
}

TEST_P(FileOfH5py, HasEveryStorageRead) {
  for (const char* name : {"contiguous", "chunked", "resizable", "gzip", "shuffled", "fletcher32", "zstd"}) {
    const std::vector<float> values = elements<float>(array(std::string("stored/") + name));

    ASSERT_EQ(values.size(), 3000U) << name;
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<float>(i)) << name;
  }
  EXPECT_EQ(elements<std::int32_t>(array("compact")), (std::vector<std::int32_t>{1, 2, 3}));
}

TEST_P(FileOfH5py, HasChunksThatCutAllAxesPutTogether) {
  const std::vector<std::int32_t> values = elements<std::int32_t>(array("stored/blocks"));

  EXPECT_EQ(array("stored/blocks").shape, (std::vector<std::uint64_t>{60, 50}));
  ASSERT_EQ(values.size(), 3000U);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<std::int32_t>(i));
}

TEST_P(FileOfH5py, HasTheFillValueWhereNothingWasWritten) {
  EXPECT_EQ(elements<float>(array("never_written")), std::vector<float>(4, 2.5F));
  const std::vector<float> sparse = elements<float>(array("stored/sparse"));  // [10, 10], big-endian in the file
  ASSERT_EQ(sparse.size(), 100U);
  for (std::size_t i = 0; i < 100; ++i) {
    const bool is_written = i / 10 >= 4 && i / 10 < 8 && i % 10 == 4;
    EXPECT_EQ(sparse[i], is_written ? 1.0F : -1.0F) << i;
  }
}

TEST_P(FileOfH5py, HasItsAttributesRead) {
  using Texts = std::vector<std::string>;

  EXPECT_EQ(attribute<std::string>("text"), "gr\xC3\xB6\xC3\x9F\x65");
  EXPECT_EQ(attribute<std::string>("no_text"), "");
  EXPECT_EQ(attribute<Texts>("texts"), (Texts{"a", "", "gr\xC3\xB6\xC3\x9F\x65"}));
  EXPECT_EQ(attribute<NamedArray>("no_texts").shape, std::vector<std::uint64_t>{0});
  EXPECT_EQ(attribute<std::string>("fixed_text"), "abc");
  EXPECT_EQ(attribute<Texts>("null_terminated"), (Texts{"a", "bcd"}));
  EXPECT_EQ(attribute<Texts>("null_padded"), (Texts{"a", "bcdefghi"}));
  EXPECT_EQ(attribute<Texts>("space_padded"), (Texts{"a", "b c"}));
  EXPECT_EQ(attribute<NamedArray>("number").shape, std::vector<std::uint64_t>{});
  EXPECT_EQ(elements<std::int64_t>(attribute<NamedArray>("number")), std::vector<std::int64_t>{7});
  EXPECT_EQ(elements<std::int16_t>(attribute<NamedArray>("big_endian")), (std::vector<std::int16_t>{1, 2, 3}));
  EXPECT_EQ(attribute<NamedArray>("truth").dtype, DType::boolean);
  EXPECT_EQ(attribute<NamedArray>("empty").shape, std::vector<std::uint64_t>{0});
  EXPECT_EQ(attribute<std::string>("empty_text"), "");
  EXPECT_EQ(elements<std::int64_t>(attribute<NamedArray>("one_of_many_19")), std::vector<std::int64_t>{19});
}

TEST_P(FileOfH5py, HasAllItsGroupsListed) {
  EXPECT_NE(tree_.find_group("many/group_00"), nullptr);
  EXPECT_NE(tree_.find_group("many/group_59"), nullptr);
  EXPECT_EQ(tree_.groups.size(), 66U);  // the root, little, big, stored, attributes, many and its 60
}

TEST_P(FileOfH5py, IsReadFromMemoryToo) {
  const std::vector<std::byte> bytes = testing::read_bytes(testing::path_of(file_name()));

  EXPECT_TRUE(testing::are_equal(read_hdf5_tree(bytes, "member of an archive"), tree_));
}

TEST_P(FileOfH5py, SurvivesARoundTripThroughOurWriter) {
  EXPECT_TRUE(testing::are_equal(read_hdf5_tree(compose_hdf5_tree("a.h5", tree_), "a.h5"), tree_));
}

INSTANTIATE_TEST_SUITE_P(All, FileOfH5py, ::testing::Values("earliest", "v110"),
                         [](const auto& test) { return std::string(test.param); });

class TextsOfH5py : public ::testing::TestWithParam<const char*> {};

TEST_P(TextsOfH5py, AreReadWithoutTheirPadding) {
  const std::string size = "gr\xC3\xB6\xC3\x9F\x65";
  std::string digits;
  for (int i = 0; i < 10'000; ++i) digits += static_cast<char>('0' + i % 10);

  const Hdf5Tree tree = read_fixture(std::string("texts_") + GetParam() + ".h5");

  const std::vector<std::pair<std::string, std::string>> expected = {
      {"ascii", "abc"},        {"fixed", size},       {"inner/empty", ""},
      {"inner/long", digits},  {"never_written", ""}, {"null_terminated", "bcd"},
      {"space_padded", "b c"}, {"variable", size},    {"variable_ascii", "abc"}};
  ASSERT_EQ(tree.texts.size(), expected.size());
  for (const auto& [path, text] : expected) {
    ASSERT_NE(tree.find_text(path), nullptr) << path;
    EXPECT_EQ(tree.find_text(path)->text, text) << path;
  }
  EXPECT_EQ(std::get<std::string>(find_attribute(tree.find_text("variable")->attributes, "unit")->value), "m");
  EXPECT_EQ(tree.find_text("number"), nullptr);
  EXPECT_NE(tree.find_dataset("number"), nullptr);
}

INSTANTIATE_TEST_SUITE_P(All, TextsOfH5py, ::testing::Values("earliest", "v110", "dense"),
                         [](const auto& test) { return std::string(test.param); });

// A Holdfast file: its metadata is a text of fixed length.
TEST(ReadHdf5Tree, ReadsOurOwnFiles) {
  const TemporaryFolder folder;
  testing::write_arrays(folder / "a.h5", testing::small_arrays(), R"({"step": 7})");

  const Hdf5Tree tree = read_hdf5_tree(posix_file_system(), folder / "a.h5");

  ASSERT_NE(tree.find_text("metadata"), nullptr);
  EXPECT_EQ(tree.find_text("metadata")->text, R"({"step": 7})");
  EXPECT_EQ(tree.datasets.size(), testing::small_arrays().size());
}

TEST(ReadHdf5Tree, FindsTheFileAfterAUserBlock) {
  EXPECT_EQ(elements<float>(read_fixture("user_block.h5").find_dataset("a")->array).at(9), 9.0F);
}

TEST(ReadHdf5Tree, SaysThatThereIsNoFile) {
  EXPECT_EQ(testing::thrown_by([] { read_fixture("none.h5"); }).code, ErrorCode::not_found);
}

TEST(ReadHdf5Tree, SaysThatAFileIsNotHdf5) {
  for (const std::size_t bytes : {0U, 1U, 47U, 48U, 5000U}) {
    const std::vector<std::byte> text(bytes, std::byte{'x'});

    const testing::Thrown thrown = testing::thrown_by([&] { read_hdf5_tree(text, "a.h5"); });

    EXPECT_EQ(thrown.code, ErrorCode::invalid_file) << bytes;
    EXPECT_THAT(thrown.sentence, HasSubstr("a.h5 is"));
  }
}

TEST(ReadHdf5Tree, CountsObjects) {
  TreeLimits limits;
  limits.max_objects = 50;

  const testing::Thrown thrown =
      testing::thrown_by([&] { read_hdf5_tree(posix_file_system(), testing::path_of("all_kinds_v110.h5"), limits); });

  EXPECT_EQ(thrown.code, ErrorCode::invalid_file);
  EXPECT_THAT(thrown.sentence, HasSubstr("objects"));
}

TEST(ReadHdf5Tree, KeepsToTheLimitOfBytes) {
  TreeLimits limits;
  limits.max_array_bytes = 10'000;

  const testing::Thrown thrown =
      testing::thrown_by([&] { read_hdf5_tree(posix_file_system(), testing::path_of("all_kinds_v110.h5"), limits); });

  EXPECT_EQ(thrown.code, ErrorCode::invalid_file);
  EXPECT_THAT(thrown.sentence, HasSubstr("declare"));
}

struct Hostile {
  const char* file;
  const char* sentence_part;
};
void PrintTo(const Hostile& hostile, std::ostream* out) {
  *out << hostile.file;
}

// With the structures of HDF5 1.6, of 1.8 to 1.10, and with those that only the helper inspects.
class HostileHdf5File : public ::testing::TestWithParam<std::tuple<Hostile, const char*>> {};

TEST_P(HostileHdf5File, GivesAnErrorThatNamesTheObject) {
  const auto& [hostile, structures] = GetParam();
  const std::string name = std::string(hostile.file) + "_" + structures + ".h5";

  const testing::Thrown thrown = testing::thrown_by([&] { read_fixture(name); });

  EXPECT_EQ(thrown.code, ErrorCode::invalid_file);
  EXPECT_THAT(thrown.sentence, HasSubstr(name + " is refused"));
  EXPECT_THAT(thrown.sentence, HasSubstr(hostile.sentence_part));
}

constexpr const char* kLink = "is a soft, external or user-defined link";
constexpr const char* kChunk = "a chunk of \"a\" does not decode to its ";
constexpr Hostile kHostile[] = {
    {"soft_link", kLink},
    {"external_link", kLink},
    {"virtual", "\"a\" is a virtual dataset"},
    {"external_storage", "\"a\" is stored in other files"},
    {"unknown_filter", "\"a\" is encoded by HDF5's filter 32999"},
    {"lzf_filter", "\"a\" is encoded by HDF5's filter 32000"},
    {"compressed_twice", "\"a\" is compressed twice"},
    {"declared_terabytes", "\"a\" declares 35184372088832 bytes"},
    {"contiguous_terabytes", "\"a\" declares 35184372088832 bytes"},
    {"many_declared_gigabytes", "its datasets declare"},
    {"beyond_64_bits", "\"a\" is too large for a 64-bit size"},
    {"chunks_of_one_element", "\"a\" is cut into 536870912 chunks"},
    {"deep_groups", "lies in more than 127 groups"},
    {"cycle", "is a second name of another object"},
    {"cycle_to_root", "is a second name of another object"},
    {"second_name", "is a second name of another object"},
    {"named_type", "\"a\" is a named type"},
    {"compound", "\"a\" has elements of an unsupported type (compounds)"},
    {"strings", "\"a\" is an array of strings, and only single strings are supported"},
    {"latin_string", "\"a\" is not UTF-8 text"},
    {"wide_string", "\"a\" declares 2147483648 bytes"},
    {"no_string", "\"a\" has no shape"},
    {"opaque", "\"a\" has elements of an unsupported type (opaque bytes)"},
    {"enumeration", "\"a\" has elements of an unsupported type (an enumeration)"},
    {"long_double", "\"a\" has elements of an unsupported type (floats of unusual size or precision)"},
    {"untrue", "\"a\" has boolean elements other than 0 and 1"},
    {"no_shape", "\"a\" has no shape"},
    {"dimension_scale", "attribute \"DIMENSION_LIST\" of \"a\" has an unsupported type"},
    {"reference_attribute", "attribute \"a\" of the root has an unsupported type (references)"},
    {"table_of_strings", "attribute \"a\" of the root is an array of strings with several axes"},
    {"latin_text", "attribute \"a\" of the root is not UTF-8 text"},
    {"name_with_dots", "\"a/..\" has a part that is empty, \".\" or \"..\""},
    {"fletcher32_of_other_bytes", kChunk},
    {"deflate_of_fewer_bytes", kChunk},
    {"zstd_of_fewer_bytes", kChunk},
    {"zstd_of_more_bytes", kChunk},
    {"zstd_of_terabytes", kChunk},
    {"zstd_of_garbage", kChunk},
};

INSTANTIATE_TEST_SUITE_P(All, HostileHdf5File,
                         ::testing::Combine(::testing::ValuesIn(kHostile),
                                            ::testing::Values("earliest", "v110", "dense")),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).file) + "_" + std::get<1>(test.param);
                         });

// HOLDFAST_DAMAGES sets the number of damages for each file; scripts/test --all asks for 400.
std::size_t damage_count() {
  const char* text = std::getenv("HOLDFAST_DAMAGES");
  return text == nullptr ? 100 : std::strtoul(text, nullptr, 10);
}

class DamagedHdf5File : public ::testing::TestWithParam<const char*> {};

TEST_P(DamagedHdf5File, GivesATreeOrAnErrorForEveryDamage) {
  const std::vector<std::byte> whole = testing::read_bytes(testing::path_of(GetParam()));
  std::mt19937_64 random(4);
  std::size_t refused = 0;
  for (std::size_t i = 0; i < damage_count(); ++i) {
    const std::vector<std::byte> bytes = testing::damaged(whole, random);
    try {
      read_hdf5_tree(bytes, "a.h5");
    } catch (const Error& error) {
      ASSERT_TRUE(error.code() == ErrorCode::invalid_file || error.code() == ErrorCode::out_of_memory)
          << i << ": " << error.what();
      ++refused;
    }
  }

  EXPECT_GT(refused, damage_count() / 10);
}

INSTANTIATE_TEST_SUITE_P(All, DamagedHdf5File,
                         ::testing::Values("all_kinds_earliest.h5", "all_kinds_v110.h5", "texts_v110.h5",
                                           "user_block.h5", "dimension_scale_v110.h5"),
                         [](const auto& test) {
                           const std::string name = test.param;
                           return name.substr(0, name.find('.'));
                         });

}  // namespace
}  // namespace holdfast::format
