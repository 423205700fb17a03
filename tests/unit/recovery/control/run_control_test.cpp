// The client side, against a socket that a thread of the test serves. Each way in which a run may not answer has its
// own error.

#include "holdfast/recovery/run_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>

#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "control/control_socket.h"
#include "holdfast/base/error.h"
#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

Error failure_of(const std::string& directory, const std::string& request, Deadline deadline) {
  try {
    const std::string answer = ask_run(directory, request, deadline);
    ADD_FAILURE() << "it was answered: " << answer;
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::unsupported, "");
}

// A run that answers on a thread of its own while the object lives.
class LiveRun {
 public:
  LiveRun(const std::string& directory, ControlSocket::Handler handler)
      : control_(io_, directory, std::move(handler), {}), thread_([this] { io_.run(); }) {}
  ~LiveRun() { stop(); }
  LiveRun(const LiveRun&) = delete;
  LiveRun& operator=(const LiveRun&) = delete;

  void stop() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  boost::asio::io_context io_{1};
  ControlSocket control_;
  std::thread thread_;
};

TEST(AskRun, ReturnsTheAnswer) {
  const TemporaryFolder directory;
  const LiveRun run(directory.path(), [](const Json& request, const ControlSocket::Answer& answer) {
    answer({{"heard", request.at("command")}, {"long", std::string(300'000, 'x')}});
  });

  const Json answer = Json::parse(ask_run(directory.path(), R"({"command": "status"})", Deadline::after(60s)));

  EXPECT_EQ(answer.at("heard"), "status");
  EXPECT_EQ(answer.at("long").get<std::string>().size(), 300'000U);
}

TEST(AskRun, ReportsThatNoRunIsLive) {
  const TemporaryFolder directory;

  const Error error = failure_of(directory.path(), "{}", Deadline::after(60s));

  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_THAT(error.what(), HasSubstr("no run is live in " + directory.path()));
  EXPECT_THAT(error.what(), Not(HasSubstr("hosts")));
}

TEST(AskRun, SaysWhichHostAnswersForSeveral) {
  const TemporaryFolder directory;
  std::filesystem::create_directory(directory / "hosts");

  const Error error = failure_of(directory.path(), "{}", Deadline::after(60s));

  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_THAT(error.what(), HasSubstr("a run over several hosts answers only on its first host, so ask there"));
}

TEST(AskRun, ReportsThatTheWatchdogDoesNotAnswer) {
  const TemporaryFolder directory;
  std::vector<ControlSocket::Answer> kept;
  LiveRun run(directory.path(), [&kept](const Json&, const ControlSocket::Answer& answer) { kept.push_back(answer); });

  const Error error = failure_of(directory.path(), "{}", Deadline::after(50ms));
  // An answer must not outlive its io_context.
  run.stop();
  kept.clear();

  EXPECT_EQ(error.code(), ErrorCode::deadline_exceeded);
}

TEST(AskRun, ReportsThatTheWatchdogClosedTheConnection) {
  const TemporaryFolder directory;
  const FileDescriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const ControlAddress address(directory.path());
  ASSERT_EQ(::bind(listener.value(), reinterpret_cast<const sockaddr*>(&address.value()), sizeof(sockaddr_un)), 0);
  ASSERT_EQ(::listen(listener.value(), 1), 0);
  std::jthread hangs_up([&] { const FileDescriptor peer(::accept(listener.value(), nullptr, nullptr)); });

  const Error error = failure_of(directory.path(), "{}", Deadline::after(60s));

  EXPECT_EQ(error.code(), ErrorCode::input_output);
}

TEST(AskRun, RefusesARequestOfTwoLines) {
  EXPECT_EQ(failure_of("/nowhere", "{\n}", Deadline::after(60s)).code(), ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace holdfast::recovery
