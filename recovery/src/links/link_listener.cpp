// A stranger gets no answer here, and costs a descriptor for some seconds. When there are too many, the oldest is
// closed: an agent whose connection that was dials again (links/link_dialer.cpp). docs/decisions/host-connections.md

#include "links/link_listener.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <list>
#include <map>
#include <optional>

#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>

#include "holdfast/base/error.h"
#include "links/listening.h"

namespace holdfast::recovery {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr std::size_t kMostVisitors = 256;
// For a connection to be expected.
constexpr std::chrono::seconds kVisitTime(5);

// A connection that is not matched yet.
struct Visitor {
  explicit Visitor(tcp::socket connected) : socket(std::move(connected)), timer(socket.get_executor()) {}

  tcp::socket socket;
  asio::steady_timer timer;
  std::array<std::uint8_t, LinkToken::kBytes> bytes{};
  std::optional<LinkToken> token{};
  std::uint8_t more = 0;  // nothing may follow the token before it was answered
};

}  // namespace

struct LinkListener::Core : std::enable_shared_from_this<Core> {
  using Visitors = std::list<std::shared_ptr<Visitor>>;

  std::map<LinkToken, OnLink> expected{};
  Visitors visitors{};  // the oldest first

  // The handler is called as (Core&, visitor) while both are there, and the visitor is not matched.
  template <class Handler>
  auto of_visitor(const std::shared_ptr<Visitor>& visitor, Handler handler) {
    return [weak = weak_from_this(), weak_visitor = std::weak_ptr<Visitor>(visitor), handler](
               const boost::system::error_code& error, auto...) {
      const auto self = weak.lock();
      const auto there = weak_visitor.lock();
      if (self != nullptr && there != nullptr) handler(*self, there, error);
    };
  }

  void meet(const std::shared_ptr<Visitor>& visitor) {
    if (visitors.size() >= kMostVisitors) visitors.pop_front();
    visitors.push_back(visitor);
    visitor->timer.expires_after(kVisitTime);
    visitor->timer.async_wait(of_visitor(visitor, [](Core& self, const auto& late, const auto& error) {
      if (!error) self.visitors.remove(late);
    }));
    asio::async_read(visitor->socket, asio::buffer(visitor->bytes),
                     of_visitor(visitor, [](Core& self, const auto& there, const auto& error) {
                       if (error) {
                         self.visitors.remove(there);
                         return;
                       }
                       there->token = LinkToken::from(there->bytes);
                       self.watch(there);
                       self.match_waiting(*there->token);
                     }));
  }

  // An agent that has given its connection up must not hold a place, nor be matched.
  void watch(const std::shared_ptr<Visitor>& visitor) {
    asio::async_read(visitor->socket, asio::buffer(&visitor->more, 1),
                     of_visitor(visitor, [](Core& self, const auto& there, const auto& error) {
                       // Aborted is the read of a visitor that was matched: its socket was released.
                       if (error != asio::error::operation_aborted) self.visitors.remove(there);
                     }));
  }

  // Without effect on what is expected where the visitor is gone.
  void match(std::shared_ptr<Visitor> visitor) {
    visitors.remove(visitor);
    boost::system::error_code error;
    FileDescriptor socket(visitor->socket.release(error));
    visitor->timer.cancel();
    // A new connection has room for a byte, so this does not wait.
    if (error || ::send(socket.value(), &kLinkTaken, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) return;
    auto taken = expected.extract(*visitor->token);
    taken.mapped()(std::move(socket));
  }

  // The connection or the call of expect() may come first. Each of the two looks for the other. An agent that has
  // dialed again waits with its second connection, and the first one may be closed.
  void match_waiting(const LinkToken& token) {
    while (expected.contains(token)) {
      const auto found =
          std::find_if(visitors.begin(), visitors.end(), [&](const auto& visitor) { return visitor->token == token; });
      if (found == visitors.end()) return;
      match(*found);
    }
  }
};

LinkListener::LinkListener(asio::io_context& io)
    : io_(io),
      core_(std::make_shared<Core>()),
      listening_(io, 0, "this host cannot listen on a free port for connections of other hosts",
                 [core = std::weak_ptr<Core>(core_)](tcp::socket socket) {
                   core.lock()->meet(std::make_shared<Visitor>(std::move(socket)));
                 }) {}

LinkListener::~LinkListener() {
  core_->visitors.clear();
}

void LinkListener::expect(const LinkToken& token, OnLink on_link) {
  core_->expected.insert_or_assign(token, std::move(on_link));
  // Later, so that the caller is not called within its call.
  asio::post(io_, [weak = std::weak_ptr<Core>(core_), token] {
    if (const auto core = weak.lock()) core->match_waiting(token);
  });
}

void LinkListener::forget(const LinkToken& token) {
  core_->expected.erase(token);
}

int LinkListener::waiting() const {
  return static_cast<int>(std::count_if(core_->visitors.begin(), core_->visitors.end(),
                                        [](const auto& visitor) { return visitor->token.has_value(); }));
}

}  // namespace holdfast::recovery
