// Both ends of a channel in one process. The tests cover long messages, full buffers and broken packets, which a real
// run meets only rarely.

#include "channel/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "holdfast/base/error.h"
#include "support/comes_true.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;

Message text_message(std::size_t bytes) {
  return {.body = {{"text", std::string(bytes, 'x')}}};
}

std::size_t text_bytes(const std::optional<Message>& message) {
  return message.value().body.at("text").get<std::string>().size();
}

ErrorCode code_of_send(const Channel& channel, const Message& message) {
  try {
    channel.send(message, Deadline::after(0s));
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "the message was sent";
  return ErrorCode::unsupported;
}

TEST(Channel, KeepsMessagesWholeAndInOrder) {
  auto [a, b] = Channel::create();

  for (const std::size_t bytes : {0U, 1U, 100U}) a.send(text_message(bytes), Deadline::after(kPatience));

  EXPECT_EQ(text_bytes(b.try_receive()), 0U);
  EXPECT_EQ(text_bytes(b.try_receive()), 1U);
  EXPECT_EQ(text_bytes(b.try_receive()), 100U);
  EXPECT_FALSE(b.try_receive().has_value());
  EXPECT_FALSE(b.is_closed());
}

TEST(Channel, CarriesMessagesOfAnyLength) {
  auto [a, b] = Channel::create();

  // Around the longest text in a packet, around the size of a socket's buffer, and far beyond.
  for (const std::size_t bytes : {32U * 1024 - 20, 32U * 1024, 64U * 1024, 200U * 1024, 2'000'000U}) {
    a.send(text_message(bytes), Deadline::after(kPatience));
    EXPECT_EQ(text_bytes(b.try_receive()), bytes);
  }
}

TEST(Channel, RefusesAMessageOverItsLimit) {
  auto [a, b] = Channel::create();

  EXPECT_EQ(code_of_send(a, text_message(Channel::kMaxMessageBytes)), ErrorCode::invalid_argument);
}

TEST(Channel, CarriesDescriptorsInOrder) {
  auto [a, b] = Channel::create();
  for (const std::size_t bytes : {10U, 100'000U}) {
    Message message = text_message(bytes);
    for (std::size_t size = 1; size <= 100; ++size) {
      const SharedMemory memory = SharedMemory::create("test", size);
      message.descriptors.emplace_back(::dup(memory.descriptor()));
    }

    a.send(message, Deadline::after(kPatience));
    const std::optional<Message> received = b.try_receive();

    ASSERT_TRUE(received.has_value());
    ASSERT_EQ(received->descriptors.size(), 100U);
    EXPECT_EQ(::lseek(received->descriptors[0].value(), 0, SEEK_END), 1);
    EXPECT_EQ(::lseek(received->descriptors[99].value(), 0, SEEK_END), 100);
    EXPECT_NE(::fcntl(received->descriptors[0].value(), F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST(Channel, DeliversWhatWasSentBeforeTheEnd) {
  auto [a, b] = Channel::create();
  a.send(text_message(3), Deadline::after(kPatience));
  a.shut_down();

  EXPECT_EQ(text_bytes(b.try_receive()), 3U);
  EXPECT_FALSE(b.try_receive().has_value());
  EXPECT_TRUE(b.is_closed());
}

TEST(Channel, ReportsThatThePeerIsGone) {
  auto [a, b] = Channel::create();
  { const Channel gone = std::move(b); }

  EXPECT_EQ(code_of_send(a, text_message(3)), ErrorCode::unavailable);
}

TEST(Channel, DoesNotWaitForAPeerThatDoesNotRead) {
  auto [a, b] = Channel::create();

  // A socket's buffer is finite: at some message it is full.
  const auto fill = [&a = a] {
    for (int i = 0; i < 100'000; ++i) a.send(text_message(30'000), Deadline::after(0s));
  };

  EXPECT_THROW(
      {
        try {
          fill();
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::deadline_exceeded);
          throw;
        }
      },
      Error);
}

TEST(Channel, WakesAWaiterWhenAMessageComes) {
  auto [a, b] = Channel::create();
  std::thread sender([&a = a] { a.send(text_message(5), Deadline::after(kPatience)); });

  b.wait_until_readable(Deadline::after(kPatience));

  EXPECT_EQ(text_bytes(b.try_receive()), 5U);
  sender.join();
}

TEST(Channel, WakesAWaiterWhenItsOwnEndIsShutDown) {
  auto [a, b] = Channel::create();
  std::thread closer([&b = b] { b.shut_down(); });

  b.wait_until_readable(Deadline::after(kPatience));

  EXPECT_FALSE(b.try_receive().has_value());
  EXPECT_TRUE(b.is_closed());
  closer.join();
}

TEST(Channel, RefusesPacketsThatAreNotMessages) {
  auto [a, b] = Channel::create();
  const std::string not_json = std::string(16, '\0') + "no JSON";
  // Without its last byte, a header whose length plus the header's size wraps around to the packet's 15 bytes.
  const std::string wraps_around = std::string(8, '\xff') + std::string(7, '\0');
  for (const std::string& packet :
       {std::string("x"), std::string(16, '\1'), wraps_around, not_json, std::string(100'000, 'x')}) {
    ASSERT_EQ(::send(a.descriptor(), packet.data(), packet.size(), 0), static_cast<ssize_t>(packet.size()));
    EXPECT_THROW(b.try_receive(), Error);
  }
}

}  // namespace
}  // namespace holdfast::recovery
