// What may be found under the name of a file instead of a file. Without the check, a FIFO would hang its reader.

#include "holdfast/base/regular_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

class RegularFile : public testing::Test {
 protected:
  RegularFile() { std::ofstream(folder_ / "file") << "content"; }

  std::string refusal_of(const std::string& name, int flags = O_RDONLY) const {
    try {
      open_regular_file(folder_ / name, flags, "open " + name);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_file);
      return error.what();
    }
    return "opened";
  }

  TemporaryFolder folder_;
};

TEST_F(RegularFile, IsOpenedAlsoThroughALink) {
  std::filesystem::create_symlink("file", folder_ / "link");

  EXPECT_TRUE(open_regular_file(folder_ / "file", O_RDONLY, "open it").is_open());
  EXPECT_TRUE(open_regular_file(folder_ / "link", O_RDONLY, "open it").is_open());
}

TEST_F(RegularFile, IsNotALinkIfLinksAreNotFollowed) {
  std::filesystem::create_symlink("file", folder_ / "link");

  EXPECT_THAT(refusal_of("link", O_RDWR | O_NOFOLLOW), HasSubstr("it is a symbolic link, not a regular file"));
}

// A reader of a FIFO waited for a writer that never came.
TEST_F(RegularFile, IsNotAFifo) {
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);

  EXPECT_EQ(refusal_of("fifo"),
            "cannot open fifo: it is a FIFO, not a regular file; give another path, or move it away");
  EXPECT_THAT(refusal_of("fifo", O_RDWR), HasSubstr("a FIFO"));
}

TEST_F(RegularFile, IsNotAFolderADeviceOrALoopOfLinks) {
  std::filesystem::create_directory(folder_ / "folder");
  std::filesystem::create_symlink("/dev/zero", folder_ / "zeros");
  std::filesystem::create_symlink("loop", folder_ / "loop");

  EXPECT_THAT(refusal_of("folder"), HasSubstr("it is a folder"));
  EXPECT_THAT(refusal_of("zeros"), HasSubstr("it is a device"));
  EXPECT_THAT(refusal_of("loop"), HasSubstr("it is a loop of symbolic links"));
}

TEST_F(RegularFile, IsNotASocket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder_ / "socket";
  ASSERT_LT(path.size(), sizeof address.sun_path);
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(::bind(socket.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);

  EXPECT_THAT(refusal_of("socket"), HasSubstr("a socket or a device"));
}

TEST_F(RegularFile, ThatIsMissingIsNotFound) {
  try {
    open_regular_file(folder_ / "none", O_RDONLY, "open none");
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_STREQ(error.what(),
                 "cannot open none: No such file or directory; check the path, which counts from the current folder if "
                 "it is relative");
  }
}

}  // namespace
}  // namespace holdfast
