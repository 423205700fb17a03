// Archives and .npy headers built by hand: what is read, what is refused, and that both directions keep every bit.

#include "holdfast/format/exchange/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "numpy/npy.h"
#include "numpy/npz_file.h"
#include "unit/exchange/support/npy_builder.h"
#include "unit/exchange/support/zip_builder.h"
#include "unit/format/support/array_files.h"
#include "zip/zip.h"

namespace holdfast::format {
namespace {

using testing::Array;
using testing::build;
using testing::bytes_of;
using testing::dictionary;
using ::testing::HasSubstr;
using testing::make_array;
using testing::npy;
using testing::read_bytes;
using testing::text_of;
using testing::Thrown;
using testing::thrown_by;

NamedArray parse_array(const std::string& dictionary, const std::string& data, char version = 1) {
  return parse_npy("a.npz", "layer/w", npy(dictionary, data, version));
}

Thrown refused_array(const std::string& dictionary, const std::string& data = "") {
  return thrown_by([&] { parse_array(dictionary, data); });
}

TEST(Npz, GivesBackAllTypesAndShapesBitForBit) {
  TemporaryFolder folder;
  const std::vector<Array> arrays = testing::arrays_of_all_types();

  write_npz(posix_file_system(), folder / "a.npz", R"({"step": 5})", views(arrays));
  const ArraySet set = read_npz(posix_file_system(), folder / "a.npz");

  EXPECT_EQ(set.metadata, R"({"step": 5})");
  testing::expect_equal(set.arrays, arrays);
}

TEST(Npz, HasTheSameBytesInAnyOrder) {
  TemporaryFolder folder;
  const std::vector<Array> arrays = {make_array("b", DType::f32, {2, 3}), make_array("a", DType::u8, {7})};
  const std::vector<ArrayView> forwards = views(arrays);
  const std::vector<ArrayView> backwards(forwards.rbegin(), forwards.rend());

  write_npz(posix_file_system(), folder / "a.npz", "{}", forwards);
  write_npz(posix_file_system(), folder / "b.npz", "{}", backwards);

  EXPECT_TRUE(read_bytes(folder / "a.npz") == read_bytes(folder / "b.npz"));
}

TEST(Npz, HasNoMemberForEmptyMetadata) {
  TemporaryFolder folder;

  write_npz(posix_file_system(), folder / "a.npz", "{}", {});

  EXPECT_TRUE(read_zip(posix_file_system(), folder / "a.npz").empty());
  EXPECT_EQ(read_npz(posix_file_system(), folder / "a.npz").metadata, "{}");
}

// Regression: a header of 500 MB, compressed to 500 KB, was read into memory completely.
TEST(Npz, RefusesAHeaderLongerThanNumPyWrites) {
  const Thrown thrown = thrown_by([] {
    parse_npz(build({.members = {{.name = "a.npy",
                                  .content = text_of(npy(std::string(70'000, ' '), "", 2)),
                                  .is_deflated = true}}}),
              "a.npz");
  });

  EXPECT_EQ(thrown.code, ErrorCode::invalid_file);
  EXPECT_THAT(thrown.sentence, HasSubstr("has a header of 70000 bytes"));
}

TEST(Npz, SwapsTheBytesOfElementsThatLieInTwoPieces) {
  std::string data;
  for (int i = 0; i < 700'001; ++i) data += {static_cast<char>(i >> 8), static_cast<char>(i)};
  const std::vector<std::byte> bytes =
      build({.members = {{.name = "a.npy",
                          .content = text_of(npy(dictionary(">i2", "(700001,)") + " ", data)),
                          .is_deflated = true}}});
  MemorySource source("a.npz", bytes);
  const NpzFile file(source);
  std::vector<std::byte> found;

  file.read_pieces(file.entries().at(0),
                   [&](std::span<const std::byte> piece) { found.insert(found.end(), piece.begin(), piece.end()); });

  EXPECT_TRUE(found == file.read(file.entries().at(0)).bytes);
}

TEST(Npz, ReadsDeflatedMembers) {
  const std::string file = text_of(npy(dictionary("<u2", "(3,)"), "abcdef"));

  const ArraySet set = parse_npz(
      build({.members = {{.name = "x/y.npy", .content = file, .is_deflated = true, .has_zip64 = true}}}), "a");

  ASSERT_EQ(set.arrays.size(), 1U);
  EXPECT_EQ(set.arrays[0].name, "x/y");
  EXPECT_EQ(text_of(set.arrays[0].bytes), "abcdef");
}

TEST(Npz, RefusesMembersThatAreNotArrays) {
  EXPECT_THAT(thrown_by([] { parse_npz(build({.members = {{.name = "run.py", .content = "x"}}}), "a"); }).sentence,
              HasSubstr("\"run.py\", which is not an array"));
  EXPECT_THAT(thrown_by([] {
                parse_npz(build({.members = {{.name = "holdfast.metadata.json", .content = "{"}}}), "a");
              }).sentence,
              HasSubstr("not JSON"));
}

TEST(Npz, RefusesToWriteWhatItWouldNotRead) {
  TemporaryFolder folder;
  const std::vector<std::byte> two = bytes_of("\2\2");
  for (const ArrayView& array : {ArrayView{"a/../b", DType::u8, {2}, two},
                                 {"a", DType::u8, {3}, two},
                                 {"a", DType::boolean, {2}, two},
                                 {"\xFF", DType::u8, {2}, two}}) {
    EXPECT_EQ(thrown_by([&] { write_npz(posix_file_system(), folder / "a.npz", "{}", std::span(&array, 1)); }).code,
              ErrorCode::invalid_argument);
  }
  EXPECT_EQ(thrown_by([&] { write_npz(posix_file_system(), folder / "a.npz", "x", {}); }).code,
            ErrorCode::invalid_argument);
  EXPECT_TRUE(folder.names().empty());
}

TEST(Npy, HasTheHeaderOfNumPy) {
  const std::vector<std::byte> bytes(24);

  EXPECT_EQ(text_of(compose_npy_header({"a", DType::f32, {2, 3}, bytes})),
            std::string("\x93NUMPY\1\0v\0", 10) + "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" +
                std::string(58, ' ') + "\n");
  EXPECT_THAT(text_of(compose_npy_header({"a", DType::boolean, {24}, bytes})),
              HasSubstr("{'descr': '|b1', 'fortran_order': False, 'shape': (24,), }"));
  EXPECT_THAT(text_of(compose_npy_header({"a", DType::bf16, {}, bytes})),
              HasSubstr("{'descr': '<V2', 'fortran_order': False, 'shape': (), }"));
}

TEST(Npy, KeepsEveryHeaderAMultipleOfSixtyFourBytes) {
  for (std::size_t axes = 0; axes <= 32; ++axes) {
    const ArrayView array{"a", DType::f32, std::vector<std::uint64_t>(axes, 0xFFFF'FFFF'FFFF'FFFF), {}};
    EXPECT_EQ(compose_npy_header(array).size() % 64, 0U) << axes;
  }
}

TEST(Npy, ReadsAllVersions) {
  for (const char version : {'\1', '\2', '\3'}) {
    EXPECT_EQ(text_of(parse_array(dictionary("<f4", "(1,)"), "abcd", version).bytes), "abcd");
  }
}

TEST(Npy, AcceptsTheDictionaryInEveryFormThatPythonWrites) {
  for (const char* text : {"{'shape': (2, 1), 'descr': '<u2', 'fortran_order': False}",
                           "{\"descr\":\"<u2\",\"fortran_order\":False,\"shape\":(2,1,),}",
                           " { 'descr' : '<u2' , 'fortran_order' : False , 'shape' : ( 2L , 1L ) , } \n"}) {
    const NamedArray array = parse_array(text, "abcd");

    EXPECT_EQ(array.dtype, DType::u16) << text;
    EXPECT_EQ(array.shape, (std::vector<std::uint64_t>{2, 1})) << text;
    EXPECT_EQ(text_of(array.bytes), "abcd") << text;
  }
}

TEST(Npy, ConvertsBigEndianElements) {
  EXPECT_EQ(text_of(parse_array(dictionary(">u2", "(3,)"), "abcdef").bytes), "badcfe");
  EXPECT_EQ(text_of(parse_array(dictionary(">f8", "()"), "abcdefgh").bytes), "hgfedcba");
  EXPECT_EQ(text_of(parse_array(dictionary(">i1", "(2,)"), "ab").bytes), "ab");
}

TEST(Npy, ConvertsFortranOrderToRowMajor) {
  // Element (i, j, k) of shape (2, 3, 4) is the character 'a' + 12 i + 4 j + k.
  std::string in;
  std::string out;
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) in += static_cast<char>('a' + 12 * i + 4 * j + k);
    }
  }
  for (int n = 0; n < 24; ++n) out += static_cast<char>('a' + n);

  EXPECT_EQ(text_of(parse_array(dictionary("|i1", "(2, 3, 4)", "True"), in).bytes), out);
  EXPECT_EQ(text_of(parse_array(dictionary("|i1", "(24,)", "True"), in).bytes), in);
  EXPECT_EQ(text_of(parse_array(dictionary("|i1", "(2, 0, 4)", "True"), "").bytes), "");
}

TEST(Npy, ConvertsFortranOrderOfWiderElements) {
  EXPECT_EQ(text_of(parse_array(dictionary("<u2", "(2, 2)", "True"), "AaBbCcDd").bytes), "AaCcBbDd");
  EXPECT_EQ(text_of(parse_array(dictionary(">u2", "(2, 2)", "True"), "AaBbCcDd").bytes), "aAcCbBdD");
  EXPECT_EQ(text_of(parse_array(dictionary("<f4", "(2, 2)", "True"), "AAAABBBBCCCCDDDD").bytes), "AAAACCCCBBBBDDDD");
  EXPECT_EQ(text_of(parse_array(dictionary("<f8", "(1, 2)", "True"), "AAAAAAAABBBBBBBB").bytes), "AAAAAAAABBBBBBBB");
}

TEST(Npy, ReadsVoidsOfTwoBytesAsBfloat16) {
  EXPECT_EQ(parse_array(dictionary("<V2", "(1,)"), "ab").dtype, DType::bf16);
  EXPECT_EQ(parse_array(dictionary("|V2", "(1,)"), "ab").dtype, DType::bf16);
}

TEST(Npy, RefusesOtherTypesByName) {
  for (const char* type :
       {"<c8", "<U5", "|S5", "<M8[ns]", "<V1", "|V4", "f4", "=f4", "|f4", "<f16", "<b2", "<i3", "<"}) {
    const Thrown thrown = refused_array(dictionary(type, "(1,)"), "abcdefgh");

    EXPECT_EQ(thrown.code, ErrorCode::unsupported) << type;
    EXPECT_THAT(thrown.sentence, HasSubstr("\"layer/w\" of NumPy's type \"" + std::string(type))) << type;
  }
  EXPECT_THAT(refused_array(dictionary("|O", "(1,)"), "cos\nsystem\n").sentence, HasSubstr("Python objects"));
  EXPECT_THAT(refused_array("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }", "abcd").sentence,
              HasSubstr("structured"));
}

TEST(Npy, RefusesHeadersThatNumPyDoesNotWrite) {
  for (const char* text : {
           "",
           "{",
           "{}",
           "()",
           "{'descr': '<f4'}",
           "{'descr': '<f4', 'fortran_order': False}",
           "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': [1]}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (01,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1e0,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
           "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}",
           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
           "{'descr': '<f\\x34', 'fortran_order': False, 'shape': (1,)}",
           "{'descr: '<f4', 'fortran_order': False, 'shape': (1,)}",
           "{'descr': __import__('os'), 'fortran_order': exit(), 'shape': (1,)}",
       }) {
    const Thrown thrown = refused_array(text, "abcd");

    // A value that is not a string is taken for the list of a structured type.
    EXPECT_TRUE(thrown.code == ErrorCode::invalid_file || thrown.code == ErrorCode::unsupported) << text;
    EXPECT_THAT(thrown.sentence, HasSubstr("\"layer/w\"")) << text;
  }
}

TEST(Npy, RefusesASizeThatDoesNotFitTheShape) {
  EXPECT_THAT(refused_array(dictionary("<f4", "(2,)"), "abcd").sentence,
              HasSubstr("has 4 bytes of elements, but its shape needs 8"));
  EXPECT_THAT(refused_array(dictionary("<f4", "()"), "abcde").sentence,
              HasSubstr("has 5 bytes of elements, but its shape needs 4"));
  EXPECT_THAT(refused_array(dictionary("<f4", "(4294967296, 4294967296)"), "").sentence,
              HasSubstr("has 0 bytes of elements, but its shape needs more than 64 bits can count"));
  EXPECT_EQ(refused_array(dictionary("|b1", "(1,)"), "\2").code, ErrorCode::invalid_file);
}

TEST(Npy, RefusesMoreAxesThanArraysHave) {
  std::string shape = "(";
  for (int i = 0; i < 33; ++i) shape += "1, ";

  EXPECT_EQ(refused_array(dictionary("|u1", shape + ")"), "x").code, ErrorCode::unsupported);
}

TEST(Npy, RefusesEveryFileThatIsCutOffAndOtherVersions) {
  const std::vector<std::byte> bytes = npy(dictionary("<f4", "(1,)"), "abcd");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(thrown_by([&] { parse_npy("a", "b", cut); }).code, ErrorCode::invalid_file) << size;
  }
  EXPECT_THAT(thrown_by([] { parse_array("{}", "", '\4'); }).sentence, HasSubstr("version 4.0"));
}

}  // namespace
}  // namespace holdfast::format
