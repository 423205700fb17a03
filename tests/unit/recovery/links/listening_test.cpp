#include "links/listening.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "holdfast/base/error.h"
#include "support/thrown.h"

namespace holdfast::recovery {
namespace {

using boost::asio::ip::tcp;
using ::testing::StartsWith;

TEST(Listening, TakesConnectionsOfAnyAddressOfThisHost) {
  boost::asio::io_context io;
  int taken = 0;
  const Listening listening(io, 0, "nobody listens", [&](tcp::socket) { ++taken; });

  for (const char* address : {"127.0.0.1", "127.0.0.2"}) {
    tcp::socket socket(io);
    boost::system::error_code error;
    socket.connect({boost::asio::ip::make_address(address), static_cast<unsigned short>(listening.port())}, error);
    EXPECT_FALSE(error) << address << ": " << error.message();
  }

  while (taken < 2 && io.run_one_for(std::chrono::seconds(20)) > 0) {
  }
  EXPECT_EQ(taken, 2);
}

TEST(Listening, SaysWhatCannotListen) {
  boost::asio::io_context io;
  const Listening first(io, 0, "the first cannot listen", [](tcp::socket) {});

  EXPECT_THAT(sentence_thrown_by([&] { Listening(io, first.port(), "the second cannot listen", [](tcp::socket) {}); }),
              StartsWith("the second cannot listen: "));
}

}  // namespace
}  // namespace holdfast::recovery
