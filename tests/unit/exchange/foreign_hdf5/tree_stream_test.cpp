// The records between helper and library: valid ones give a tree, and all others an error without large allocations.

#include "foreign_hdf5/tree_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "unit/exchange/support/trees.h"

namespace holdfast::format {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kFileBytes = 10'000;

// A source that ends, like a pipe.
struct Ended {};

class MemoryRecords : public RecordSource {
 public:
  explicit MemoryRecords(std::span<const std::byte> bytes) : rest_(bytes) {}
  void read(std::span<std::byte> out) override {
    if (out.size() > rest_.size()) throw Ended();
    std::copy_n(rest_.begin(), out.size(), out.begin());
    rest_ = rest_.subspan(out.size());
  }

 private:
  std::span<const std::byte> rest_;
};

// Collects records in memory.
class Records {
 public:
  TreeEncoder& encoder() { return encoder_; }
  std::vector<std::byte>& bytes() { return bytes_; }

  void add(const Hdf5Tree& tree) {
    for (const Hdf5Group& group : tree.groups) encoder_.add_group(group);
    for (const Hdf5Dataset& dataset : tree.datasets) {
      encoder_.add_dataset(dataset);
      if (!dataset.array.bytes.empty()) encoder_.add_elements(dataset.array.bytes);
    }
    for (const Hdf5Text& text : tree.texts) encoder_.add_text(text);
  }
  void add_root() { encoder_.add_group({"", {}}); }
  void add_numbers(const std::string& path, std::vector<std::uint64_t> shape) {
    encoder_.add_dataset({{path, DType::f32, std::move(shape), {}}, {}});
  }

  Hdf5Tree decode(std::uint64_t file_bytes = kFileBytes) const {
    MemoryRecords source(bytes_);
    return decode_tree(source, file_bytes, {});
  }
  testing::Thrown thrown(std::uint64_t file_bytes = kFileBytes) const {
    return testing::thrown_by([&] { decode(file_bytes); });
  }

 private:
  std::vector<std::byte> bytes_;
  TreeEncoder encoder_{
      [this](std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }};
};

void expect_invalid_records(const Records& records, const std::string& problem) {
  const testing::Thrown thrown = records.thrown();
  EXPECT_EQ(thrown.code, ErrorCode::invalid_file);
  EXPECT_THAT(thrown.sentence, HasSubstr("sent invalid records (" + problem));
}

TEST(TreeStream, CarriesATree) {
  const Hdf5Tree tree = testing::every_kind_of_content();
  Records records;

  records.add(tree);
  records.encoder().finish();

  EXPECT_TRUE(testing::are_equal(records.decode(), tree));
}

TEST(TreeStream, CarriesElementsInPieces) {
  const std::vector<std::byte> piece(20, std::byte{7});
  Records records;
  records.add_root();
  records.add_numbers("a", {3, 5});
  for (int i = 0; i < 3; ++i) records.encoder().add_elements(piece);
  records.encoder().finish();

  EXPECT_EQ(records.decode().datasets.at(0).array.bytes, std::vector<std::byte>(60, std::byte{7}));
}

TEST(TreeStream, PassesARefusalOn) {
  Records records;
  records.add_root();
  records.encoder().refuse(ErrorCode::unsupported, "no such system");

  const testing::Thrown thrown = records.thrown();

  EXPECT_EQ(thrown.code, ErrorCode::unsupported);
  EXPECT_EQ(thrown.sentence, "no such system");
}

TEST(TreeStream, ShowsNothingThatATerminalObeys) {
  Records records;
  records.encoder().refuse(ErrorCode::invalid_file, "\x1B[2Jname\x07 \xC2\x9B \xFF");

  EXPECT_EQ(records.thrown().sentence, "?[2Jname? ?? ?");
}

// The length of a larger text was cut to its lower 32 bits, so the record made no sense to its receiver.
TEST(TreeStream, RefusesTextsOfMoreThanFourGibibytes) {
  EXPECT_EQ(record_count(0xFFFF'FFFF), 0xFFFF'FFFFU);
  EXPECT_EQ(testing::thrown_by([] { record_count(0x1'0000'0000); }).code, ErrorCode::unsupported);
}

TEST(TreeStream, RefusesRecordsOutOfOrder) {
  Records no_root;
  no_root.encoder().add_group({"a", {}});
  expect_invalid_records(no_root, "the root does not come first");

  Records unsorted;
  for (const char* path : {"", "b", "a"}) unsorted.encoder().add_group({path, {}});
  expect_invalid_records(unsorted, "groups are not sorted");

  Records twice;
  twice.add_root();
  for (int i = 0; i < 2; ++i) twice.add_numbers("a", {0});
  expect_invalid_records(twice, "datasets are not sorted");

  Records late_group;
  late_group.add_root();
  late_group.add_numbers("a", {0});
  late_group.encoder().add_group({"b", {}});
  expect_invalid_records(late_group, "a group follows a dataset");

  Records unsorted_texts;
  unsorted_texts.add_root();
  for (const char* path : {"b", "a"}) unsorted_texts.encoder().add_text({path, "", {}});
  expect_invalid_records(unsorted_texts, "texts are not sorted");

  Records late_numbers;
  late_numbers.add_root();
  late_numbers.encoder().add_text({"a", "", {}});
  late_numbers.add_numbers("b", {0});
  expect_invalid_records(late_numbers, "a dataset follows a text");

  Records empty;
  empty.encoder().finish();
  expect_invalid_records(empty, "there is no root");
}

TEST(TreeStream, RefusesThatSomethingWasLeftOutOfAWholeTree) {
  Records records;
  records.add_root();
  records.encoder().add_unreadable({"a", "\"a\" is a link"});
  records.encoder().finish();

  expect_invalid_records(records, "an object was left out that was asked for");
}

TEST(TreeStream, RefusesPathsThatNoTreeHas) {
  for (const std::string path : {"", "/a", "a/", "a/../b", "."}) {
    Records records;
    records.add_root();
    records.add_numbers(path, {0});
    expect_invalid_records(records, "a path is not valid");
  }
  Records orphan;
  orphan.add_root();
  orphan.add_numbers("a/b", {0});
  expect_invalid_records(orphan, "a path names a group that is missing");

  Records both;
  both.add_root();
  both.encoder().add_group({"a", {}});
  both.add_numbers("a", {0});
  expect_invalid_records(both, "a dataset is also a group");

  Records text;
  text.add_root();
  text.add_numbers("a", {0});
  text.encoder().add_text({"a", "", {}});
  expect_invalid_records(text, "a text is also a group or an array");
}

TEST(TreeStream, RefusesElementsThatDoNotFit) {
  Records missing;
  missing.add_root();
  missing.add_numbers("a", {2});
  missing.encoder().finish();
  expect_invalid_records(missing, "elements are missing");

  Records too_many;
  too_many.add_root();
  too_many.add_numbers("a", {2});
  too_many.encoder().add_elements(std::vector<std::byte>(9));
  expect_invalid_records(too_many, "more elements come than were announced");

  Records unannounced;
  unannounced.add_root();
  unannounced.encoder().add_elements(std::vector<std::byte>(1));
  expect_invalid_records(unannounced, "more elements come than were announced");

  Records untrue;
  untrue.add_root();
  untrue.encoder().add_dataset({{"a", DType::boolean, {1}, {}}, {}});
  untrue.encoder().add_elements(std::vector<std::byte>(1, std::byte{2}));
  expect_invalid_records(untrue, "a boolean element is neither 0 nor 1");
}

TEST(TreeStream, RefusesSizesThatTheFileCannotHold) {
  Records gigabytes;
  gigabytes.add_root();
  gigabytes.add_numbers("a", {std::uint64_t{2} << 30});
  expect_invalid_records(gigabytes, "datasets are larger than the file can hold");

  Records overflow;
  overflow.add_root();
  overflow.add_numbers("a", {std::uint64_t{1} << 40, std::uint64_t{1} << 40});
  expect_invalid_records(overflow, "a shape is too large for a 64-bit size");

  Records text;
  text.add_root();
  text.encoder().add_text({"a", std::string(2 << 20, 'x'), {}});
  expect_invalid_records(text, "names, attributes and texts are larger than the file can hold");

  Records attribute;
  attribute.encoder().add_group({"", {{"a", std::string(2 << 20, 'x')}}});
  expect_invalid_records(attribute, "names, attributes and texts are larger than the file can hold");
}

// The records claim 2^63 bytes, and none of them arrives.
TEST(TreeStream, AllocatesNothingForFalseClaims) {
  for (std::uint8_t kind = 0; kind <= 6; ++kind) {
    Records records;
    records.add_root();
    records.add_numbers("a", {1000});
    records.bytes().push_back(static_cast<std::byte>(kind));
    for (int i = 0; i < 7; ++i) records.bytes().push_back(std::byte{0});
    records.bytes().push_back(std::byte{0x80});

    EXPECT_EQ(records.thrown().code, ErrorCode::invalid_file) << int{kind};
  }
}

TEST(TreeStream, GivesATreeOrAnErrorForAnyBytes) {
  Records records;
  records.add(testing::every_kind_of_content());
  records.encoder().finish();
  const std::vector<std::byte> whole = records.bytes();
  std::mt19937_64 random(7);
  std::size_t refused = 0;
  constexpr int kRounds = 20'000;
  for (int round = 0; round < kRounds; ++round) {
    records.bytes() = whole;
    for (std::uint64_t i = 0; i <= random() % 3; ++i) {
      records.bytes()[random() % whole.size()] = static_cast<std::byte>(random());
    }
    try {
      records.decode();
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::invalid_file) << error.what();
      ++refused;
    } catch (const Ended&) {
      ++refused;
    }
  }

  EXPECT_GT(refused, kRounds / 10);
}

}  // namespace
}  // namespace holdfast::format
