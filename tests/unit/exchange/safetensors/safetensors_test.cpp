// Headers and files built by hand: what is read, what is refused, and that both directions keep every bit.

#include "holdfast/format/exchange/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/exchange/support/zip_builder.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format {
namespace {

using testing::Array;
using testing::arrays_of_all_types;
using testing::bytes_of;
using ::testing::HasSubstr;
using testing::make_array;
using testing::read_bytes;
using testing::text_of;
using testing::Thrown;
using testing::thrown_by;

// A file with one unpadded header, and the bytes after it.
std::vector<std::byte> file_of(const std::string& header, const std::string& data = "") {
  std::string length;
  for (unsigned i = 0; i < 8; ++i) length += static_cast<char>(header.size() >> (8 * i));
  return bytes_of(length + header + data);
}

ArraySet parse_file(const std::string& header, const std::string& data = "") {
  const std::vector<std::byte> bytes = file_of(header, data);
  return parse_safetensors(bytes, "a.safetensors");
}

Thrown refused_file(const std::string& header, const std::string& data = "") {
  return thrown_by([&] { parse_file(header, data); });
}

void expect_round_trip_of_metadata(const std::string& metadata, const std::string& header) {
  TemporaryFolder folder;

  write_safetensors(posix_file_system(), folder / "a", metadata, {});

  EXPECT_EQ(read_safetensors(posix_file_system(), folder / "a").metadata, metadata);
  EXPECT_THAT(text_of(read_bytes(folder / "a")), HasSubstr(header));
}

TEST(Safetensors, GivesBackAllTypesAndShapesBitForBit) {
  TemporaryFolder folder;
  const std::vector<Array> arrays = arrays_of_all_types();

  write_safetensors(posix_file_system(), folder / "a", "{}", views(arrays));
  const ArraySet set = read_safetensors(posix_file_system(), folder / "a");

  testing::expect_equal(set.arrays, arrays);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

TEST(Safetensors, HasTheBytesOfTheLibraryInAnyOrder) {
  TemporaryFolder folder;
  const std::vector<std::byte> small = bytes_of("\1\2");
  const std::vector<std::byte> large = bytes_of("abcdefgh");
  const std::vector<ArrayView> arrays = {
      {"b", DType::i8, {2, 1}, small}, {"\xC3\xA9\"\\\n", DType::f32, {2}, large}, {"s", DType::u64, {}, large}};
  const std::vector<ArrayView> reversed(arrays.rbegin(), arrays.rend());

  write_safetensors(posix_file_system(), folder / "a", R"({"format":"pt"})", arrays);
  write_safetensors(posix_file_system(), folder / "b", R"({"format":"pt"})", reversed);

  const std::string header =
      R"({"__metadata__":{"format":"pt"},"s":{"dtype":"U64","shape":[],"data_offsets":[0,8]},)"
      "\"\xC3\xA9\\\"\\\\\\n\":"
      R"({"dtype":"F32","shape":[2],"data_offsets":[8,16]},"b":{"dtype":"I8","shape":[2,1],"data_offsets":[16,18]}})";
  const std::string padding((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(text_of(read_bytes(folder / "a")), text_of(file_of(header + padding, "abcdefghabcdefgh\1\2")));
  EXPECT_TRUE(read_bytes(folder / "b") == read_bytes(folder / "a"));
}

TEST(Safetensors, GivesBackMetadataByteForByte) {
  expect_round_trip_of_metadata("{}", "{}");
  expect_round_trip_of_metadata(R"({"a":"b","c":"d"})", R"("__metadata__":{"a":"b","c":"d"})");
  expect_round_trip_of_metadata(R"({"c":"d","a":"b"})", "holdfast.metadata");
  expect_round_trip_of_metadata(R"({ "a": "b" })", "holdfast.metadata");
  expect_round_trip_of_metadata(R"({"step":5,"graph":{"layers":[]}})", "holdfast.metadata");
  expect_round_trip_of_metadata(R"({"holdfast.metadata":"x"})", "holdfast.metadata");
  expect_round_trip_of_metadata(R"([1, 2])", "holdfast.metadata");
  expect_round_trip_of_metadata("\"\xC3\xA9\"", "holdfast.metadata");
}

TEST(Safetensors, GivesForeignMetadataAsAnObject) {
  EXPECT_EQ(parse_file(R"({"__metadata__":{"z":"1","format":"pt"}})").metadata, R"({"format":"pt","z":"1"})");
  EXPECT_EQ(parse_file(R"({"__metadata__":{}})").metadata, "{}");
  EXPECT_EQ(parse_file("{}").metadata, "{}");
}

TEST(Safetensors, AcceptsPaddingAndArraysInAnyOrder) {
  const ArraySet set = parse_file(R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},)"
                                  R"("e":{"data_offsets":[1,1],"shape":[0],"dtype":"F64"},)"
                                  R"("a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}   )",
                                  "xyz");

  ASSERT_EQ(set.arrays.size(), 3U);
  EXPECT_EQ(text_of(set.arrays[0].bytes), "x");
  EXPECT_EQ(text_of(set.arrays[1].bytes), "yz");
  EXPECT_EQ(set.arrays[2].shape, std::vector<std::uint64_t>{0});
}

TEST(Safetensors, NamesTheTypesThatHoldfastLacks) {
  for (const char* type : {"F8_E4M3", "F8_E5M2", "C64", "F4", "f32", ""}) {
    const Thrown thrown =
        refused_file(R"({"layer/w":{"dtype":")" + std::string(type) + R"(","shape":[1],"data_offsets":[0,1]}})", "x");

    EXPECT_EQ(thrown.code, ErrorCode::unsupported);
    EXPECT_THAT(thrown.sentence, HasSubstr("\"layer/w\" of type \"" + std::string(type) + "\""));
  }
}

TEST(Safetensors, RefusesMoreAxesThanArraysHave) {
  std::string ones = "1";
  for (int i = 0; i < 31; ++i) ones += ",1";
  const auto header = [&](const std::string& shape) {
    return R"({"a":{"dtype":"U8","shape":[)" + shape + R"(],"data_offsets":[0,1]}})";
  };

  EXPECT_EQ(parse_file(header(ones), "x").arrays[0].shape.size(), 32U);
  EXPECT_EQ(refused_file(header(ones + ",1"), "x").code, ErrorCode::unsupported);
}

struct BadHeader {
  std::string header;
  std::string data;
  std::string sentence;
};

TEST(Safetensors, RefusesHeadersThatBreakTheFormat) {
  const std::string good = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  ASSERT_EQ(parse_file(good, "xy").arrays.size(), 1U);
  const auto one = [](const std::string& content) { return R"({"a":{)" + content + "}}"; };
  const BadHeader bad[] = {
      {"", "", "not a brace"},
      {" {}", "", "not a brace"},
      {"[]", "", "not a brace"},
      {"{", "", "not JSON"},
      {"{} x", "", "not JSON"},
      {"{}{}", "", "not JSON"},
      {R"({"a":NaN})", "", "not JSON"},
      {std::string("{}\0", 3), "", "UTF-8"},
      {"{\"\xFF\":1}", "", "UTF-8"},
      {R"({"a":1})", "", "value of \"a\""},
      {R"({"a":null})", "", "value of \"a\""},
      {R"({"a":[]})", "", "value of \"a\""},
      {R"({"a":{}})", "", "lacks its dtype"},
      {R"({"__metadata__":null})", "", "value of \"__metadata__\""},
      {R"({"__metadata__":[]})", "", "value of \"__metadata__\""},
      {R"({"__metadata__":{"k":1}})", "", "value of \"k\""},
      {R"({"__metadata__":{"k":{}}})", "", "value of \"k\""},
      {R"({"__metadata__":{"k":"1","k":"2"}})", "", "two metadata entries \"k\""},
      {R"({"__metadata__":{},"__metadata__":{}})", "", "two \"__metadata__\""},
      {R"({"__metadata__":{"holdfast.metadata":"{"}})", "", "not JSON"},
      {one(R"("shape":[2],"data_offsets":[0,2])"), "xy", "lacks its dtype"},
      {one(R"("dtype":"U8","data_offsets":[0,2])"), "xy", "lacks its dtype"},
      {one(R"("dtype":"U8","shape":[2])"), "xy", "lacks its dtype"},
      {one(R"("dtype":"U8","shape":[2],"data_offsets":[0,2],"x":1)"), "xy", "unknown or second \"x\""},
      {one(R"("dtype":"U8","dtype":"U8","shape":[2],"data_offsets":[0,2])"), "xy", "unknown or second \"dtype\""},
      {one(R"("dtype":5,"shape":[2],"data_offsets":[0,2])"), "xy", "value of \"dtype\""},
      {one(R"("dtype":["U8"],"shape":[2],"data_offsets":[0,2])"), "xy", "value of \"dtype\""},
      {one(R"("dtype":"U8","shape":2,"data_offsets":[0,2])"), "xy", "value of \"shape\""},
      {one(R"("dtype":"U8","shape":"2","data_offsets":[0,2])"), "xy", "value of \"shape\""},
      {one(R"("dtype":"U8","shape":[-2],"data_offsets":[0,2])"), "xy", "value of \"shape\""},
      {one(R"("dtype":"U8","shape":[2.0],"data_offsets":[0,2])"), "xy", "value of \"shape\""},
      {one(R"("dtype":"U8","shape":[[2]],"data_offsets":[0,2])"), "xy", "value of \"shape\""},
      {one(R"("dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,2])"), "xy", "value of \"shape\""},
      {one(R"("dtype":"U8","shape":[2],"data_offsets":[0])"), "xy", "value of \"data_offsets\""},
      {one(R"("dtype":"U8","shape":[2],"data_offsets":[0,2,2])"), "xy", "value of \"data_offsets\""},
      {one(R"("dtype":"U8","shape":[2],"data_offsets":{"0":1})"), "xy", "value of \"data_offsets\""},
      {one(R"("dtype":"U8","shape":[2],"data_offsets":[0,3])"), "xy", "lies at bytes 0 to 3"},
      {one(R"("dtype":"U8","shape":[2],"data_offsets":[2,0])"), "xy", "lies at bytes 2 to 0"},
      {one(R"("dtype":"U8","shape":[1],"data_offsets":[1,2])"), "xy", "lies at bytes 1 to 2"},
      {one(R"("dtype":"U8","shape":[1],"data_offsets":[0,1])"), "xy", "end at byte 1 of the 2"},
      {one(R"("dtype":"U8","shape":[3],"data_offsets":[0,2])"), "xy", "has 2 bytes, but its shape needs 3"},
      {one(R"("dtype":"U16","shape":[2],"data_offsets":[0,2])"), "xy", "has 2 bytes, but its shape needs 4"},
      {one(R"("dtype":"U8","shape":[4294967296,4294967296,2],"data_offsets":[0,0])"), "",
       "but its shape needs more than 64 bits can count"},
      {"{}", "x", "end at byte 0 of the 1"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       "xy", "\"a\" occurs twice"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
       "xy", "\"b\" lies at bytes 0 to 2, but must begin at 2"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
       "xyz", "\"b\" lies at bytes 2 to 3, but must begin at 1"},
      {one(R"("dtype":"BOOL","shape":[2],"data_offsets":[0,2])"), "\1\2", "bytes other than 0 and 1"},
  };
  for (const BadHeader& entry : bad) {
    const Thrown thrown = refused_file(entry.header, entry.data);

    EXPECT_EQ(thrown.code, ErrorCode::invalid_file) << entry.header;
    EXPECT_THAT(thrown.sentence, HasSubstr(entry.sentence)) << entry.header;
    EXPECT_THAT(thrown.sentence, HasSubstr("a.safetensors")) << entry.header;
  }
}

TEST(Safetensors, RefusesDeepNestingWithoutFollowingIt) {
  EXPECT_EQ(refused_file(R"({"a":)" + std::string(1'000'000, '[')).code, ErrorCode::invalid_file);
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += R"({"a":)";
  EXPECT_EQ(refused_file(objects).code, ErrorCode::invalid_file);
}

TEST(Safetensors, RefusesALengthThatTheFileDoesNotHave) {
  for (const std::string& file : {std::string(), std::string("1234567"), std::string("\3\0\0\0\0\0\0\0{}", 10),
                                  std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}", 10)}) {
    const std::vector<std::byte> bytes = bytes_of(file);
    EXPECT_EQ(thrown_by([&] { parse_safetensors(bytes, "a"); }).code, ErrorCode::invalid_file);
  }
}

TEST(Safetensors, RefusesAHeaderOfMoreThanTheFormatAllows) {
  std::string header(100'000'001, ' ');
  header.front() = '{';
  header[1] = '}';

  EXPECT_THAT(refused_file(header).sentence, HasSubstr("at most 100000000 are possible"));
}

TEST(Safetensors, RefusesEveryFileThatIsCutOff) {
  TemporaryFolder folder;
  const std::vector<Array> arrays = {make_array("a", DType::f32, {3}), make_array("b", DType::u8, {5})};
  write_safetensors(posix_file_system(), folder / "a", R"({"k":"v"})", views(arrays));
  const std::vector<std::byte> bytes = read_bytes(folder / "a");

  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(thrown_by([&] { parse_safetensors(std::span(bytes).first(size), "a"); }).code, ErrorCode::invalid_file)
        << size;
  }
}

TEST(Safetensors, ShowsNeitherControlCharactersNorEndlessNames) {
  const Thrown thrown = refused_file(R"({"\u001b[2J)" + std::string(100'000, 'x') + R"(":1})");

  EXPECT_EQ(thrown.sentence.find('\x1b'), std::string::npos);
  EXPECT_LT(thrown.sentence.size(), 500U);
}

TEST(Safetensors, RefusesToWriteWhatItWouldNotRead) {
  TemporaryFolder folder;
  const auto refused_to_write = [&](const std::vector<ArrayView>& arrays, const std::string& metadata = "{}") {
    const Thrown thrown = thrown_by([&] { write_safetensors(posix_file_system(), folder / "a", metadata, arrays); });
    EXPECT_EQ(thrown.code, ErrorCode::invalid_argument);
    return thrown.sentence;
  };
  const std::vector<std::byte> two = bytes_of("\2\2");

  EXPECT_THAT(refused_to_write({{"a", DType::u8, {2}, two}, {"a", DType::u8, {2}, two}}), HasSubstr("occurs twice"));
  EXPECT_THAT(refused_to_write({{"a", DType::u8, {3}, two}}), HasSubstr("its shape needs 3"));
  EXPECT_THAT(refused_to_write({{"\xFF", DType::u8, {2}, two}}), HasSubstr("not UTF-8"));
  EXPECT_THAT(refused_to_write({{"a", DType::boolean, {2}, two}}), HasSubstr("boolean"));
  EXPECT_THAT(refused_to_write({{"__metadata__", DType::u8, {2}, two}}), HasSubstr("cannot be named"));
  EXPECT_THAT(refused_to_write({}, "{"), HasSubstr("not JSON"));
  EXPECT_THAT(refused_to_write({}, "\"\xFF\""), HasSubstr("not JSON"));
  EXPECT_THAT(refused_to_write({}, '"' + std::string(100'000'000, 'x') + '"'), HasSubstr("100000000"));
  EXPECT_TRUE(folder.names().empty());
}

TEST(Safetensors, WritesAWholeFileOrNone) {
  TemporaryFolder folder;
  write_safetensors(posix_file_system(), folder / "a", R"({"old":"file"})", {});
  const auto files = watched_file_system(posix_file_system(), [](const FileOperation& operation) {
    if (operation.name == "rename") throw Error(ErrorCode::input_output, "the disk is gone");
  });

  EXPECT_EQ(thrown_by([&] { write_safetensors(*files, folder / "a", "{}", {}); }).code, ErrorCode::input_output);

  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
  EXPECT_EQ(read_safetensors(posix_file_system(), folder / "a").metadata, R"({"old":"file"})");
}

}  // namespace
}  // namespace holdfast::format
