// Archives built byte by byte: every record wrong once. Also what the writer gives, and that the reader takes it
// back.

#include "zip/zip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "unit/exchange/support/zip_builder.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format {
namespace {

using testing::build;
using testing::BuiltArchive;
using testing::BuiltMember;
using testing::bytes_of;
using testing::crc_of;
using testing::deflated;
using testing::Descriptor;
using ::testing::HasSubstr;
using testing::MemberFields;
using testing::read_bytes;
using testing::text_of;
using testing::Thrown;
using testing::thrown_by;

std::vector<ZipMember> read_archive(const std::vector<std::byte>& bytes) {
  MemorySource source("a.zip", bytes);
  return read_zip(source);
}

Thrown refused_archive(const std::vector<std::byte>& bytes) {
  return thrown_by([&] { read_archive(bytes); });
}

Thrown refused_archive(const BuiltArchive& archive) {
  return refused_archive(build(archive));
}

// An archive of one member with one changed field in its directory entry.
BuiltArchive with_entry(const std::function<void(MemberFields&)>& change) {
  return {.members = {{.name = "a", .content = "hello", .change_directory = change}}};
}

// Compressible, and longer than one of zlib's windows.
std::string long_text() {
  std::string text;
  for (std::uint64_t i = 0; text.size() < 3'000'000; ++i) text += std::to_string(i * i % 1009) + " ";
  return text;
}

std::vector<ZipMember> three_members() {
  return {{"b/model.weights.h5", bytes_of("weights")}, {"a.json", {}}, {"\xC3\xA4.npy", bytes_of(long_text())}};
}

void expect_three_members(const std::vector<ZipMember>& members) {
  ASSERT_EQ(members.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(members[i].name, three_members()[i].name);
    EXPECT_TRUE(members[i].bytes == three_members()[i].bytes) << members[i].name;
  }
}

TEST(Zip, GivesBackWhatWasWritten) {
  TemporaryFolder folder;

  write_zip(posix_file_system(), folder / "a.zip", three_members());

  expect_three_members(read_zip(posix_file_system(), folder / "a.zip"));
}

TEST(Zip, CanBeEmpty) {
  TemporaryFolder folder;

  write_zip(posix_file_system(), folder / "a.zip", {});

  EXPECT_TRUE(read_zip(posix_file_system(), folder / "a.zip").empty());
  EXPECT_EQ(read_bytes(folder / "a.zip").size(), 22U);
}

TEST(Zip, HasTheSameBytesEachTime) {
  TemporaryFolder folder;

  write_zip(posix_file_system(), folder / "a.zip", three_members());
  write_zip(posix_file_system(), folder / "b.zip", three_members());

  EXPECT_TRUE(read_bytes(folder / "a.zip") == read_bytes(folder / "b.zip"));
}

TEST(Zip, CountsInSixtyFourBitsWhereItMust) {
  TemporaryFolder folder;
  for (const ZipWriter::Limits limits : {ZipWriter::Limits{.bytes = 8}, {.members = 3}, {.bytes = 0, .members = 0}}) {
    ZipWriter writer(posix_file_system(), folder / "a.zip", limits);
    for (const ZipMember& member : three_members()) {
      writer.add(member.name, std::array<std::span<const std::byte>, 1>{member.bytes});
    }
    writer.commit();

    expect_three_members(read_zip(posix_file_system(), folder / "a.zip"));
  }
}

TEST(Zip, HoldsMoreMembersThanSixteenBitsCount) {
  TemporaryFolder folder;
  ZipWriter writer(posix_file_system(), folder / "a.zip");
  for (int i = 0; i < 65'536; ++i) writer.add(std::to_string(i), {});

  writer.commit();

  EXPECT_EQ(read_zip(posix_file_system(), folder / "a.zip").size(), 65'536U);
}

TEST(Zip, WritesAWholeFileOrNone) {
  TemporaryFolder folder;
  const auto files = watched_file_system(posix_file_system(), [](const FileOperation& operation) {
    if (operation.name == "sync") throw Error(ErrorCode::input_output, "the disk is gone");
  });

  EXPECT_EQ(thrown_by([&] { write_zip(*files, folder / "a.zip", three_members()); }).code, ErrorCode::input_output);

  EXPECT_TRUE(folder.names().empty());
}

TEST(Zip, RefusesToWriteNamesThatItWouldNotRead) {
  TemporaryFolder folder;
  for (const std::string& name : {std::string(), std::string("/a"), std::string("a/../b"), std::string(".."),
                                  std::string("a//b"), std::string("a/"), std::string("a\\b"), std::string("\xFF"),
                                  std::string("a\0b", 3), std::string(65'536, 'a')}) {
    EXPECT_EQ(thrown_by([&] {
                write_zip(posix_file_system(), folder / "a.zip", std::vector<ZipMember>{{name, {}}});
              }).code,
              ErrorCode::invalid_argument);
  }
  EXPECT_EQ(thrown_by([&] {
              write_zip(posix_file_system(), folder / "a.zip", std::vector<ZipMember>{{"a", {}}, {"a", {}}});
            }).code,
            ErrorCode::invalid_argument);
  EXPECT_TRUE(folder.names().empty());
}

TEST(ZipReader, InflatesMembers) {
  const auto members = read_archive(build({.members = {{.name = "long", .content = long_text(), .is_deflated = true},
                                                       {.name = "empty", .content = "", .is_deflated = true},
                                                       {.name = "short", .content = "hello", .is_deflated = true}}}));

  ASSERT_EQ(members.size(), 3U);
  EXPECT_TRUE(text_of(members[0].bytes) == long_text());
  EXPECT_TRUE(members[1].bytes.empty());
  EXPECT_EQ(text_of(members[2].bytes), "hello");
}

TEST(ZipReader, AcceptsEveryFormOfDescriptor) {
  for (const Descriptor descriptor :
       {Descriptor::plain, Descriptor::with_signature, Descriptor::wide, Descriptor::wide_with_signature}) {
    const auto members = read_archive(
        build({.members = {{.name = "a", .content = "hello", .is_deflated = true, .descriptor = descriptor},
                           {.name = "b", .content = "world", .descriptor = descriptor}}}));

    ASSERT_EQ(members.size(), 2U);
    EXPECT_EQ(text_of(members[0].bytes), "hello");
    EXPECT_EQ(text_of(members[1].bytes), "world");
  }
}

TEST(ZipReader, AcceptsZip64RecordsWhetherNeededOrNot) {
  for (const auto end : {BuiltArchive::End::narrow, BuiltArchive::End::wide, BuiltArchive::End::full}) {
    const auto members = read_archive(
        build({.members = {{.name = "a", .content = "hello", .has_zip64 = true}, {.name = "b", .content = "world"}},
               .end = end}));

    ASSERT_EQ(members.size(), 2U);
    EXPECT_EQ(text_of(members[0].bytes), "hello");
  }
}

TEST(ZipReader, AcceptsCommentsGapsAndFolders) {
  const auto members =
      read_archive(build({.members = {{.name = "assets/", .content = ""}, {.name = "a", .content = "hello"}},
                          .gap = "left over",
                          .comment = "a comment"}));

  ASSERT_EQ(members.size(), 1U);
  EXPECT_EQ(members[0].name, "a");
}

TEST(ZipReader, RefusesEveryFileThatIsCutOff) {
  const std::vector<std::byte> bytes =
      build({.members = {{.name = "a", .content = "hello", .is_deflated = true, .has_zip64 = true},
                         {.name = "b", .content = "world", .descriptor = Descriptor::wide}},
             .end = BuiltArchive::End::full});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(refused_archive({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}).code,
              ErrorCode::invalid_file)
        << size;
  }
}

// A flip may hit fields that no reader uses (times, attributes): then the content must be the same.
TEST(ZipReader, NeverReturnsOtherContentAfterABitFlip) {
  std::vector<std::byte> bytes =
      build({.members = {{.name = "a", .content = "hello hello hello", .is_deflated = true, .has_zip64 = true},
                         {.name = "b", .content = "world", .descriptor = Descriptor::with_signature}},
             .end = BuiltArchive::End::full});
  std::size_t refusals = 0;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    try {
      const auto members = read_archive(bytes);
      ASSERT_EQ(members.size(), 2U) << bit;
      EXPECT_EQ(text_of(members[0].bytes), "hello hello hello") << bit;
      EXPECT_EQ(text_of(members[1].bytes), "world") << bit;
    } catch (const Error&) {
      ++refusals;
    }
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
  EXPECT_GT(refusals, 4 * bytes.size());
}

TEST(ZipReader, RefusesNamesThatLeaveTheArchive) {
  for (const std::string& name : {std::string("../a"), std::string("a/../../b"), std::string("/etc/passwd"),
                                  std::string("a\\..\\b"), std::string("./a"), std::string("a//b"), std::string(),
                                  std::string("/"), std::string("a//"), std::string("a\0b", 3), std::string("\xFF")}) {
    const Thrown thrown = refused_archive(BuiltArchive{.members = {{.name = name, .content = "x"}}});

    EXPECT_EQ(thrown.code, ErrorCode::invalid_file) << name;
    EXPECT_THAT(thrown.sentence, HasSubstr("of a member")) << name;
  }
}

TEST(ZipReader, RefusesTwoMembersOfOneName) {
  EXPECT_THAT(
      refused_archive(BuiltArchive{.members = {{.name = "a", .content = "x"}, {.name = "a", .content = "y"}}}).sentence,
      HasSubstr("\"a\" occurs twice"));
}

TEST(ZipReader, RefusesContentThatDoesNotMatchItsCrc) {
  const auto wrong_crc = [](MemberFields& fields) { fields.crc ^= 1; };
  for (const bool is_deflated : {false, true}) {
    EXPECT_THAT(refused_archive(BuiltArchive{.members = {{.name = "a",
                                                          .content = "hello",
                                                          .is_deflated = is_deflated,
                                                          .change_local = wrong_crc,
                                                          .change_directory = wrong_crc}}})
                    .sentence,
                HasSubstr("CRC-32"));
  }
}

TEST(ZipReader, RefusesAStreamOfAnotherLength) {
  for (const int difference : {-1, 1}) {
    const auto change = [&](MemberFields& fields) { fields.size += static_cast<std::uint64_t>(difference); };
    EXPECT_THAT(refused_archive(BuiltArchive{.members = {{.name = "a",
                                                          .content = "hello",
                                                          .is_deflated = true,
                                                          .change_local = change,
                                                          .change_directory = change}}})
                    .sentence,
                HasSubstr("does not decompress"));
  }
}

TEST(ZipReader, RefusesBytesAfterTheEndOfAStream) {
  const std::string data = deflated("hello") + "x";
  const auto change = [&](MemberFields& fields) {
    fields.size = 5;
    fields.crc = crc_of("hello");
    fields.method = 8;
  };

  EXPECT_THAT(
      refused_archive(
          BuiltArchive{.members = {{.name = "a", .content = data, .change_local = change, .change_directory = change}}})
          .sentence,
      HasSubstr("does not decompress"));
}

TEST(ZipReader, RefusesEncryptionAndOtherCompressionAsUnsupported) {
  const auto encrypted = [](MemberFields& fields) { fields.flags |= 1; };
  const auto patched = [](MemberFields& fields) { fields.flags |= 1 << 5; };
  const auto bzip2 = [](MemberFields& fields) { fields.method = 12; };
  for (const std::function<void(MemberFields&)>& change :
       {std::function<void(MemberFields&)>(encrypted), {patched}, {bzip2}}) {
    EXPECT_EQ(
        refused_archive(
            BuiltArchive{
                .members = {{.name = "a", .content = "hello", .change_local = change, .change_directory = change}}})
            .code,
        ErrorCode::unsupported);
  }
}

TEST(ZipReader, RefusesAHeaderUnlikeItsDirectoryEntry) {
  const std::vector<std::function<void(MemberFields&)>> changes = {
      [](MemberFields& fields) { fields.name = "b"; },     [](MemberFields& fields) { fields.flags ^= 1 << 11; },
      [](MemberFields& fields) { fields.method = 8; },     [](MemberFields& fields) { fields.size += 1; },
      [](MemberFields& fields) { fields.stored -= 1; },    [](MemberFields& fields) { fields.crc ^= 1; },
      [](MemberFields& fields) { fields.flags ^= 1 << 3; }};
  for (const auto& change : changes) EXPECT_EQ(refused_archive(with_entry(change)).code, ErrorCode::invalid_file);
}

TEST(ZipReader, RefusesADescriptorUnlikeTheDirectoryEntry) {
  EXPECT_THAT(
      refused_archive(BuiltArchive{.members = {{.name = "a",
                                                .content = "hello",
                                                .descriptor = Descriptor::with_signature,
                                                .change_directory = [](MemberFields& fields) { fields.crc ^= 1; }}}})
          .sentence,
      HasSubstr("data descriptor"));
}

TEST(ZipReader, RefusesMembersOutsideOfTheFile) {
  for (const std::uint64_t offset : {std::uint64_t{60}, std::uint64_t{100'000}, std::uint64_t{0xFFFF'FFFE}}) {
    EXPECT_EQ(refused_archive(BuiltArchive{.members = {{.name = "a", .content = "hello", .offset = offset}}}).code,
              ErrorCode::invalid_file);
  }
  const auto huge = [](MemberFields& fields) { fields.size = fields.stored = 0xFFFF'FFFE; };
  EXPECT_THAT(
      refused_archive(
          BuiltArchive{.members = {{.name = "a", .content = "hello", .change_local = huge, .change_directory = huge}}})
          .sentence,
      HasSubstr("outside the file"));
}

TEST(ZipReader, RefusesMembersThatShareBytes) {
  // Header and content of the second member are the content of the first.
  const std::vector<std::byte> inner = build({.members = {{.name = "b", .content = "hello"}}});
  const std::string header_and_content = text_of(inner).substr(0, 30 + 1 + 5);

  const Thrown thrown = refused_archive(BuiltArchive{
      .members = {{.name = "a", .content = header_and_content}, {.name = "b", .content = "hello", .offset = 31}}});

  EXPECT_THAT(thrown.sentence, HasSubstr("overlap"));
}

// Without the check of the sum, 5000 members of 1 MiB each could claim 1000 times the archive's size.
TEST(ZipReader, RefusesMembersThatExpandTooFar) {
  const auto claim = [](MemberFields& fields) { fields.size = 0xFFFF'FFFE; };
  const Thrown impossible = refused_archive(BuiltArchive{.members = {{.name = "a",
                                                                      .content = std::string(5000, 'x'),
                                                                      .is_deflated = true,
                                                                      .change_local = claim,
                                                                      .change_directory = claim}}});
  EXPECT_THAT(impossible.sentence, HasSubstr("claims more bytes than"));

  // 10 MiB that claim 8 GiB, which deflate could produce.
  const auto large_claim = [](MemberFields& fields) {
    fields.method = 8;
    fields.size = 0xFFFF'FFFF;
    fields.extra = std::string("\1\0\10\0\0\0\0\0\2\0\0\0", 12);
  };
  const Thrown bomb = refused_archive(BuiltArchive{.members = {{.name = "a",
                                                                .content = std::string(10 << 20, 'x'),
                                                                .descriptor = Descriptor::none,
                                                                .change_local =
                                                                    [&](MemberFields& fields) {
                                                                      large_claim(fields);
                                                                      fields.extra =
                                                                          std::string("\1\0\20\0\0\0\0\0\2\0\0\0", 12) +
                                                                          std::string("\0\0\xA0\0\0\0\0\0", 8);
                                                                      fields.stored = 0xFFFF'FFFF;
                                                                    },
                                                                .change_directory = large_claim}}});
  EXPECT_THAT(bomb.sentence, HasSubstr("would grow from 10485760 to 8589934592 bytes"));
}

TEST(ZipReader, RefusesArchivesWhoseMembersExpandTooFarTogether) {
  const auto claim = [](MemberFields& fields) { fields.size = 1'000'000'000, fields.method = 8; };
  BuiltArchive archive;
  for (int i = 0; i < 5; ++i) {
    archive.members.push_back({.name = std::to_string(i),
                               .content = std::string(1'000'000, 'x'),
                               .change_local = claim,
                               .change_directory = claim});
  }

  EXPECT_THAT(refused_archive(archive).sentence, HasSubstr("its members would grow from"));
}

TEST(ZipReader, RefusesADirectoryThatIsNotWhereTheEndSays) {
  const std::vector<BuiltMember> members = {{.name = "a", .content = "hello"}};

  EXPECT_EQ(refused_archive(BuiltArchive{.members = members, .count = 0}).code, ErrorCode::invalid_file);
  EXPECT_EQ(refused_archive(BuiltArchive{.members = members, .count = 2}).code, ErrorCode::invalid_file);
  EXPECT_EQ(refused_archive(BuiltArchive{.members = members, .directory_offset_error = 1}).code,
            ErrorCode::invalid_file);
  EXPECT_EQ(
      refused_archive(BuiltArchive{.members = members, .end = BuiltArchive::End::wide, .directory_offset_error = 1})
          .code,
      ErrorCode::invalid_file);
}

TEST(ZipReader, RefusesTwoZip64Fields) {
  const std::string field("\1\0\0\0", 4);

  EXPECT_THAT(refused_archive(with_entry([&](MemberFields& fields) { fields.extra = field + field; })).sentence,
              HasSubstr("two ZIP64 fields"));
}

TEST(ZipReader, RefusesASecondEndWhoseCommentIsTheFirst) {
  // Readers that search from the front and readers that search from the back would see different archives.
  const std::string inner = text_of(build({.members = {{.name = "b", .content = "other"}}}));
  const std::vector<std::byte> both = build({.members = {{.name = "a", .content = "hello"}}, .comment = inner});

  EXPECT_EQ(refused_archive(both).code, ErrorCode::invalid_file);
}

TEST(ZipReader, SaysWhenAFileIsNotAnArchive) {
  EXPECT_THAT(refused_archive(bytes_of("hello")).sentence, HasSubstr("is not a ZIP archive"));
  EXPECT_THAT(refused_archive(bytes_of("")).sentence, HasSubstr("is not a ZIP archive"));
}

}  // namespace
}  // namespace holdfast::format
