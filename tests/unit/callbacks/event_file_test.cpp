// The bytes of event files, compared with those of TensorBoard's own writer.

#include "callbacks/event_file.h"

#include <gtest/gtest.h>

#include "support/disks/memory_file_system.h"
#include "support/text_bytes.h"

namespace holdfast {
namespace {

std::string hex(const std::string& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

std::string bytes_of_hex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::string point(std::int64_t step, const std::string& summary) {
  return summary_record(5, step, summary);
}

EventPoints shown(const std::map<std::string, std::string>& texts) {
  MemoryFileSystem files;
  files.create_folders("/logs");
  for (const auto& [name, text] : texts) files.create("/logs/" + name)->write_at(0, bytes_of(text));
  return shown_points(files, "/logs");
}

}  // namespace

TEST(EventFile, HasTheBytesThatTensorBoardItselfWrites) {
  // From tensorboard 2.21.0: RecordWriter(file).write(Event(...).SerializeToString()), with the same values.
  EXPECT_EQ(hex(version_record(1.5)),
            "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
  EXPECT_EQ(hex(start_record(1700000000.25, 300)), "100000000000000095fbfe180900001040fc54d94110ac023a0208016b3b88f1");
  EXPECT_EQ(
      hex(summary_record(2, 3, scalar_summary({{"epoch_loss", 0.5F}, {"epoch_accuracy", 0.25F}}))),
      "3700000000000000e7e8ca5909000000000000004010032a2a0a110a0a65706f63685f6c6f7373150000003f0a150a0e65706f63685f"
      "6163637572616379150000803e80aa3417");
}

TEST(EventFile, ShowsThePointsOfAllFilesInTheOrderOfTheirNames) {
  const std::string head = version_record(1);

  EXPECT_EQ(shown({{"events.out.tfevents.2", head + point(1, "new") + point(2, "c")},
                   {"events.out.tfevents.1", head + point(0, "a") + point(1, "b")},
                   {"notes.txt", point(7, "none")}}),
            (EventPoints{{0, "a"}, {1, "new"}, {2, "c"}}));
  MemoryFileSystem empty;
  EXPECT_EQ(shown_points(empty, "/nowhere"), EventPoints{});
}

TEST(EventFile, TakesBackThePointsThatAStartNames) {
  const std::string before = point(0, "a") + point(1, "b") + point(2, "c");

  EXPECT_EQ(shown({{"tfevents.1", before}, {"tfevents.2", start_record(6, 1)}}), (EventPoints{{0, "a"}}));
  EXPECT_EQ(shown({{"tfevents.1", before}, {"tfevents.2", start_record(6, 3)}}).size(), 3U);
}

TEST(EventFile, ReadsATornOrDamagedFileUpToTheDamage) {
  const std::string whole = point(0, "a");
  const std::string more = point(1, "b");
  for (std::size_t length = 0; length < more.size(); ++length) {
    EXPECT_EQ(shown({{"tfevents", whole + more.substr(0, length)}}), (EventPoints{{0, "a"}})) << length;
  }
  for (std::size_t context = 0; context < more.size(); ++context) {
    std::string damaged = more;
    damaged[context] = static_cast<char>(damaged[context] ^ 16);
    EXPECT_EQ(shown({{"tfevents", whole + damaged + point(2, "c")}}), (EventPoints{{0, "a"}})) << context;
  }
}

TEST(EventFile, SkipsTheFieldsOfOtherWriters) {
  const std::string graph = bytes_of_hex("100000000000000095fbfe18090000000000000040100422036162633990d924");

  EXPECT_EQ(shown({{"tfevents", point(0, "a") + graph + point(1, "b")}}), (EventPoints{{0, "a"}, {1, "b"}}));
}

// TensorBoard reads the files of a folder in the order of their names, and never goes back.
TEST(EventFile, NamesEachFileAfterAllOthersWhateverTheClockSays) {
  MemoryFileSystem files;
  files.create_folders("/logs");
  EXPECT_EQ(last_event_file(files, "/logs"), "");

  const std::string first = next_event_file(files, "/logs", 1'700'000'000);
  EXPECT_EQ(first, "events.out.tfevents.1700000000.holdfast");
  files.create("/logs/" + first);
  files.create("/logs/events.out.tfevents.1700000005.host.17.0.v2");

  for (const std::int64_t seconds : {1'600'000'000, 1'700'000'005}) {
    EXPECT_EQ(next_event_file(files, "/logs", seconds), "events.out.tfevents.1700000006.holdfast");
  }
  EXPECT_EQ(last_event_file(files, "/logs"), "events.out.tfevents.1700000005.host.17.0.v2");
}

}  // namespace holdfast
