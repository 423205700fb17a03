// Files of every kind through AnyFile: recognised by content alone, and read whole, array by array or in pieces.

#include "holdfast/format/exchange/any_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "foreign_hdf5/tree.h"
#include "holdfast/format/exchange/keras.h"
#include "holdfast/format/exchange/npz.h"
#include "holdfast/format/exchange/safetensors.h"
#include "support/disks/memory_file_system.h"
#include "unit/exchange/support/impostor_reader.h"
#include "unit/exchange/support/keras_trees.h"
#include "unit/exchange/support/npy_builder.h"
#include "unit/exchange/support/trees.h"
#include "unit/exchange/support/zip_builder.h"
#include "unit/format/support/array_files.h"
#include "zip/zip.h"

namespace holdfast::format {
namespace {

using testing::Array;
using testing::bytes_of;
using ::testing::HasSubstr;
using testing::make_array;
using testing::small_arrays;
using testing::Thrown;
using testing::thrown_by;

class AnyFileTest : public ::testing::Test {
 protected:
  AnyFileTest() { files_.create_folders("/d"); }

  void write(const std::string& path, std::span<const std::byte> bytes) { files_.create(path)->write_at(0, bytes); }
  void write(const std::string& path, const std::string& text) { write(path, std::as_bytes(std::span(text))); }

  // Writes the same arrays and metadata as each kind of file. The names of the files say nothing.
  void write_all() {
    const std::vector<ArrayView> views = format::views(arrays_);
    write_array_file(files_, "/d/holdfast", kMetadata, views);
    write_safetensors(files_, "/d/safetensors", kMetadata, views);
    write_npz(files_, "/d/npz", kMetadata, views);
  }

  void write_keras() {
    write_hdf5_tree(files_, "/d/keras", testing::tree({}, {testing::floats("layers/dense/vars/0", {2, 3})}));
  }

  void write_archive(const std::string& path, const std::vector<std::string>& names) {
    std::vector<ZipMember> members;
    for (const std::string& name : names) members.push_back({name, bytes_of("x")});
    write_zip(files_, path, members);
  }

  FileKind kind(const std::string& path) { return recognise(files_, path); }
  Thrown refusal(const std::string& path) {
    return thrown_by([&] { recognise(files_, path); });
  }

  static constexpr const char* kMetadata = R"({"step":3,"deep":{"a":[1]}})";
  const std::vector<Array> arrays_ = small_arrays();
  MemoryFileSystem files_;
};

TEST_F(AnyFileTest, RecognisesEachKindByItsContent) {
  write_all();
  write_keras();

  EXPECT_EQ(kind("/d/holdfast"), FileKind::holdfast);
  EXPECT_EQ(kind("/d/safetensors"), FileKind::safetensors);
  EXPECT_EQ(kind("/d/npz"), FileKind::npz);
  EXPECT_EQ(kind("/d/keras"), FileKind::hdf5);
}

TEST_F(AnyFileTest, RecognisesArchivesByTheirMembers) {
  write_archive("/d/model", {"config.json"});
  write_archive("/d/weights", {"model.weights.h5"});
  write_archive("/d/arrays", {"a.npy"});
  write_archive("/d/empty", {});

  EXPECT_EQ(kind("/d/model"), FileKind::keras);
  EXPECT_EQ(kind("/d/weights"), FileKind::keras);
  EXPECT_EQ(kind("/d/arrays"), FileKind::npz);
  EXPECT_EQ(kind("/d/empty"), FileKind::npz);
}

TEST_F(AnyFileTest, FindsHdf5AfterAUserBlock) {
  write_keras();
  std::vector<std::byte> bytes(1024);
  const std::vector<std::byte> content = files_.contents().at("/d/keras");
  bytes.insert(bytes.end(), content.begin(), content.end());
  write("/d/shifted", bytes);

  EXPECT_EQ(kind("/d/shifted"), FileKind::hdf5);
  EXPECT_EQ(AnyFile::open(files_, "/d/shifted").kind(), FileKind::keras);
}

TEST_F(AnyFileTest, RefusesAHoldfastFileWithADamagedStart) {
  write_all();
  files_.open_for_writing("/d/holdfast")->write_at(0, std::vector<std::byte>(1));

  EXPECT_EQ(refusal("/d/holdfast").code, ErrorCode::invalid_file);
  EXPECT_THAT(refusal("/d/holdfast").sentence, HasSubstr("first bytes are damaged"));
}

TEST_F(AnyFileTest, SaysWhatToDoWithPickledFiles) {
  write("/d/pickle", std::string("\x80\x02}q.", 5));
  write_archive("/d/torch", {"archive/data.pkl", "archive/data/0"});

  for (const std::string path : {"/d/pickle", "/d/torch"}) {
    EXPECT_EQ(refusal(path).code, ErrorCode::unsupported);
    EXPECT_THAT(refusal(path).sentence, HasSubstr(path));
    EXPECT_THAT(refusal(path).sentence, HasSubstr("safetensors.torch.save_file"));
  }
}

TEST_F(AnyFileTest, RefusesFilesThatHoldNoArrays) {
  write("/d/empty", "");
  write("/d/text", "Hello, what is this?\n");
  // The header would be longer than the file.
  write("/d/short", std::string("\xFF\0\0\0\0\0\0\0{", 9));
  write("/d/zeros", std::vector<std::byte>(5000));

  for (const std::string path : {"/d/empty", "/d/text", "/d/short", "/d/zeros"}) {
    EXPECT_EQ(refusal(path).code, ErrorCode::invalid_file) << path;
    EXPECT_THAT(refusal(path).sentence, HasSubstr(path));
    // read_npy() says it, too, which left out the very kind that it reads.
    EXPECT_THAT(refusal(path).sentence, HasSubstr("NumPy's .npy and .npz"));
  }
  EXPECT_EQ(refusal("/d/missing").code, ErrorCode::not_found);
}

TEST_F(AnyFileTest, GivesTheSameArraysOfEachKind) {
  write_all();
  for (const std::string path : {"/d/holdfast", "/d/safetensors", "/d/npz"}) {
    SCOPED_TRACE(path);

    const AnyFile file = AnyFile::open(files_, path);

    EXPECT_EQ(file.metadata(), kMetadata);
    EXPECT_EQ(file.file_bytes(), files_.contents().at(path).size());
    ASSERT_EQ(file.arrays().size(), arrays_.size());
    EXPECT_TRUE(std::is_sorted(file.arrays().begin(), file.arrays().end(),
                               [](const ArrayInfo& a, const ArrayInfo& b) { return a.name < b.name; }));
    for (const Array& array : arrays_) {
      const ArrayInfo* info = file.find(array.name);
      ASSERT_NE(info, nullptr) << array.name;
      EXPECT_EQ(info->dtype, array.dtype);
      EXPECT_EQ(info->shape, array.shape);
      EXPECT_TRUE(file.read(array.name) == array.bytes) << array.name;
    }
  }
}

TEST_F(AnyFileTest, ReadsAllAndReportsProgress) {
  write_all();
  std::uint64_t bytes = 0;
  for (const Array& array : arrays_) bytes += array.bytes.size();
  for (const std::string path : {"/d/holdfast", "/d/safetensors", "/d/npz"}) {
    std::vector<std::uint64_t> told;

    const ArraySet set = AnyFile::open(files_, path).read_all([&](std::uint64_t done, std::uint64_t total) {
      EXPECT_EQ(total, bytes);
      told.push_back(done);
    });

    ASSERT_EQ(set.arrays.size(), arrays_.size());
    EXPECT_EQ(set.metadata, kMetadata);
    EXPECT_EQ(told.size(), arrays_.size());
    EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
    EXPECT_EQ(told.back(), bytes);
    for (const Array& array : arrays_) EXPECT_TRUE(testing::find(set.arrays, array.name)->bytes == array.bytes);
  }
}

TEST_F(AnyFileTest, GivesTheSameArraysInPieces) {
  write_all();
  write_keras();
  write_hdf5_tree(files_, "/d/plain", testing::tree({}, {testing::floats("b/c", {2, 5}), testing::floats("a", {})}));
  for (const std::string path : {"/d/holdfast", "/d/safetensors", "/d/npz", "/d/keras", "/d/plain"}) {
    SCOPED_TRACE(path);
    const AnyFile file = AnyFile::open(files_, path);
    const std::string left_out = file.arrays().back().name;
    std::map<std::string, std::vector<std::byte>> found;

    file.read_pieces([&](const ArrayInfo& array) { return array.name != left_out; },
                     [&](const ArrayInfo& array, std::span<const std::byte> piece) {
                       std::vector<std::byte>& bytes = found[array.name];
                       bytes.insert(bytes.end(), piece.begin(), piece.end());
                     });

    EXPECT_FALSE(found.contains(left_out));
    for (const ArrayInfo& array : file.arrays()) {
      if (array.name == left_out) continue;
      EXPECT_TRUE(found[array.name] == file.read(array.name)) << array.name;
    }
  }
}

// Only ChosenArrays knew this kind, so "holdfast inspect" took such a file for one that Holdfast does not read.
TEST_F(AnyFileTest, ReadsTheOneArrayOfAnNpy) {
  const std::string columns("\0\1\0\4\0\2\0\5\0\3\0\6", 12);
  write("/d/columns", testing::npy(testing::dictionary(">u2", "(2, 3)", "True"), columns));
  std::vector<std::byte> in_pieces;

  const AnyFile file = AnyFile::open(files_, "/d/columns");
  file.read_pieces([](const ArrayInfo&) { return true; },
                   [&](const ArrayInfo&, std::span<const std::byte> piece) {
                     in_pieces.insert(in_pieces.end(), piece.begin(), piece.end());
                   });

  EXPECT_EQ(file.kind(), FileKind::npy);
  EXPECT_EQ(name(file.kind()), "npy");
  EXPECT_EQ(file.metadata(), "{}");
  ASSERT_EQ(file.arrays().size(), 1U);
  EXPECT_EQ(file.arrays()[0].name, "arr_0");
  EXPECT_EQ(file.arrays()[0].dtype, DType::u16);
  EXPECT_EQ(file.arrays()[0].shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(testing::text_of(file.read("arr_0")), std::string("\1\0\2\0\3\0\4\0\5\0\6\0", 12));
  EXPECT_TRUE(in_pieces == file.read("arr_0"));
}

TEST_F(AnyFileTest, ReadsALargeNpyInPieces) {
  constexpr std::size_t kElements = 9'000'000;
  write("/d/large",
        testing::npy(testing::dictionary(">f8", "(9000000,)"), std::string(kElements * 8 - 1, '\0') + '\1'));
  std::size_t bytes = 0;
  std::byte first_of_last{};

  AnyFile::open(files_, "/d/large")
      .read_pieces([](const ArrayInfo&) { return true; },
                   [&](const ArrayInfo&, std::span<const std::byte> piece) {
                     EXPECT_LE(piece.size(), std::size_t{1} << 20);
                     bytes += piece.size();
                     first_of_last = piece[piece.size() - 8];
                   });

  EXPECT_EQ(bytes, kElements * 8);
  EXPECT_EQ(first_of_last, std::byte{1}) << "the elements are big-endian in the file";
}

// An array of objects made the whole archive one that "holdfast inspect" refused.
TEST_F(AnyFileTest, ReadsWhatCanBeReadOfAnNpzAndNamesTheRest) {
  const auto member = [](const std::string& dictionary, const std::string& data) {
    return testing::text_of(testing::npy(dictionary, data));
  };
  write("/d/mixed",
        testing::build(
            {.members = {
                 {.name = "x.npy", .content = member(testing::dictionary("|u1", "(2,)"), "ab")},
                 {.name = "people.npy", .content = member(testing::dictionary("|O", "(1,)"), "pickle")},
                 {.name = "names.npy", .content = member(testing::dictionary("<U3", "(1,)"), std::string(12, 'n'))},
                 {.name = "short.npy", .content = member(testing::dictionary("|u1", "(9,)"), "ab")},
                 {.name = "cut.npy", .content = std::string("\x93NUMPY\1\0\x76\0{'descr'", 18)},
                 {.name = "note.txt", .content = "hello"}}}));

  const AnyFile file = AnyFile::open(files_, "/d/mixed", {.allow_unreadable = true});

  ASSERT_EQ(file.arrays().size(), 1U);
  EXPECT_EQ(testing::text_of(file.read("x")), "ab");
  EXPECT_THAT(
      file.unreadable(),
      ::testing::ElementsAre(
          "\"people\" is an array of Python objects, which cannot be read without running code; save plain numbers",
          HasSubstr("\"names\" is an array of NumPy's type \"<U3\""),
          "\"short\" has 2 bytes of elements, but its shape needs 9", "\"cut\" ends within its header",
          "\"note.txt\" is not an array"));
  const Thrown thrown = thrown_by([&] { AnyFile::open(files_, "/d/mixed"); });
  EXPECT_EQ(thrown.code, ErrorCode::unsupported);
  EXPECT_THAT(thrown.sentence, HasSubstr("/d/mixed has array \"people\" of Python objects"));
}

// Such metadata made the whole archive one that cannot be read.
TEST_F(AnyFileTest, ReadsAnNpzWhoseMetadataCannotBeRead) {
  const std::string array = testing::text_of(testing::npy(testing::dictionary("|u1", "(2,)"), "ab"));
  const auto claim_much = [](testing::MemberFields& fields) { fields.size = (64U << 20) + 1; };
  const testing::BuiltMember no_json = {.name = "holdfast.metadata.json", .content = "{"};
  // The claim must be one that compression could keep. Others are refused earlier.
  std::string noise;
  std::mt19937 random(1);
  while (noise.size() < 70'000) noise += static_cast<char>(random());
  const testing::BuiltMember large = {.name = "holdfast.metadata.json",
                                      .content = noise,
                                      .is_deflated = true,
                                      .change_local = claim_much,
                                      .change_directory = claim_much};
  write("/d/no_json", testing::build({.members = {no_json, {.name = "x.npy", .content = array}}}));
  write("/d/large", testing::build({.members = {large, {.name = "x.npy", .content = array}}}));
  const std::vector<std::pair<std::string, std::string>> problems = {
      {"/d/no_json", "\"holdfast.metadata.json\" is not JSON"},
      {"/d/large", "\"holdfast.metadata.json\" has 67108865 bytes of metadata, and at most 67108864 are read"}};
  for (const auto& [path, problem] : problems) {
    const AnyFile file = AnyFile::open(files_, path, {.allow_unreadable = true});

    EXPECT_THAT(file.unreadable(), ::testing::ElementsAre(problem));
    EXPECT_EQ(file.metadata(), "{}");
    EXPECT_EQ(testing::text_of(file.read("x")), "ab");
    EXPECT_EQ(thrown_by([&, path = path] { AnyFile::open(files_, path); }).code, ErrorCode::invalid_file);
  }
}

TEST_F(AnyFileTest, RefusesAnNpyOfObjects) {
  write("/d/objects", testing::npy(testing::dictionary("|O", "(1,)"), "pickle"));

  const Thrown thrown = thrown_by([&] { AnyFile::open(files_, "/d/objects", {.allow_unreadable = true}); });

  EXPECT_EQ(thrown.code, ErrorCode::unsupported);
  EXPECT_THAT(thrown.sentence, HasSubstr("/d/objects has an array of Python objects"));
}

// Regression: a file of 400 KB that holds 400 MB was decompressed for names and shapes, and again for each read.
TEST_F(AnyFileTest, HoldsOnlyOnePieceOfACompressedArray) {
  constexpr std::size_t kBytes = 100'000'000;
  const std::string head("\x93NUMPY\1\0\x76\0", 10);
  std::string text = "{'descr': '|u1', 'fortran_order': False, 'shape': (100000000,), }";
  text.resize(0x75, ' ');
  write("/d/bomb", testing::build({.members = {{.name = "a.npy",
                                                .content = head + text + "\n" + std::string(kBytes, '\0'),
                                                .is_deflated = true}}}));
  const AnyFile file = AnyFile::open(files_, "/d/bomb");
  std::size_t bytes = 0;
  std::size_t largest = 0;

  file.read_pieces([](const ArrayInfo&) { return true; },
                   [&](const ArrayInfo&, std::span<const std::byte> piece) {
                     bytes += piece.size();
                     largest = std::max(largest, piece.size());
                   });

  EXPECT_EQ(bytes, kBytes);
  EXPECT_LE(largest, std::size_t{1} << 20);
}

TEST_F(AnyFileTest, OpensAnNpzWithoutReadingElements) {
  write_all();
  std::vector<std::byte> bytes = files_.contents().at("/d/npz");
  const std::vector<std::byte>& elements = arrays_.at(0).bytes;
  const auto place = std::search(bytes.begin(), bytes.end(), elements.begin(), elements.end());
  ASSERT_NE(place, bytes.end());
  *place ^= std::byte{1};
  write("/d/damaged", bytes);

  const AnyFile file = AnyFile::open(files_, "/d/damaged");

  EXPECT_EQ(file.arrays().size(), arrays_.size());
  const Thrown thrown = thrown_by([&] { file.read(arrays_.at(0).name); });
  EXPECT_EQ(thrown.code, ErrorCode::invalid_file);
  EXPECT_THAT(thrown.sentence, HasSubstr("does not match its CRC-32"));
}

TEST_F(AnyFileTest, TakesNoMoreMemoryForAnHdf5FileThanAllowed) {
  write_keras();

  const Thrown thrown = thrown_by([&] { AnyFile::open(files_, "/d/keras", {.max_memory_bytes = 100}); });

  EXPECT_EQ(thrown.code, ErrorCode::out_of_memory);
  EXPECT_THAT(thrown.sentence, HasSubstr("cannot read /d/keras: "));
  EXPECT_THAT(thrown.sentence, HasSubstr("and 100 are allowed; allow more with --max-memory"));
}

// The file has a few KB: one compressed chunk of a million zeros.
TEST_F(AnyFileTest, TakesNoMoreMemoryForAChunkThanAllowed) {
  FileSystem& files = posix_file_system();
  const std::string path = testing::path_of("chunk_of_a_million_v110.h5");
  const AnyFile file = AnyFile::open(files, path, {.max_memory_bytes = 100'000});

  ASSERT_EQ(file.arrays().size(), 1U);
  EXPECT_EQ(file.arrays()[0].shape, (std::vector<std::uint64_t>{1, 1'000'000}));
  const Thrown thrown =
      thrown_by([&] { file.read_pieces([](const ArrayInfo&) { return true; }, [](const auto&, const auto&) {}); });
  EXPECT_EQ(thrown.code, ErrorCode::out_of_memory);
  EXPECT_THAT(thrown.sentence, HasSubstr("\"zeros\" is stored in chunks that take 1000000 bytes of memory at once"));
  EXPECT_THAT(thrown.sentence, HasSubstr("--max-memory"));
}

TEST_F(AnyFileTest, RefusesAKerasArchiveWhoseMembersGrowBeyondWeights) {
  write(
      "/d/weights",
      testing::build(
          {.members = {{.name = "config.json", .content = "{}"},
                       {.name = "model.weights.h5", .content = std::string(80'000'000, '\0'), .is_deflated = true}}}));
  write(
      "/d/config",
      testing::build({.members = {{.name = "config.json", .content = std::string(5'000'000, ' '), .is_deflated = true},
                                  {.name = "model.weights.h5", .content = "x"}}}));

  EXPECT_THAT(thrown_by([&] { AnyFile::open(files_, "/d/weights"); }).sentence,
              HasSubstr("its member \"model.weights.h5\" would grow from "));
  EXPECT_THAT(thrown_by([&] { AnyFile::open(files_, "/d/config"); }).sentence,
              HasSubstr("its member \"config.json\" would grow from "));
}

TEST_F(AnyFileTest, ReadsKeras) {
  write_keras();

  const ArraySet set = read_any(files_, "/d/keras");

  EXPECT_THAT(testing::names(set.arrays), ::testing::ElementsAre("model/dense/kernel"));
}

TEST_F(AnyFileTest, ReadsHdf5OfOtherPrograms) {
  Hdf5Tree tree = testing::tree({}, {testing::floats("b/c", {2}), testing::floats("a", {})});
  tree.datasets[0].attributes = {{"unit", std::string("m")}};
  tree.texts = {{"b/note", "hello", {}}};
  write_hdf5_tree(files_, "/d/plain", tree);

  const AnyFile file = AnyFile::open(files_, "/d/plain");

  EXPECT_EQ(file.kind(), FileKind::hdf5);
  EXPECT_THAT(testing::names(file.read_all().arrays), ::testing::ElementsAre("a", "b/c"));
  EXPECT_EQ(file.metadata(), R"({"attributes":{"a":{"unit":"m"}},"kind":"hdf5","texts":{"b/note":"hello"}})");
}

// A helper that had sent fewer datasets with the elements made the reader look up an array that was not there.
TEST_F(AnyFileTest, RefusesAHelperThatSendsOtherElementsThanItAnnounced) {
  const TemporaryFolder folder;
  const testing::ImpostorReader impostor(folder);
  impostor.send("heads", {{"x", DType::i32, {2}, {}}, {"y", DType::i32, {2}, {}}});
  const std::vector<NamedArray> both = {testing::make_numbers("x", DType::i32, {2}),
                                        testing::make_numbers("y", DType::i32, {2})};
  const std::vector<std::vector<NamedArray>> answers = {
      {both[0]}, {both[1]}, {both[0], both[1], testing::make_numbers("z", DType::i32, {2})}, {}};
  write("/d/a.h5", compose_hdf5_tree("a.h5", testing::every_kind_of_content()));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    impostor.send("elements", answers[i]);
    const AnyFile file = AnyFile::open(files_, "/d/a.h5");

    EXPECT_EQ(thrown_by([&] { file.read("y"); }).code, ErrorCode::invalid_file) << i;
    EXPECT_EQ(thrown_by([&] {
                file.read_pieces([](const ArrayInfo&) { return true; },
                                 [](const ArrayInfo&, std::span<const std::byte>) {});
              }).code,
              ErrorCode::invalid_file)
        << i;
  }
  impostor.send("elements", both);
  EXPECT_EQ(AnyFile::open(files_, "/d/a.h5").read("y"), both[1].bytes);
}

TEST_F(AnyFileTest, SaysWhichArrayItLacks) {
  write_all();
  for (const std::string path : {"/d/holdfast", "/d/safetensors", "/d/npz"}) {
    const AnyFile file = AnyFile::open(files_, path);

    const Thrown thrown = thrown_by([&] { file.read("model/nothing"); });

    EXPECT_EQ(file.find("model/nothing"), nullptr);
    EXPECT_EQ(thrown.code, ErrorCode::not_found);
    EXPECT_THAT(thrown.sentence, HasSubstr(path));
    EXPECT_THAT(thrown.sentence, HasSubstr("\"model/nothing\""));
  }
}

TEST_F(AnyFileTest, GivesTheIndexOfHoldfastFilesOnly) {
  write_all();

  EXPECT_NE(AnyFile::open(files_, "/d/holdfast").array_file(), nullptr);
  EXPECT_EQ(AnyFile::open(files_, "/d/npz").array_file(), nullptr);
  EXPECT_EQ(AnyFile::open(files_, "/d/safetensors").array_file(), nullptr);
}

}  // namespace
}  // namespace holdfast::format
