// What is written is read back, bit for bit and with the same digests, for every shape, type, name and option that the
// format allows; what it does not allow is refused with a sentence.

#include "holdfast/format/array_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "unit/format/support/array_files.h"
#include "unit/format/support/views.h"

namespace holdfast::format {
namespace {

using testing::Array;
using testing::expect_views_equal;
using ::testing::HasSubstr;
using testing::kAllTypes;
using testing::make_array;
using testing::read_bytes;
using testing::small_arrays;
using testing::thrown_by;
using testing::write_arrays;
using testing::write_bytes;

class ArrayFileTest : public ::testing::Test {
 protected:
  ArrayFile open() const { return ArrayFile::open(posix_file_system(), path_); }

  // Writes a file, opens it, and compares everything.
  void expect_round_trip(const std::vector<Array>& arrays) const {
    write_arrays(path_, arrays);
    const ArrayFile file = open();
    ASSERT_EQ(file.arrays().size(), arrays.size());
    for (const Array& array : arrays) {
      const ArrayInfo* info = file.find(array.name);
      ASSERT_NE(info, nullptr) << array.name;
      EXPECT_EQ(info->dtype, array.dtype) << array.name;
      EXPECT_EQ(info->shape, array.shape) << array.name;
      EXPECT_EQ(info->digest, digest(array.bytes)) << array.name;
      EXPECT_EQ(size_bytes(*info), array.bytes.size()) << array.name;
      EXPECT_TRUE(file.read(array.name) == array.bytes) << array.name << ", " << array.bytes.size() << " bytes";
    }
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "a.h5";
};

TEST_F(ArrayFileTest, ReadsBackEveryElementType) {
  std::vector<Array> arrays;
  for (const DType dtype : kAllTypes) {
    arrays.push_back(make_array("compact/" + std::string(name(dtype)), dtype, {3, 5}));
    arrays.push_back(make_array("chunked/" + std::string(name(dtype)), dtype, {67, 83}));
  }

  expect_round_trip(arrays);
}

TEST_F(ArrayFileTest, ReadsBackScalars) {
  std::vector<Array> arrays;
  for (const DType dtype : kAllTypes) arrays.push_back(make_array(std::string(name(dtype)), dtype, {}));

  expect_round_trip(arrays);
}

TEST_F(ArrayFileTest, ReadsBackEmptyArrays) {
  expect_round_trip({make_array("a", DType::f32, {0}), make_array("b", DType::bf16, {5, 0, 7}),
                     make_array("c", DType::u8, {0, std::uint64_t{1} << 40})});
}

TEST_F(ArrayFileTest, ReadsBackAFileWithoutArrays) {
  write_arrays(path_, {}, R"({"step": 7})");

  const ArrayFile file = open();

  EXPECT_TRUE(file.arrays().empty());
  EXPECT_EQ(file.metadata(), R"({"step": 7})");
}

TEST_F(ArrayFileTest, ReadsBackSizesAroundTheLimitsOfStorage) {
  std::vector<Array> arrays;
  for (const std::uint64_t bytes : {1, 4095, 4096, 4097, 1 << 20, (1 << 20) + 1, (2 << 20) - 1, 2 << 20}) {
    arrays.push_back(make_array("u8/" + std::to_string(bytes), DType::u8, {bytes}));
  }

  expect_round_trip(arrays);
}

TEST_F(ArrayFileTest, ReadsBackArraysOfSeveralChunksWithOddTails) {
  expect_round_trip({make_array("rows", DType::f32, {1000, 333}), make_array("long rows", DType::f64, {3, 131'073}),
                     make_array("one row", DType::f32, {1, 700'001}), make_array("deep", DType::u16, {2, 3, 5, 70'001}),
                     make_array("unit axes", DType::i8, {1, 2, 1, 600'000, 1, 3})});
}

TEST_F(ArrayFileTest, ReadsBackThirtyTwoAxes) {
  std::vector<std::uint64_t> shape(32, 1);
  shape[0] = 3;
  shape[31] = 5;

  expect_round_trip({make_array("a", DType::f32, shape)});
}

TEST_F(ArrayFileTest, ReadsBackNamesInAnyScript) {
  expect_round_trip({make_array("模型/密集/核", DType::f32, {2}), make_array("modèle/β", DType::f32, {2}),
                     make_array("🦊", DType::f32, {2}), make_array("a b\n\"c\"\\", DType::f32, {2}),
                     make_array(".hidden/...", DType::f32, {2})});
}

TEST_F(ArrayFileTest, ReadsBackTheLongestAndDeepestNames) {
  std::string deep = "d";
  for (int i = 1; i < 32; ++i) deep += "/d";

  expect_round_trip({make_array(std::string(1024, 'n'), DType::f32, {2}), make_array(deep, DType::f32, {2})});
}

TEST_F(ArrayFileTest, ReadsBackAThousandArrays) {
  std::vector<Array> arrays;
  for (int i = 0; i < 1000; ++i) {
    arrays.push_back(make_array("group" + std::to_string(i % 3) + "/" + std::to_string(i), DType::f32, {11}));
  }

  expect_round_trip(arrays);
}

TEST_F(ArrayFileTest, ReadsBackMetadataOfAnySize) {
  for (const std::size_t length : {0, 1, 4096, 64 * 1024, 300'000}) {
    const std::string metadata = "{\"text\": \"ünï " + std::string(length, 'x') + "\"}\n";

    write_arrays(path_, small_arrays(), metadata);

    EXPECT_TRUE(open().metadata() == metadata) << length;
  }
}

TEST_F(ArrayFileTest, ListsArraysByName) {
  write_arrays(path_, {make_array("b", DType::f32, {2}), make_array("a/z", DType::f32, {2}),
                       make_array("a-", DType::f32, {2}), make_array("B", DType::f32, {2})});

  std::vector<std::string> names;
  const ArrayFile file = open();
  for (const ArrayInfo& array : file.arrays()) names.push_back(array.name);

  EXPECT_EQ(names, (std::vector<std::string>{"B", "a-", "a/z", "b"}));
}

TEST_F(ArrayFileTest, ReturnsTheFilesDigestAndSize) {
  const Digest written = write_arrays(path_, small_arrays());

  const ArrayFile file = open();
  const std::vector<std::byte> bytes = read_bytes(path_);

  EXPECT_EQ(file.file_digest(), written);
  EXPECT_EQ(file.file_bytes(), bytes.size());
}

TEST_F(ArrayFileTest, GivesTheSameBytesForTheSameArraysInAnyOrder) {
  std::vector<Array> arrays = small_arrays();
  arrays.push_back(make_array("large", DType::f32, {300, 1000}));
  write_arrays(path_, arrays, R"({"step": 1})");
  const std::vector<std::byte> first = read_bytes(path_);

  std::reverse(arrays.begin(), arrays.end());
  write_arrays(folder_ / "b.h5", arrays, R"({"step": 1})");

  EXPECT_TRUE(read_bytes(folder_ / "b.h5") == first);
}

TEST_F(ArrayFileTest, GivesTheSameBytesAfterLoadingAndSavingAHundredTimes) {
  write_arrays(path_, small_arrays(), R"({"step": 1})");
  const std::vector<std::byte> first = read_bytes(path_);

  for (int i = 0; i < 100; ++i) {
    const ArrayFile file = open();
    std::vector<Array> arrays;
    for (const ArrayInfo& info : file.arrays())
      arrays.push_back({info.name, info.dtype, info.shape, file.read(info.name)});
    write_arrays(path_, arrays, file.metadata());
  }

  EXPECT_TRUE(read_bytes(path_) == first);
}

TEST_F(ArrayFileTest, GivesOtherDigestsForOtherContent) {
  std::vector<Array> arrays = small_arrays();
  const Digest first = write_arrays(path_, arrays);

  arrays[0].bytes[0] ^= std::byte{1};

  EXPECT_NE(write_arrays(path_, arrays), first);
  EXPECT_NE(write_arrays(path_, small_arrays(), "{} "), first);
}

TEST_F(ArrayFileTest, StoresLargeArraysSmallerWhenTheirBytesRepeat) {
  Array zeros{.name = "zeros", .dtype = DType::f32, .shape = {1000, 1000}, .bytes = std::vector<std::byte>(4'000'000)};
  // Numbers like trained weights: random mantissas, few exponents.
  Array weights = make_array("weights", DType::f32, {1000, 100});
  for (std::size_t i = 3; i < weights.bytes.size(); i += 4) weights.bytes[i] = std::byte{0x3C};

  write_arrays(path_, {zeros, weights});

  const ArrayFile file = open();
  EXPECT_LT(file.find("zeros")->stored_bytes, 1000U);
  // A quarter of the bytes carries no information, and the shuffle collects it. 1 % is for zstd's own bytes.
  EXPECT_LT(file.find("weights")->stored_bytes, weights.bytes.size() * 76 / 100);
  EXPECT_TRUE(file.read("zeros") == zeros.bytes);
}

TEST_F(ArrayFileTest, AcceptsAnyLevelOfCompression) {
  const Array array = make_array("a", DType::f32, {5000});
  for (const int level : {-5, 1, 3, 22}) {
    write_array_file(posix_file_system(), path_, "{}", views(std::vector{array}),
                     {.compression = Compression::zstd, .zstd_level = level});

    expect_views_equal(path_);
    EXPECT_TRUE(open().read("a") == array.bytes) << level;
  }
}

TEST_F(ArrayFileTest, WritesWithoutCompression) {
  const std::vector<Array> arrays = {make_array("a", DType::f32, {1000, 333}), make_array("b", DType::u8, {7})};
  write_array_file(posix_file_system(), path_, "{}", views(arrays), {.compression = Compression::none});

  const ArrayFile file = open();

  EXPECT_EQ(file.find("a")->storage, Storage::contiguous);
  EXPECT_EQ(file.find("a")->stored_bytes, arrays[0].bytes.size());
  EXPECT_TRUE(file.read("a") == arrays[0].bytes);
  EXPECT_TRUE(file.read("b") == arrays[1].bytes);
  expect_views_equal(path_);
}

TEST_F(ArrayFileTest, GivesTheSameBytesWithAnyNumberOfThreads) {
  const std::vector<Array> arrays = {make_array("a", DType::f32, {1000, 3333}), make_array("b", DType::u8, {7}),
                                     make_array("c", DType::u16, {5'000'001}), make_array("d", DType::f64, {2000})};
  for (const Compression compression : {Compression::fast, Compression::zstd, Compression::none}) {
    write_array_file(posix_file_system(), path_, "{}", views(arrays), {.compression = compression, .threads = 1});
    const std::vector<std::byte> alone = read_bytes(path_);

    write_array_file(posix_file_system(), path_, "{}", views(arrays), {.compression = compression, .threads = 5});

    EXPECT_TRUE(read_bytes(path_) == alone);
    expect_views_equal(path_);
  }
}

TEST_F(ArrayFileTest, ReadsManyArraysAtOnce) {
  const std::vector<Array> arrays = {make_array("a", DType::f32, {1000, 3333}), make_array("b", DType::u8, {7}),
                                     make_array("c", DType::u16, {5'000'001}), make_array("d", DType::f64, {0})};
  write_arrays(path_, arrays);
  const ArrayFile file = ArrayFile::open(posix_file_system(), path_, {.threads = 3});
  std::vector<std::vector<std::byte>> out;
  for (const Array& array : arrays) out.emplace_back(array.bytes.size());
  std::vector<ArrayFile::Target> targets;
  for (std::size_t i = 0; i < arrays.size(); ++i) targets.push_back({arrays[i].name, out[i]});

  file.read_into(targets);

  for (std::size_t i = 0; i < arrays.size(); ++i) EXPECT_TRUE(out[i] == arrays[i].bytes) << arrays[i].name;
}

TEST_F(ArrayFileTest, ReportsEachPieceOnceItHasArrived) {
  const std::vector<Array> arrays = {make_array("a", DType::f32, {1000, 3333}), make_array("b", DType::u8, {7}),
                                     make_array("c", DType::u16, {5'000'001})};
  for (const Compression compression : {Compression::fast, Compression::none}) {
    write_array_file(posix_file_system(), path_, "{}", views(arrays), {.compression = compression});
    const ArrayFile file = ArrayFile::open(posix_file_system(), path_, {.threads = 3});
    std::vector<std::vector<std::byte>> out;
    std::vector<std::vector<std::byte>> taken;
    for (const Array& array : arrays) {
      out.emplace_back(array.bytes.size());
      taken.emplace_back(array.bytes.size());
    }
    std::vector<ArrayFile::Target> targets;
    for (std::size_t i = 0; i < arrays.size(); ++i) targets.push_back({arrays[i].name, out[i]});
    std::atomic<std::size_t> told_bytes = 0;
    std::atomic<int> in_halves = 0;

    file.read_into(targets, [&](const ArrayFile::Arrival& arrival) {
      std::copy_n(out[arrival.target].begin() + static_cast<std::ptrdiff_t>(arrival.begin), arrival.bytes,
                  taken[arrival.target].begin() + static_cast<std::ptrdiff_t>(arrival.begin));
      told_bytes += arrival.bytes;
      if (arrival.begin % size_bytes(arrays[arrival.target].dtype) != 0) ++in_halves;
    });

    for (std::size_t i = 0; i < arrays.size(); ++i) EXPECT_TRUE(taken[i] == arrays[i].bytes) << arrays[i].name;
    EXPECT_EQ(told_bytes, arrays[0].bytes.size() + arrays[1].bytes.size() + arrays[2].bytes.size());
    EXPECT_EQ(in_halves, 0);
  }
}

TEST_F(ArrayFileTest, EndsWithAnExceptionFromTheCallbackOfAPiece) {
  const std::vector<Array> arrays = {make_array("a", DType::f32, {1000, 3333})};
  write_arrays(path_, arrays);
  const ArrayFile file = ArrayFile::open(posix_file_system(), path_, {.threads = 3});
  std::vector<std::byte> out(arrays[0].bytes.size());
  const ArrayFile::Target target{"a", out};

  EXPECT_EQ(thrown_by([&] {
              file.read_into(std::span(&target, 1), [](const ArrayFile::Arrival&) {
                throw Error(ErrorCode::device_failed, "the device is lost");
              });
            }).code,
            ErrorCode::device_failed);
}

TEST_F(ArrayFileTest, ReportsTheProgressOfWriting) {
  std::vector<std::uint64_t> done;
  std::uint64_t last_total = 0;
  const std::vector<Array> arrays = {make_array("a", DType::f32, {1000, 3333})};

  write_array_file(posix_file_system(), path_, "{}", views(arrays),
                   {.threads = 3, .progress = [&](std::uint64_t bytes, std::uint64_t total) {
                      done.push_back(bytes);
                      last_total = total;
                    }});

  EXPECT_EQ(last_total, arrays[0].bytes.size() + 2);  // and the metadata "{}"
  ASSERT_FALSE(done.empty());
  EXPECT_EQ(done.back(), last_total);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

TEST_F(ArrayFileTest, ReadsOnlyAFewPagesToListItsArrays) {
  write_arrays(path_, {make_array("a", DType::f32, {1000, 3333})});
  std::size_t read_bytes = 0;
  const auto files = watched_file_system(posix_file_system(), [&](const FileOperation& operation) {
    if (operation.name == "read") read_bytes += operation.bytes;
  });

  const ArrayFile file = ArrayFile::open(*files, path_);

  EXPECT_EQ(file.arrays().size(), 1U);
  EXPECT_LT(read_bytes, 2048U);
}

// Uncompressed arrays are read and checked in parts of 128 KiB.
TEST_F(ArrayFileTest, ChecksEveryPartOfAPlainArray) {
  constexpr std::uint64_t kPart = 128 * 1024;
  for (const std::uint64_t size : {kPart - 1, kPart, kPart + 1, 3 * kPart, 8 * kPart + 1, 9 * kPart + 4096}) {
    const std::vector<Array> arrays = {make_array("a", DType::u8, {size})};
    write_array_file(posix_file_system(), path_, "{}", views(arrays), {.compression = Compression::none});
    const std::vector<std::byte> whole = read_bytes(path_);
    const auto begin = std::search(whole.begin(), whole.end(), arrays[0].bytes.begin(), arrays[0].bytes.end());
    ASSERT_NE(begin, whole.end());

    EXPECT_TRUE(open().read("a") == arrays[0].bytes) << size;

    for (std::uint64_t place = size - 1;; place -= kPart) {
      std::vector<std::byte> damaged = whole;
      damaged[static_cast<std::size_t>(begin - whole.begin()) + place] ^= std::byte{1};
      write_bytes(path_, damaged);
      EXPECT_EQ(thrown_by([&] { static_cast<void>(open().read("a")); }).code, ErrorCode::invalid_file)
          << place << " of " << size;
      if (place < kPart) break;
    }
  }
}

TEST_F(ArrayFileTest, AsksTheDiskForEveryLargePieceBeforeItIsRead) {
  constexpr std::uint64_t kPieces = 20;
  write_arrays(path_, {make_array("a", DType::u8, {kPieces << 20}), make_array("b", DType::u8, {100})});
  std::set<std::uint64_t> asked;
  std::uint64_t read_after_asking = 0;
  const auto files = watched_file_system(posix_file_system(), [&](const FileOperation& operation) {
    if (operation.name == "read_ahead") asked.insert(operation.offset);
    if (operation.name == "read") read_after_asking += asked.contains(operation.offset) ? 1 : 0;
  });
  const ArrayFile file = ArrayFile::open(*files, path_, {.threads = 1});

  static_cast<void>(file.read("a"));
  static_cast<void>(file.read("b"));

  EXPECT_EQ(asked.size(), kPieces);
  EXPECT_EQ(read_after_asking, kPieces);
}

TEST_F(ArrayFileTest, StaysReadableWhenTheFileIsDeleted) {
  write_arrays(path_, small_arrays());
  const ArrayFile file = open();

  posix_file_system().remove(path_);

  EXPECT_TRUE(file.read("model/dense/kernel") == small_arrays()[1].bytes);
}

TEST_F(ArrayFileTest, StaysReadableWhenMoved) {
  write_arrays(path_, small_arrays());
  ArrayFile first = open();

  ArrayFile second(std::move(first));
  write_arrays(folder_ / "b.h5", {});
  ArrayFile third = ArrayFile::open(posix_file_system(), folder_ / "b.h5");
  third = std::move(second);

  EXPECT_TRUE(third.read("step") == small_arrays()[3].bytes);
}

TEST_F(ArrayFileTest, NamesTheArrayThatIsMissing) {
  write_arrays(path_, small_arrays());
  const ArrayFile file = open();

  EXPECT_EQ(file.find("model"), nullptr);
  EXPECT_EQ(file.find("metadata"), nullptr);
  EXPECT_EQ(file.find(""), nullptr);
  const auto thrown = thrown_by([&] { static_cast<void>(file.read("model/none")); });
  EXPECT_EQ(thrown.code, ErrorCode::not_found);
  EXPECT_THAT(thrown.sentence, HasSubstr("\"model/none\""));
  EXPECT_THAT(thrown.sentence, HasSubstr(path_));
}

TEST_F(ArrayFileTest, ReadsOnlyIntoExactlyTheArraysSize) {
  write_arrays(path_, small_arrays());
  const ArrayFile file = open();
  std::vector<std::byte> out(small_arrays()[2].bytes.size());

  file.read_into("model/dense/bias", out);

  EXPECT_TRUE(out == small_arrays()[2].bytes);
  out.pop_back();
  EXPECT_EQ(thrown_by([&] { file.read_into("model/dense/bias", out); }).code, ErrorCode::invalid_argument);
}

TEST_F(ArrayFileTest, IsNotFoundWhereNoFileIs) {
  EXPECT_EQ(thrown_by([&] { open(); }).code, ErrorCode::not_found);
}

TEST_F(ArrayFileTest, CanBeWrittenAndReadByTwoThreadsAtOnce) {
  const auto work = [this](const std::string& name, bool& is_equal) {
    const std::vector<Array> arrays = {make_array(name, DType::f32, {700, 500}),
                                       make_array(name + "2", DType::f16, {9})};
    is_equal = true;
    for (int i = 0; i < 5; ++i) {
      write_arrays(folder_ / name, arrays);
      const ArrayFile file = ArrayFile::open(posix_file_system(), folder_ / name);
      for (const Array& array : arrays) is_equal = is_equal && file.read(array.name) == array.bytes;
    }
  };
  bool are_equal[2] = {};

  {
    std::jthread first(work, "first", std::ref(are_equal[0]));
    std::jthread second(work, "second", std::ref(are_equal[1]));
  }

  EXPECT_TRUE(are_equal[0]);
  EXPECT_TRUE(are_equal[1]);
}

TEST_F(ArrayFileTest, CanBeReadByTwoThreadsThroughOneObject) {
  const Array array = make_array("a", DType::f32, {700, 500});
  write_arrays(path_, {array});
  const ArrayFile file = open();
  bool are_equal[2] = {};

  {
    const auto read = [&](bool& is_equal) { is_equal = file.read("a") == array.bytes; };
    std::jthread first(read, std::ref(are_equal[0]));
    std::jthread second(read, std::ref(are_equal[1]));
  }

  EXPECT_TRUE(are_equal[0]);
  EXPECT_TRUE(are_equal[1]);
}

class RefusedArgument : public ArrayFileTest {
 protected:
  void expect_refused(const std::vector<Array>& arrays, const std::string& part,
                      const std::string& metadata = "{}") const {
    const auto thrown = thrown_by([&] { write_arrays(path_, arrays, metadata); });
    EXPECT_EQ(thrown.code, ErrorCode::invalid_argument);
    EXPECT_THAT(thrown.sentence, HasSubstr(part));
    EXPECT_THAT(thrown.sentence, HasSubstr(path_));
    EXPECT_TRUE(folder_.names().empty());
  }
};

TEST_F(RefusedArgument, IsAnInvalidName) {
  std::string too_deep = "d";
  for (int i = 0; i < 32; ++i) too_deep += "/d";
  for (const std::string& name :
       {std::string(), std::string("/a"), std::string("a/"), std::string("a//b"), std::string("."),
        std::string("a/../b"), std::string("./a"), std::string(1025, 'n'), too_deep}) {
    expect_refused({make_array(name, DType::f32, {2})}, "no valid name");
  }
  expect_refused({make_array("\xFF", DType::f32, {2})}, "not UTF-8 text");
  expect_refused({make_array(std::string("a\0b", 3), DType::f32, {2})}, "not UTF-8 text");
}

TEST_F(RefusedArgument, IsANameThatIsTaken) {
  expect_refused({make_array("a", DType::f32, {2}), make_array("a", DType::f32, {2})}, "\"a\" is taken");
  expect_refused({make_array("metadata", DType::f32, {2})}, "\"metadata\" is taken");
  expect_refused({make_array("metadata/a", DType::f32, {2})}, "inside the array \"metadata\"");
  expect_refused({make_array("a/b/c", DType::f32, {2}), make_array("a/b", DType::f32, {2})},
                 "inside the array \"a/b\"");
}

TEST_F(RefusedArgument, IsAShapeThatDoesNotFitTheBytes) {
  Array array = make_array("a", DType::f32, {3, 5});
  array.bytes.pop_back();
  expect_refused({array}, "59 bytes, and its shape takes 60");

  array.shape = {std::uint64_t{1} << 32, std::uint64_t{1} << 32};
  expect_refused({array}, "59 bytes");

  expect_refused({make_array("a", DType::f32, std::vector<std::uint64_t>(33, 1))}, "33 axes");
}

TEST_F(RefusedArgument, IsMetadataThatIsNotJson) {
  for (const std::string& metadata :
       {std::string(), std::string("{"), std::string("{} x"), std::string("{}\0", 3), std::string("\"\xFF\"")}) {
    expect_refused({}, "not JSON", metadata);
  }
}

TEST_F(RefusedArgument, IsALevelThatZstdDoesNotHave) {
  const auto thrown = thrown_by([&] { write_array_file(posix_file_system(), path_, "{}", {}, {.zstd_level = 1000}); });

  EXPECT_EQ(thrown.code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace holdfast::format
