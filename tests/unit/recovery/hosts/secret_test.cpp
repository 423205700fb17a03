// Files that hold a secret, and files that must not be taken for one.

#include "hosts/secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SecretFile : public ::testing::Test {
 protected:
  std::string with(const std::string& content, mode_t mode = 0600) {
    const std::string path = folder_ / "secret";
    std::filesystem::remove(path);
    std::ofstream(path, std::ios::binary) << content;
    ::chmod(path.c_str(), mode);
    return path;
  }

  static std::string complaint(const std::string& path, ErrorCode code) {
    try {
      read_secret(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return "no complaint";
  }

  const TemporaryFolder folder_;
};

TEST_F(SecretFile, HasBytesOrDigits) {
  std::string raw;
  std::string digits;
  for (int i = 0; i < 32; ++i) {
    raw += static_cast<char>(0xA0 + i);
    digits += "0123456789abcdef"[(0xA0 + i) / 16];
    digits += "0123456789ABCDEF"[(0xA0 + i) % 16];
  }

  const Secret secret = read_secret(with(raw));

  EXPECT_EQ(secret.bytes[0], 0xA0);
  EXPECT_EQ(secret.bytes[31], 0xBF);
  EXPECT_EQ(read_secret(with(digits)).bytes, secret.bytes);
  EXPECT_EQ(read_secret(with(digits + "\n", 0400)).bytes, secret.bytes);
}

TEST_F(SecretFile, IsRefusedWithAnotherSize) {
  for (const std::size_t size : {0U, 31U, 33U, 63U, 64U, 65U, 66U, 10'000U}) {
    EXPECT_THAT(complaint(with(std::string(size, 'x')), ErrorCode::invalid_argument),
                AllOf(HasSubstr("must have 32 bytes, or 64"), HasSubstr("/dev/urandom")))
        << size;
  }
}

TEST_F(SecretFile, IsRefusedWhenOthersMayUseIt) {
  for (const mode_t mode : {0640U, 0604U, 0620U, 0602U, 0666U}) {
    EXPECT_THAT(complaint(with(std::string(32, 'x'), mode), ErrorCode::refused), HasSubstr("chmod 600")) << mode;
  }
}

TEST_F(SecretFile, IsRefusedWhenItIsMissingOrNotAFile) {
  EXPECT_THAT(complaint(folder_ / "none", ErrorCode::not_found), HasSubstr("there is no secret file"));
  EXPECT_THAT(complaint(folder_.path(), ErrorCode::refused), HasSubstr("is not a file"));
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(complaint(pipe, ErrorCode::refused), HasSubstr("is not a file"));
}

}  // namespace
}  // namespace holdfast::recovery
