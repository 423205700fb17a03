// The loop that serves requests also sees deaths and hangs, so nothing that comes through the socket is waited for. A
// peer that is silent or does not read is disconnected, and the loop accepts one peer per turn.
// docs/decisions/live-runs.md

#include "control/control_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <boost/asio/post.hpp>

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

namespace asio = boost::asio;
using Json = nlohmann::json;

constexpr const char* kSocketName = "/control";
constexpr int kBacklog = 64;
// The pause after a failed accept(2), which would fail again at once: no descriptors are left.
constexpr std::chrono::seconds kRest(1);

std::string path_in(const std::string& run_directory) {
  return run_directory + kSocketName;
}

// Sets the umask of the process while it lives, because a socket gets its rights when it is bound.
class OwnerOnly {
 public:
  OwnerOnly() : before_(::umask(0177)) {}
  ~OwnerOnly() { ::umask(before_); }
  OwnerOnly(const OwnerOnly&) = delete;
  OwnerOnly& operator=(const OwnerOnly&) = delete;

 private:
  const mode_t before_;
};

void remove_stale(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return;
  // A socket is left by a watchdog that was killed. The caller holds the run's lock, so no live watchdog listens on
  // it.
  if (!S_ISSOCK(status.st_mode)) {
    throw Error(ErrorCode::already_running, fmt::format("{} exists and is not a socket, so other processes cannot talk "
                                                        "to this run; move it away and start the run again",
                                                        path));
  }
  ::unlink(path.c_str());
}

FileDescriptor listen_in(const std::string& run_directory) {
  const std::string path = path_in(run_directory);
  const ControlAddress address(run_directory);
  remove_stale(path);
  FileDescriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.is_open()) throw system_error(errno, fmt::format("cannot make the socket {}", path));
  const OwnerOnly guard;
  if (::bind(listener.value(), reinterpret_cast<const sockaddr*>(&address.value()), sizeof(sockaddr_un)) != 0) {
    throw system_error(errno, fmt::format("cannot make the socket {}", path));
  }
  if (::listen(listener.value(), kBacklog) != 0) throw system_error(errno, fmt::format("cannot listen at {}", path));
  return listener;
}

// The rights of the socket already ensure this. The check holds even where they were changed.
bool is_owner(int peer) {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (::getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) return false;
  return credentials.uid == 0 || credentials.uid == ::geteuid();
}

}  // namespace

nlohmann::json refusal(const std::string& sentence) {
  return {{"ok", false}, {"error", sentence}};
}

ControlAddress::ControlAddress(const std::string& run_directory) {
  value_.sun_family = AF_UNIX;
  std::string path = path_in(run_directory);
  // An address has room for 107 characters. Through the descriptor of its folder the name is short.
  if (path.size() >= sizeof value_.sun_path) {
    folder_ = FileDescriptor(::open(run_directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder_.is_open()) throw system_error(errno, fmt::format("cannot open the run directory {}", run_directory));
    path = path_in(fmt::format("/proc/self/fd/{}", folder_.value()));
  }
  std::memcpy(value_.sun_path, path.data(), path.size());
}

// One peer: reads a line, waits for the answer, sends it, reads the next line. Lives while an operation for it is
// pending.
class ControlSocket::Client : public std::enable_shared_from_this<Client> {
 public:
  Client(asio::io_context& io, FileDescriptor peer, const Handler& handler, const Limits& limits)
      : handler_(handler), limits_(limits), socket_(io, peer.release()), timer_(io) {}

  void start() { read(); }

  // It waits for a line, so closing the connection loses nothing.
  bool is_idle() const { return !is_answering_; }
  bool has_ended() const { return !socket_.is_open(); }

  void hang_up() {
    boost::system::error_code ignored;
    timer_.cancel();
    socket_.close(ignored);
  }

 private:
  void read() {
    is_answering_ = false;
    // A peer may send several lines at once, so the next one may be here already.
    if (const std::size_t end = input_.find('\n'); end != std::string::npos) return take_line(end);
    if (input_.size() > limits_.line_bytes)
      return answer_and_hang_up(fmt::format("the request is longer than {} bytes", limits_.line_bytes));
    limit_time();
    when_ready(asio::posix::stream_descriptor::wait_read, &Client::receive);
  }

  void receive() {
    char bytes[1024];
    const ssize_t count = ::recv(socket_.native_handle(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return read();
    if (count <= 0) return hang_up();
    input_.append(bytes, static_cast<std::size_t>(count));
    read();
  }

  void take_line(std::size_t end) {
    const std::string line = input_.substr(0, end);
    input_.erase(0, end + 1);
    is_answering_ = true;
    timer_.cancel();  // the handler that answers has a deadline of its own
    const Json request = Json::parse(line, nullptr, false);
    if (!request.is_object()) return answer_and_hang_up("the request is not a JSON object in one line");
    handler_(request, [self = shared_from_this()](const Json& body) { self->answer(body); });
  }

  // An answer may come minutes later, when the peer has hung up.
  void answer(const Json& body) {
    if (has_ended()) return;
    output_ = body.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    sent_ = 0;
    limit_time();
    send();
  }

  void answer_and_hang_up(const std::string& sentence) {
    is_last_ = true;
    is_answering_ = true;
    answer(refusal(sentence));
  }

  // Sends as much as possible at once, because the watchdog may be about to end.
  void send() {
    while (sent_ < output_.size()) {
      const ssize_t count =
          ::send(socket_.native_handle(), output_.data() + sent_, output_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count < 0 && errno == EAGAIN) return when_ready(asio::posix::stream_descriptor::wait_write, &Client::send);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return hang_up();
      sent_ += static_cast<std::size_t>(count);
    }
    output_.clear();
    if (is_last_) return hang_up();
    // Posted, because a peer that sends line after line would otherwise block the others.
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
      // The limit of time may have closed the connection while this was queued.
      if (!self->has_ended()) self->read();
    });
  }

  // The socket keeps the client alive while it waits.
  void when_ready(asio::posix::stream_descriptor::wait_type event, void (Client::*next)()) {
    socket_.async_wait(event, [self = shared_from_this(), next](const boost::system::error_code& error) {
      if (!error) (self.get()->*next)();
    });
  }

  void limit_time() {
    timer_.expires_after(limits_.idle);
    // Weak, because a timer alone must not keep a closed connection alive.
    timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      const auto self = weak.lock();
      if (!error && self != nullptr) self->hang_up();
    });
  }

  const Handler handler_;
  const Limits limits_;
  asio::posix::stream_descriptor socket_;
  asio::steady_timer timer_;
  std::string input_;
  std::string output_;
  std::size_t sent_ = 0;
  bool is_answering_ = false;
  bool is_last_ = false;
};

ControlSocket::ControlSocket(asio::io_context& io, const std::string& run_directory, Handler handler, Limits limits)
    : io_(io),
      path_(path_in(run_directory)),
      handler_(std::move(handler)),
      limits_(limits),
      listener_(io, listen_in(run_directory).release()),
      rest_(io) {
  wait_for_peers();
}

// The name goes first, so that no further peer connects.
ControlSocket::~ControlSocket() {
  ::unlink(path_.c_str());
  for (const std::weak_ptr<Client>& client : clients_) {
    if (const auto live = client.lock()) live->hang_up();
  }
}

void ControlSocket::wait_for_peers() {
  listener_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
    if (!error) accept_one();
  });
}

// One peer per turn of the loop, so that deaths and heartbeats are seen in between when many connect.
void ControlSocket::accept_one() {
  FileDescriptor peer(::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!peer.is_open() && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) return rest();
  if (peer.is_open() && is_owner(peer.value()) && make_room()) {
    const auto client = std::make_shared<Client>(io_, std::move(peer), handler_, limits_);
    clients_.push_back(client);
    client->start();
  }
  wait_for_peers();
}

void ControlSocket::rest() {
  rest_.expires_after(kRest);
  rest_.async_wait([this](const boost::system::error_code& error) {
    if (!error) wait_for_peers();
  });
}

// Closes the oldest connection that waits for no answer. False when all wait for one.
bool ControlSocket::make_room() {
  clients_.remove_if([](const std::weak_ptr<Client>& client) {
    const auto live = client.lock();
    return live == nullptr || live->has_ended();
  });
  if (clients_.size() < limits_.clients) return true;
  // A peer that only idles must not keep others out.
  for (auto client = clients_.begin(); client != clients_.end(); ++client) {
    const auto live = client->lock();
    if (!live->is_idle()) continue;
    live->hang_up();
    clients_.erase(client);
    return true;
  }
  return false;
}

}  // namespace holdfast::recovery
