// Arrays of files become tensors bit for bit, and what cannot become one is refused by name.

#include "holdfast/data/array_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "data/stages/stage.h"
#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/format/array_file.h"
#include "holdfast/format/exchange/npz.h"
#include "holdfast/format/exchange/safetensors.h"
#include "support/folders.h"
#include "unit/data/support/array_writer.h"
#include "unit/data/support/loaded.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ArrayFiles : public testing::Test {
 protected:
  template <typename Action>
  static void expect_refused(ErrorCode code, const std::vector<std::string>& words, const Action& action) {
    try {
      action();
      ADD_FAILURE() << "nothing was wrong; expected: " << words[0];
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      for (const std::string& word : words) EXPECT_THAT(error.what(), HasSubstr(word));
    }
  }

  std::string path(const std::string& name) const { return folder_ / name; }
  std::string npy(const std::string& type, const std::string& shape, const std::string& data,
                  const std::string& fortran = "False") const {
    write_npy(path("x.npy"), type, shape, data, fortran);
    return path("x.npy");
  }

 private:
  TemporaryFolder folder_;
};

// A file that h5py wrote, with every kind of content that is read, and one with some that is not.
std::string hdf5_file(const std::string& name) {
  return source_folder() + "/tests/unit/exchange/foreign_hdf5/files/" + name;
}

TEST_F(ArrayFiles, NpyKeepsTypeShapeAndBits) {
  const Tensor x = read_npy(npy("<u2", "(2, 3)", text_of_elements<std::uint16_t>({1, 2, 3, 4, 5, 65535})));

  EXPECT_EQ(x.dtype(), DType::u16);
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  EXPECT_THAT(x.elements<std::uint16_t>(), ElementsAre(1, 2, 3, 4, 5, 65535));
}

TEST_F(ArrayFiles, NpyOfColumnsAndOfTheOtherByteOrderComesRowMajor) {
  const std::string big_endian{'\0', '\1', '\0', '\4', '\0', '\2', '\0', '\5', '\0', '\3', '\0', '\6'};

  const Tensor x = read_npy(npy(">u2", "(2, 3)", big_endian, "True"));

  EXPECT_THAT(x.elements<std::uint16_t>(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(ArrayFiles, PickledObjectsAreRefused) {
  expect_refused(ErrorCode::unsupported, {"x.npy", "Python objects"}, [&] { read_npy(npy("|O", "(1,)", "pickle")); });
}

TEST_F(ArrayFiles, DoublesAreConvertedOnlyOnRequest) {
  const std::string file = npy("<f8", "(2,)", text_of_elements<double>({0.1, -3}));

  expect_refused(ErrorCode::unsupported, {"x.npy", "f64", ".dtype = DType::f32"}, [&] { read_npy(file); });
  EXPECT_THAT(read_npy(file, {.dtype = DType::f32}).values(), ElementsAre(0.1F, -3));
}

TEST_F(ArrayFiles, AConversionNeverLosesAValueWithoutAWord) {
  const auto of = [&](const std::string& type, const std::string& data, DType to) {
    return read_npy(npy(type, "(1,)", data), {.dtype = to});
  };

  EXPECT_THAT(of("<f8", text_of_elements<double>({7}), DType::u8).elements<std::uint8_t>(), ElementsAre(7));
  EXPECT_THAT(of("<u8", text_of_elements<std::uint64_t>({9}), DType::i32).elements<std::int32_t>(), ElementsAre(9));
  EXPECT_THAT(of("<i8", text_of_elements<std::int64_t>({1}), DType::boolean).elements<bool>(), ElementsAre(true));
  for (const auto& [type, data, to] : std::vector<std::tuple<std::string, std::string, DType>>{
           {"<f8", text_of_elements<double>({7.5}), DType::i32},
           {"<f8", text_of_elements<double>({256}), DType::u8},
           {"<f8", text_of_elements<double>({-1}), DType::u16},
           {"<f8", text_of_elements<double>({1e300}), DType::f32},
           {"<f4", text_of_elements<float>({3.4e38F}), DType::bf16},
           {"<i8", text_of_elements<std::int64_t>({1LL << 40}), DType::i32},
           {"<i8", text_of_elements<std::int64_t>({2}), DType::boolean},
           {"<u8", text_of_elements<std::uint64_t>({1ULL << 63}), DType::i64}}) {
    expect_refused(ErrorCode::invalid_file, {"element 0 of", "cannot hold"},
                   [&, type = type, data = data, to = to] { of(type, data, to); });
  }
}

TEST_F(ArrayFiles, Bf16IsRoundedToTheNearestWithTiesToEven) {
  // 1 + 2^-8 lies between 1 and 1 + 2^-7, and 1 + 3 * 2^-8 between two numbers of which the upper one is even.
  const Tensor x = read_npy(npy("<f4", "(3,)", text_of_elements<float>({1.00390625F, 1.01171875F, 1.0045F})),
                            {.dtype = DType::bf16});

  std::array<std::uint16_t, 3> bits{};
  std::memcpy(bits.data(), x.bytes().data(), sizeof bits);
  EXPECT_THAT(bits, ElementsAre(0x3F80, 0x3F82, 0x3F81));
}

// Rounded to f32 first, each of them would lie halfway between two numbers.
TEST_F(ArrayFiles, DoublesAndLongIntegersAreRoundedToBf16Once) {
  const auto bits_of = [&](const std::string& type, const std::string& data) {
    const Tensor x = read_npy(npy(type, "(2,)", data), {.dtype = DType::bf16});
    std::array<std::uint16_t, 2> bits{};
    std::memcpy(bits.data(), x.bytes().data(), sizeof bits);
    return bits;
  };
  const double above = 1 + 0x1p-8 + 0x1p-40;
  const double below = 1 + 0x3p-8 - 0x1p-40;
  EXPECT_THAT(bits_of("<f8", text_of_elements<double>({above, below})), ElementsAre(0x3F81, 0x3F81));
  EXPECT_THAT(bits_of("<f8", text_of_elements<double>({-above, -below})), ElementsAre(0xBF81, 0xBF81));
  constexpr std::int64_t kPower = std::int64_t{1} << 62;
  EXPECT_THAT(bits_of("<i8", text_of_elements<std::int64_t>({kPower + (kPower >> 8) + 1, -kPower - (kPower >> 8) - 1})),
              ElementsAre(0x5E81, 0xDE81));
  EXPECT_THAT(bits_of("<u8", text_of_elements<std::uint64_t>({~std::uint64_t{0}, 3})), ElementsAre(0x5F80, 0x4040));
  EXPECT_THAT(bits_of("<f8", text_of_elements<double>({1e-60, -std::numeric_limits<double>::infinity()})),
              ElementsAre(0x0000, 0xFF80));
}

TEST_F(ArrayFiles, NpzGivesTheArraysThatAreAskedForWhateverElseItHolds) {
  write_archive(path("a.npz"), {{"x.npy", npy_bytes("<f4", "(2,)", text_of_elements<float>({1, 2}))},
                                {"people.npy", npy_bytes("|O", "(1,)", "pickle")},
                                {"y.npy", npy_bytes("<i4", "()", text_of_elements<std::int32_t>({5}))},
                                {"README", "text"}});

  const std::vector<NamedTensor> both = read_npz(path("a.npz"), {"y", "x"});

  EXPECT_EQ(both[0].name, "y");
  EXPECT_THAT(both[0].tensor.elements<std::int32_t>(), ElementsAre(5));
  EXPECT_THAT(both[1].tensor.values(), ElementsAre(1, 2));
  EXPECT_THAT(read_npz(path("a.npz"), "x").values(), ElementsAre(1, 2));
  expect_refused(ErrorCode::unsupported, {"people", "Python objects"}, [&] { read_npz(path("a.npz"), "people"); });
  expect_refused(ErrorCode::not_found, {"a.npz", "\"z\"", "\"people\", \"x\", \"y\""},
                 [&] { read_npz(path("a.npz"), "z"); });
}

TEST_F(ArrayFiles, ALimitIsCheckedBeforeMemoryIsTaken) {
  const std::string file = npy("<f4", "(4,)", text_of_elements<float>({1, 2, 3, 4}));

  expect_refused(ErrorCode::out_of_memory, {"16 bytes", "15 are allowed"}, [&] { read_npy(file, {.max_bytes = 15}); });
  EXPECT_NO_THROW(read_npy(file, {.max_bytes = 16}));
}

TEST_F(ArrayFiles, SafetensorsGivesTheArraysThatAreAskedForWhateverElseItHolds) {
  write_safetensors_text(path("a.safetensors"),
                         R"({"w":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]},)"
                         R"("x":{"dtype":"I64","shape":[1],"data_offsets":[2,10]}})",
                         "ab" + text_of_elements<std::int64_t>({-7}));

  EXPECT_THAT(read_safetensors(path("a.safetensors"), "x").elements<std::int64_t>(), ElementsAre(-7));
  expect_refused(ErrorCode::unsupported, {"\"w\"", "F8_E4M3"}, [&] { read_safetensors(path("a.safetensors"), "w"); });
  expect_refused(ErrorCode::not_found, {"\"y\"", "\"w\", \"x\""},
                 [&] { read_safetensors(path("a.safetensors"), "y"); });
}

TEST_F(ArrayFiles, AFileOfAnotherKindIsNamedAsWhatItIs) {
  const std::string file = npy("<f4", "(1,)", text_of_elements<float>({1}));

  expect_refused(ErrorCode::invalid_file, {"x.npy", ".npz", ".npy"}, [&] { read_npz(file, "x"); });
  expect_refused(ErrorCode::not_found, {"absent.npy"}, [&] { read_npy(path("absent.npy")); });
}

TEST_F(ArrayFiles, Hdf5GivesTheArraysThatAreAskedForWhateverElseItHolds) {
  const std::string file = hdf5_file("mixed_content.h5");

  const std::vector<NamedTensor> arrays = read_hdf5(file, {"train/x", "/y"});

  EXPECT_EQ(arrays[0].tensor.shape(), (Shape{3, 2}));
  EXPECT_THAT(arrays[0].tensor.values(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(arrays[1].tensor.elements<std::int32_t>(), ElementsAre(7, 8, 9));
  expect_refused(ErrorCode::unsupported, {"\"records\"", "compounds"}, [&] { read_hdf5(file, "records"); });
  expect_refused(ErrorCode::unsupported, {"\"elsewhere\"", "link"}, [&] { read_hdf5(file, "elsewhere"); });
  expect_refused(ErrorCode::invalid_argument, {"\"train\"", "a group"}, [&] { read_hdf5(file, "train"); });
  expect_refused(ErrorCode::not_found, {"\"z\"", "\"train/x\""}, [&] { read_hdf5(file, "z"); });
}

TEST_F(ArrayFiles, Hdf5AfterTheUserBlockOfMatlabIsRead) {
  EXPECT_THAT(read_hdf5(hdf5_file("matlab_user_block.mat"), "x", {.dtype = DType::f32}).values(),
              ElementsAre(1.5F, 2.5F));
}

// As docs/data.md shows it.
TEST_F(ArrayFiles, GoIntoDataSets) {
  const WorkInTemporaryFolder folder;
  write_archive("digits.npz", {{"x.npy", npy_bytes("<f4", "(2,)", text_of_elements<float>({1, 2}))},
                               {"y.npy", npy_bytes("<f4", "(2,)", text_of_elements<float>({3, 4}))}});
  const std::vector<std::byte> bytes(8);
  const std::vector<format::ArrayView> views = {
      {"left", DType::f32, {2}, bytes}, {"right", DType::f32, {2}, bytes}, {"same", DType::f32, {2}, bytes}};
  format::write_array_file(posix_file_system(), "pairs.h5", "{}", views);
  write_npy("means.npy", "<f8", "(1,)", text_of_elements<double>({0.5}));
  write_npy("images.npy", "<u1", "(2, 3)", "abcdef");
  write_npy("labels.npy", "<i8", "(2,)", text_of_elements<std::int64_t>({5, 6}));

  const Dataset digits = from_tensors(read_npz("digits.npz", "x"), read_npz("digits.npz", "y"));
  const Dataset pairs = from_tensors(read_hdf5("pairs.h5", {"left", "right"}), read_hdf5("pairs.h5", {"same"}));
  const Tensor means = read_npy("means.npy", {.dtype = DType::f32});  // the file holds f64

  EXPECT_EQ(loaded(digits, 0, 0, 1), (std::vector<float>{2, 4}));
  EXPECT_EQ(pairs.inputs()[1].name, "right");
  EXPECT_THAT(means.values(), ElementsAre(0.5F));

  const Dataset images = from_files({{.path = "images.npy"}}, {{.path = "labels.npy", .dtype = DType::f32}});

  EXPECT_EQ(loaded(images, 0, 0, 1).back(), 6);
}

TEST_F(ArrayFiles, ADataSetOfFilesIsThatOfTheSameTensors) {
  write_archive(path("a.npz"), {{"x.npy", npy_bytes("<u1", "(3, 2)", "abcdef")},
                                {"y.npy", npy_bytes(">i4", "(3,)", std::string{"\0\0\0\1\0\0\0\2\0\0\0\3", 12})}});
  const Dataset on_disk =
      from_files({{.path = path("a.npz"), .array = "x"}}, {{.path = path("a.npz"), .array = "y", .dtype = DType::f32}});
  const Dataset in_memory =
      from_tensors(read_npz(path("a.npz"), {"x"}), read_npz(path("a.npz"), {"y"}, {.dtype = DType::f32}));

  EXPECT_EQ(on_disk.description(), in_memory.description());
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(loaded(on_disk, 0, 0, i), loaded(in_memory, 0, 0, i));
  EXPECT_EQ(on_disk.targets()[0].name, "y");
}

TEST_F(ArrayFiles, ADataSetOfFilesNeedsRowsThatLieInTheFile) {
  const std::string columns = npy("<f4", "(2, 2)", text_of_elements<float>({1, 2, 3, 4}), "True");

  expect_refused(ErrorCode::unsupported, {"x.npy", "column-major"}, [&] { from_files({{.path = columns}}, {}); });
  expect_refused(ErrorCode::unsupported, {"train/x", "HDF5"},
                 [&] { from_files({{.path = hdf5_file("mixed_content.h5"), .array = "train/x"}}, {}); });
}

// A terminal obeys a control character, and a name may come from anywhere.
TEST_F(ArrayFiles, ShowTheirNamesEscaped) {
  const std::string file = path("up\x7f.npy");
  write_npy(file, "<f4", "(2,)", text_of_elements<float>({1, 0.5F}));

  expect_refused(ErrorCode::invalid_argument, {R"(/up\x7f.npy" needs the name)"},
                 [&] { read_npz(file, std::vector<std::string>{}); });
  expect_refused(ErrorCode::invalid_file, {R"(element 1 of ")", R"(/up\x7f.npy")"},
                 [&] { read_npy(file, {.dtype = DType::i32}); });
  EXPECT_THAT(from_files({{.path = file}}, {}).last_stage()->place(1), HasSubstr(R"(/up\x7f.npy")"));
}

TEST_F(ArrayFiles, ADataSetOfFilesNeedsAsManyRowsOfEachArray) {
  write_npy(path("x.npy"), "<f4", "(2,)", text_of_elements<float>({1, 2}));
  write_npy(path("y.npy"), "<f4", "(3,)", text_of_elements<float>({1, 2, 3}));

  expect_refused(ErrorCode::invalid_argument, {"y.npy", "[3]", "2 of them"},
                 [&] { from_files({{.path = path("x.npy")}}, {{.path = path("y.npy")}}); });
}

TEST_F(ArrayFiles, AFileThatBecomesShorterEndsLoadingWithAnError) {
  write_npy(path("x.npy"), "<f4", "(2,)", text_of_elements<float>({1, 2}));
  const Dataset data = from_files({{.path = path("x.npy")}}, {{.path = path("x.npy"), .name = "y"}});
  Bytes bytes = read_plain(path("x.npy"));
  bytes.pop_back();
  write_plain(path("x.npy"), bytes);

  EXPECT_NO_THROW(loaded(data, 0, 0, 0));
  expect_refused(ErrorCode::invalid_file, {"x.npy", "row 1"}, [&] { loaded(data, 0, 0, 1); });
}

}  // namespace
}  // namespace holdfast
