// The socket with peers that the test controls byte by byte. Peers may be slow, silent, many or broken; none may hold
// the loop up.

#include "control/control_socket.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <vector>

#include "channel/descriptors.h"
#include "holdfast/base/error.h"
#include "support/comes_true.h"
#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using testing::HasSubstr;

// A peer that the test controls step by step.
class Peer {
 public:
  explicit Peer(const std::string& directory) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const ControlAddress address(directory);
    is_connected_ =
        ::connect(socket_.value(), reinterpret_cast<const sockaddr*>(&address.value()), sizeof(sockaddr_un)) == 0;
  }

  bool is_connected() const { return is_connected_; }
  // Sends as much of the text as the other end takes at once.
  ssize_t send(const std::string& text) const {
    return ::send(socket_.value(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  // What has arrived, possibly nothing yet. No value once the other end has closed the connection.
  std::optional<std::string> receive() const {
    char bytes[4096];
    const ssize_t count = ::recv(socket_.value(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return "";
    if (count <= 0) return std::nullopt;
    return std::string(bytes, static_cast<std::size_t>(count));
  }

 private:
  FileDescriptor socket_;
  bool is_connected_ = false;
};

class ControlSocketTest : public testing::Test {
 protected:
  void open(ControlSocket::Limits limits = {}) {
    control_.reset();
    control_.emplace(
        io_, directory_.path(),
        [this](const Json& request, const ControlSocket::Answer& answer) {
          requests_.push_back(request);
          if (handler_) handler_(request, answer);
        },
        limits);
  }

  void answer_with(const Json& body) {
    handler_ = [body](const Json&, const ControlSocket::Answer& answer) { answer(body); };
  }

  // Lets the socket work until `condition` holds.
  bool comes_true(const std::function<bool()>& condition) {
    const Deadline deadline = Deadline::after(kPatience);
    while (!condition()) {
      if (deadline.has_passed()) return false;
      io_.run_one_for(1ms);
    }
    return true;
  }

  // The line of the answer. When the connection was closed, what arrived before.
  std::string line_for(const Peer& peer) {
    std::string text;
    comes_true([&] {
      const std::optional<std::string> more = peer.receive();
      text += more.value_or("");
      return !more || text.ends_with('\n');
    });
    return text;
  }

  bool is_hung_up_on(const Peer& peer) {
    return comes_true([&] { return !peer.receive(); });
  }

  std::size_t open_descriptors() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
  }

  const TemporaryFolder directory_;
  boost::asio::io_context io_{1};
  std::function<void(const Json&, const ControlSocket::Answer&)> handler_;
  std::vector<Json> requests_;
  std::optional<ControlSocket> control_;  // last: it uses the other members
};

TEST_F(ControlSocketTest, AnswersLineForLine) {
  open();
  handler_ = [](const Json& request, const ControlSocket::Answer& answer) {
    answer({{"twice", 2 * request.at("n").get<int>()}});
  };
  const Peer peer(directory_.path());

  peer.send("{\"n\": 1}\n{\"n\": 2}\n");

  std::string both = line_for(peer);
  while (both.size() < 24) both += line_for(peer);
  EXPECT_EQ(both, "{\"twice\":2}\n{\"twice\":4}\n");
}

TEST_F(ControlSocketTest, IsForItsOwnerOnly) {
  const mode_t before = ::umask(0);
  open();
  ::umask(before);

  struct stat status {};
  ASSERT_EQ(::stat((directory_ / "control").c_str(), &status), 0);
  EXPECT_TRUE(S_ISSOCK(status.st_mode));
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(ControlSocketTest, RestoresTheUmaskOfTheProcess) {
  const mode_t before = ::umask(0123);
  open();

  EXPECT_EQ(::umask(before), 0123U);
}

TEST_F(ControlSocketTest, ReplacesTheSocketOfAWatchdogThatDied) {
  {
    const ControlAddress address(directory_.path());
    const FileDescriptor dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(dead.value(), reinterpret_cast<const sockaddr*>(&address.value()), sizeof(sockaddr_un)), 0);
  }
  ASSERT_TRUE(std::filesystem::exists(directory_ / "control"));

  open();
  answer_with({{"ok", true}});
  const Peer peer(directory_.path());
  peer.send("{}\n");

  EXPECT_EQ(line_for(peer), "{\"ok\":true}\n");
}

TEST_F(ControlSocketTest, LeavesAFileOfThatNameAlone) {
  std::ofstream(directory_ / "control") << "mine";

  try {
    open();
    FAIL() << "the file was replaced";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(directory_ / "control"));
  }
  EXPECT_TRUE(std::filesystem::is_regular_file(directory_ / "control"));
}

TEST_F(ControlSocketTest, RemovesItsSocketAndClosesConnectionsWhenItIsDestroyed) {
  open();
  const Peer peer(directory_.path());
  answer_with({});
  peer.send("{}\n");
  line_for(peer);

  control_.reset();

  EXPECT_FALSE(std::filesystem::exists(directory_ / "control"));
  EXPECT_TRUE(is_hung_up_on(peer));
}

TEST_F(ControlSocketTest, WorksInAFolderWhosePathIsTooLongForASocket) {
  const std::string folder = directory_.path() + "/" + std::string(200, 'x');
  std::filesystem::create_directories(folder);
  control_.emplace(
      io_, folder,
      [](const Json&, const ControlSocket::Answer& answer) {
        answer({{"ok", true}});
      },
      ControlSocket::Limits{});
  const Peer peer(folder);

  peer.send("{}\n");

  EXPECT_EQ(line_for(peer), "{\"ok\":true}\n");
  control_.reset();
  EXPECT_FALSE(std::filesystem::exists(folder + "/control"));
}

TEST_F(ControlSocketTest, AnswersGarbageWithASentenceAndClosesTheConnection) {
  open();
  for (const std::string garbage : {"\n", "garbage\n", "[1, 2]\n", "{\"command\": \n", "\x01\xff\xfe\n", "null\n"}) {
    const Peer peer(directory_.path());

    peer.send(garbage);

    EXPECT_THAT(line_for(peer), HasSubstr("not a JSON object"));
    EXPECT_TRUE(is_hung_up_on(peer));
  }
  EXPECT_TRUE(requests_.empty());
}

TEST_F(ControlSocketTest, RefusesALineThatDoesNotEnd) {
  open({.line_bytes = 100});
  const Peer peer(directory_.path());

  peer.send(std::string(5000, ' '));

  EXPECT_THAT(line_for(peer), HasSubstr("longer than 100 bytes"));
  EXPECT_TRUE(requests_.empty());
}

TEST_F(ControlSocketTest, ClosesAConnectionThatSendsOnlyHalfALine) {
  open({.idle = 50ms});
  const Peer peer(directory_.path());

  peer.send("{\"command\"");

  EXPECT_TRUE(is_hung_up_on(peer));
  EXPECT_TRUE(requests_.empty());
}

TEST_F(ControlSocketTest, TakesALineThatComesInPieces) {
  open();
  answer_with({{"ok", true}});
  const Peer peer(directory_.path());

  for (const char c : std::string("{\"command\": \"status\"}\n")) {
    peer.send(std::string(1, c));
    io_.poll();
  }

  EXPECT_EQ(line_for(peer), "{\"ok\":true}\n");
}

// The answers are larger than the socket's buffer.
TEST_F(ControlSocketTest, ClosesAConnectionWhosePeerNeverReads) {
  open({.idle = 50ms});
  answer_with({{"text", std::string(1'000'000, 'x')}});
  std::optional<Peer> peer;

  // On a busy machine a connection may be closed before its line was read.
  ASSERT_TRUE(comes_true([&] {
    if (!requests_.empty()) return true;
    if (!peer || !peer->receive()) peer.emplace(directory_.path()).send("{}\n");
    return false;
  }));

  EXPECT_TRUE(comes_true([&] { return peer->send("{}\n") < 0 && errno == EPIPE; }));
}

TEST_F(ControlSocketTest, ReadsNoFurtherRequestBeforeTheAnswer) {
  open();
  std::vector<ControlSocket::Answer> open_answers;
  handler_ = [&](const Json&, const ControlSocket::Answer& answer) { open_answers.push_back(answer); };
  const Peer peer(directory_.path());
  peer.send("{\"n\":1}\n{\"n\":2}\n");
  ASSERT_TRUE(comes_true([&] { return open_answers.size() == 1; }));
  io_.poll();
  ASSERT_EQ(requests_.size(), 1U);

  open_answers[0]({{"ok", true}});

  EXPECT_TRUE(comes_true([&] { return requests_.size() == 2; }));
}

TEST_F(ControlSocketTest, ForgetsThePeerThatLeftBeforeItsAnswer) {
  open();
  ControlSocket::Answer late;
  handler_ = [&](const Json&, const ControlSocket::Answer& answer) { late = answer; };
  {
    const Peer peer(directory_.path());
    peer.send("{}\n");
    ASSERT_TRUE(comes_true([&] { return late != nullptr; }));
  }

  late({{"ok", true}});
  control_.reset();
  late({{"ok", true}});
}

TEST_F(ControlSocketTest, ServesOnePeerAmongAHundredSilentOnes) {
  open({.clients = 8});
  answer_with({{"ok", true}});
  const std::size_t before = open_descriptors();
  std::vector<Peer> crowd;
  for (int i = 0; i < 100; ++i) {
    crowd.emplace_back(directory_.path());
    ASSERT_TRUE(crowd.back().is_connected());
    io_.poll();
  }

  const Peer honest(directory_.path());
  honest.send("{}\n");

  EXPECT_EQ(line_for(honest), "{\"ok\":true}\n");
  EXPECT_LE(open_descriptors(), before + 101 + 8);
}

TEST_F(ControlSocketTest, RefusesNewPeersWhileAllWaitForAnswers) {
  open({.clients = 2});
  std::vector<ControlSocket::Answer> open_answers;
  handler_ = [&](const Json&, const ControlSocket::Answer& answer) { open_answers.push_back(answer); };
  const Peer first(directory_.path());
  const Peer second(directory_.path());
  first.send("{}\n");
  second.send("{}\n");
  ASSERT_TRUE(comes_true([&] { return open_answers.size() == 2; }));

  const Peer third(directory_.path());

  EXPECT_TRUE(is_hung_up_on(third));
  open_answers[0]({{"ok", true}});
  EXPECT_EQ(line_for(first), "{\"ok\":true}\n");
}

TEST_F(ControlSocketTest, KeepsNoDescriptorsOfPeersThatLeft) {
  open();
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 200; ++i) {
    const Peer peer(directory_.path());
    peer.send("half a line");
    io_.poll();
  }

  EXPECT_TRUE(comes_true([&] { return open_descriptors() <= before; }));
}

}  // namespace
}  // namespace holdfast::recovery
