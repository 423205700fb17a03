#include "links/listen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/base/error.h"
#include "support/thrown.h"

namespace holdfast::recovery {
namespace {

using boost::asio::ip::tcp;
using ::testing::StartsWith;

TEST(Listen, TakesConnectionsOfAnyAddressOfThisHost) {
  boost::asio::io_context io;
  const tcp::acceptor acceptor = listen_on(io, 0, "nobody listens");

  for (const char* address : {"127.0.0.1", "127.0.0.2"}) {
    tcp::socket socket(io);
    boost::system::error_code error;
    socket.connect({boost::asio::ip::make_address(address), acceptor.local_endpoint().port()}, error);
    EXPECT_FALSE(error) << address << ": " << error.message();
  }
}

TEST(Listen, SaysWhatCannotListen) {
  boost::asio::io_context io;
  const tcp::acceptor acceptor = listen_on(io, 0, "the first cannot listen");

  EXPECT_THAT(sentence_thrown_by([&] { listen_on(io, acceptor.local_endpoint().port(), "the second cannot listen"); }),
              StartsWith("the second cannot listen: "));
}

}  // namespace
}  // namespace holdfast::recovery
