// A stranger that opens many connections drives out the oldest of them, which is most likely its own: an agent needs
// milliseconds. It never drives out an agent that was taken. docs/decisions/host-connections.md

#include "hosts/agent_listener.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// Each keeps a descriptor and the state of a handshake.
constexpr std::size_t kMostStrangers = 32;

}  // namespace

struct AgentListener::Core : std::enable_shared_from_this<Core> {
  Core(std::shared_ptr<asio::ssl::context> context, Introduction own, const AgentConnection::Limits& connection_limits,
       Handlers given)
      : tls(std::move(context)), ours(std::move(own)), limits(connection_limits), handlers(std::move(given)) {}

  const std::shared_ptr<asio::ssl::context> tls;
  const Introduction ours;
  const AgentConnection::Limits limits;
  const Handlers handlers;
  std::list<std::shared_ptr<AgentConnection>> strangers{};  // the oldest first

  void take(tcp::socket socket) {
    if (strangers.size() >= kMostStrangers) {
      const std::shared_ptr<AgentConnection> oldest = strangers.front();
      strangers.pop_front();
      // This calls no handler, so the refusal is told here.
      oldest->close();
      refuse_peer(*oldest, fmt::format("{} newer connections had not introduced themselves either", kMostStrangers));
    }
    // Both handlers hold weak pointers: the listener and the stranger may go in either order.
    auto connection = AgentConnection::start(AgentConnection::Side::head, std::move(socket), tls, limits, {});
    strangers.push_back(connection);
    std::weak_ptr<AgentConnection> weak_connection = connection;
    connection->set_handlers({.on_message =
                                  [weak = weak_from_this(), weak_connection](const nlohmann::json& message) {
                                    const auto self = weak.lock();
                                    const auto stranger = weak_connection.lock();
                                    if (self != nullptr && stranger != nullptr) self->meet(stranger, message);
                                  },
                              .on_closed =
                                  [weak = weak_from_this(), weak_connection](const std::string& why) {
                                    const auto self = weak.lock();
                                    const auto stranger = weak_connection.lock();
                                    if (self == nullptr || stranger == nullptr) return;
                                    self->strangers.remove(stranger);
                                    self->refuse_peer(*stranger, why);
                                  }});
  }

  void meet(const std::shared_ptr<AgentConnection>& stranger, const nlohmann::json& message) {
    const Introduction theirs = parse_introduction(message);
    std::string why = difference(ours, theirs);
    if (why.empty() && handlers.why_not) why = handlers.why_not(theirs);
    // From here on it does not count as a stranger, which a newer one could drive out.
    strangers.remove(stranger);
    if (!why.empty()) {
      // The answer has to arrive: an agent whose connection merely ends dials again.
      stranger->send({{"kind", kSentHome}, {"why", why}});
      stranger->close_when_sent();
      return refuse_peer(*stranger, why);
    }
    stranger->send({{"kind", kTaken}});
    // These handlers are for a stranger. The new owner sets its own.
    stranger->set_handlers({});
    stranger->open();
    if (handlers.on_agent) handlers.on_agent(theirs, stranger);
  }

  void refuse_peer(const AgentConnection& peer, const std::string& why) const {
    if (handlers.on_refused) handlers.on_refused(peer.peer(), why);
  }
};

AgentListener::AgentListener(asio::io_context& io, int port, std::shared_ptr<asio::ssl::context> tls, Introduction ours,
                             const AgentConnection::Limits& limits, Handlers handlers)
    : core_(std::make_shared<Core>(std::move(tls), std::move(ours), limits, std::move(handlers))) {
  // The pointer is never empty there: `listening_` goes before `core_`, and calls nothing afterwards.
  const auto take = [core = std::weak_ptr<Core>(core_)](tcp::socket socket) { core.lock()->take(std::move(socket)); };
  try {
    listening_.emplace(io, port, fmt::format("the head cannot listen on port {} for the other hosts", port), take);
  } catch (const Error& error) {
    // The port is that of an option which all hosts were given, so the sentence names the option.
    throw Error(error.code(),
                fmt::format("{}; give another port with --head HOST:PORT, the same on all hosts", error.what()));
  }
}

AgentListener::~AgentListener() {
  for (const auto& stranger : core_->strangers) stranger->close();
}

std::size_t AgentListener::strangers() const {
  return core_->strangers.size();
}

}  // namespace holdfast::recovery
