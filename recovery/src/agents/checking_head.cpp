// Nothing here ends the check early: a host that differs, or is lost, gets its line, and the others are checked all the
// same. A host that has not come may have been refused, so what was refused is told with it. docs/decisions/agents.md

#include "agents/checking_head.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "agents/host_messages.h"

namespace holdfast::recovery {
namespace {

// A stranger can cause many of these.
constexpr std::size_t kMostRefused = 8;

std::string seconds_of(std::chrono::milliseconds time) {
  return fmt::format("{} s", std::chrono::duration<double>(time).count());
}

}  // namespace

Introduction introduction_of_check(const CheckingOptions& options, int links_port) {
  return {.run_id = options.run_id.empty() ? "doctor" : fmt::format("doctor of {}", options.run_id),
          .hosts = options.hosts,
          .host = options.host,
          // The message needs one, and it is not compared. The facts have the real number, and a difference there is a
          // line of the report.
          .replicas = 1,
          .port = links_port};
}

CheckingHead::CheckingHead(boost::asio::io_context& io, CheckingOptions options, const Secret& secret, OnOver on_over)
    : options_(std::move(options)),
      on_over_(std::move(on_over)),
      mark_(options_.facts.run_directory),
      links_(io),
      timer_(io) {
  for (int number = 1; number < options_.hosts; ++number) hosts_[number] = {};
  listener_ = std::make_unique<AgentListener>(
      io, options_.head.port, tls_context(secret), introduction_of_check(options_, links_.port()), options_.limits,
      AgentListener::Handlers{
          .why_not = [this](const Introduction& theirs) { return why_not(theirs); },
          .on_agent = [this](const Introduction& theirs,
                             const std::shared_ptr<AgentConnection>& connection) { meet(theirs, connection); },
          .on_refused = [this](const std::string& peer, const std::string& why) { refused(peer, why); }});
  timer_.expires_after(options_.join_timeout);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && stage_ == Stage::gathering) begin_linking();
  });
}

CheckingHead::~CheckingHead() {
  for (auto& [number, host] : hosts_) {
    if (host.connection != nullptr) host.connection->close();
  }
}

// Asked once nothing differs that would make the check itself impossible.
std::string CheckingHead::why_not(const Introduction& theirs) const {
  if (stage_ != Stage::gathering) return "the check went on without it; start it on all hosts again";
  // The listener has refused numbers that the run does not have.
  const Host& host = hosts_.at(theirs.host);
  if (host.connection == nullptr) return "";
  return fmt::format("host {} has come already, from {}; give each host another --node-rank", theirs.host,
                     address_of_peer(host.connection->peer()));
}

void CheckingHead::meet(const Introduction& theirs, const std::shared_ptr<AgentConnection>& connection) {
  const int number = theirs.host;
  const std::string address = address_of_peer(connection->peer());
  hosts_[number] = {.connection = connection, .links = {.host = address, .port = theirs.port}};
  connection->set_handlers({.on_message = [this, number](const nlohmann::json& message) { take(number, message); },
                            .on_closed = [this, number](const std::string& why) { lose(number, why); }});
  connection->send({{"kind", kQuestion}, {"mark", mark_.text()}});
  tell(fmt::format("host {} has come from {}", number, address));
}

// Each attempt has another port, so the port is left out: one host that dials again and again is
// one sentence.
void CheckingHead::refused(const std::string& peer, const std::string& why) {
  const std::string sentence = fmt::format("{} was refused: {}", address_of_peer(peer), why);
  if (refused_.size() >= kMostRefused || !refused_.insert(sentence).second) return;
  tell(sentence);
}

// Other kinds are passed over: all else that a host could say is of no use here.
void CheckingHead::take(int number, const nlohmann::json& message) {
  Host& host = hosts_.at(number);
  if (message.at("kind") == kFacts) {
    host.facts = parse_facts(message);
    host.has_told = true;
  } else if (message.at("kind") == kLinked) {
    host.linked[whole_number_in<int>(message, "host")] = message.at("problem").get<std::string>();
  }
  go_on_if_complete();
}

void CheckingHead::lose(int number, const std::string& why) {
  if (stage_ == Stage::over) return;
  Host& host = hosts_.at(number);
  tell(fmt::format("host {} is gone: {}", number, why));
  if (stage_ == Stage::gathering) {
    // It may come again.
    host = {};
    return;
  }
  host.connection.reset();
  host.lost = why;
  go_on_if_complete();
}

void CheckingHead::stop_waiting() {
  // A host that is cut off takes its time to be given up.
  if (stage_ == Stage::over) return give_report();
  if (stage_ == Stage::gathering) {
    is_cut_short_ = true;
    begin_linking();
  } else {
    is_linking_cut_short_ = true;
    end();
  }
}

void CheckingHead::go_on_if_complete() {
  const auto are_all = [this](const auto& is_complete) {
    return std::all_of(hosts_.begin(), hosts_.end(),
                       [&](const auto& entry) { return is_complete(entry.first, entry.second); });
  };
  if (stage_ == Stage::gathering && are_all([](int, const Host& host) { return host.has_told; }))
    return begin_linking();
  const auto has_linked = [this](int number, const Host& host) {
    if (host.connection == nullptr) return true;
    // Those with lower numbers that are part of the check, and host 0.
    const auto lower =
        std::count_if(hosts_.begin(), hosts_.find(number), [](const auto& entry) { return entry.second.has_told; });
    return static_cast<std::ptrdiff_t>(host.linked.size()) >= lower + 1;
  };
  if (stage_ == Stage::linking && are_all(has_linked)) end();
}

// As for a generation of a run (links/link_exchange.h): of two hosts the one with the higher number dials.
void CheckingHead::begin_linking() {
  stage_ = Stage::linking;
  std::map<int, HostAddress> addresses{{0, {.host = options_.head.host, .port = links_.port()}}};
  for (auto& [number, host] : hosts_) {
    if (host.has_told) addresses[number] = host.links;
    // It has come, and has said nothing.
    if (!host.has_told && host.connection != nullptr) std::exchange(host.connection, nullptr)->close();
  }
  std::map<std::pair<int, int>, LinkKey> keys;
  for (const auto& [number, own_address] : addresses) {
    std::vector<LinkPeer> peers;
    for (const auto& [peer, address] : addresses) {
      if (peer == number) continue;
      const auto [key, is_new] = keys.try_emplace(std::minmax(number, peer));
      // Both ends of a connection get the same key, whichever of them is named first.
      if (is_new) key->second = new_link_key();
      peers.push_back({.host = peer, .address = address, .key = key->second});
    }
    if (number > 0) {
      hosts_.at(number).connection->send(links_message(peers));
      continue;
    }
    // Host 0 dials nobody. That a connection came is told by the host that dialed.
    for (const LinkPeer& peer : peers) links_.expect({.key = peer.key}, [](FileDescriptor) {});
  }
  if (addresses.size() > 1) tell("the hosts connect with each other");
  timer_.expires_after(options_.link_timeout);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) end();
  });
  // Nobody may have come.
  go_on_if_complete();
}

void CheckingHead::end() {
  if (std::exchange(stage_, Stage::over) == Stage::over) return;
  timer_.cancel();
  made_ = report();
  send_verdict();
}

// The owner ends when it has the report, so the others are told first.
void CheckingHead::send_verdict() {
  for (auto& [number, host] : hosts_) {
    if (host.connection == nullptr) continue;
    ++being_told_;
    host.connection->send({{"kind", kVerdict}, {"is_well", made_.is_well}, {"sentence", made_.sentence}});
    // Limited by the time of an introduction.
    host.connection->close_when_sent([this] {
      if (--being_told_ == 0) give_report();
    });
  }
  if (being_told_ == 0) give_report();
}

// The owner may have asked for it while hosts were told.
void CheckingHead::give_report() {
  if (!std::exchange(is_given_, true)) on_over_(made_);
}

// Host 0 compares others with itself, so only its folder is told: it could be written.
HostsReport CheckingHead::report() const {
  HostsReport report;
  report.checks.push_back({.host = 0, .what = "run directory", .found = options_.facts.run_directory});
  for (const auto& [number, host] : hosts_) {
    for (HostCheck& check : checks_of(number, host)) report.checks.push_back(std::move(check));
  }
  const auto problems = std::count_if(report.checks.begin(), report.checks.end(),
                                      [](const HostCheck& check) { return !check.problem.empty(); });
  report.is_well = problems == 0;
  report.sentence = report.is_well ? fmt::format("a run over these {} hosts can begin", options_.hosts)
                                   : fmt::format("{} problem{} found on {} hosts", problems, problems == 1 ? "" : "s",
                                                 options_.hosts);
  return report;
}

std::vector<HostCheck> CheckingHead::checks_of(int number, const Host& host) const {
  if (!host.has_told) {
    return {{.host = number,
             .what = "meeting",
             .problem = is_cut_short_ ? "it has not come yet, and the wait was ended"
                                      : fmt::format("it has not come within {}", seconds_of(options_.join_timeout)),
             .remedy = missing_remedy(number)}};
  }
  std::vector<HostCheck> checks{{.host = number, .what = "meeting", .found = host.links.host}};
  for (HostCheck& check : compare(options_.facts, host.facts, number)) checks.push_back(std::move(check));
  for (int peer = 0; peer < number; ++peer) {
    if (peer > 0 && !hosts_.at(peer).has_told) continue;
    const std::string what = fmt::format("connection to host {}", peer);
    const auto linked = host.linked.find(peer);
    std::string problem = linked == host.linked.end() ? host.lost : linked->second;
    if (linked == host.linked.end() && problem.empty()) {
      problem = is_linking_cut_short_ ? "it was not made yet, and the wait was ended"
                                      : fmt::format("it was not made within {}", seconds_of(options_.link_timeout));
    }
    if (problem.empty()) {
      checks.push_back({.host = number, .what = what, .found = "works"});
    } else {
      checks.push_back({.host = number,
                        .what = what,
                        .problem = problem,
                        .remedy =
                            "let hosts reach each other at all ports above 1023; a firewall between them may be in "
                            "the way"});
    }
  }
  return checks;
}

// What was refused is most likely the host that is missing, and says why.
std::string CheckingHead::missing_remedy(int number) const {
  std::string remedy = fmt::format(
      "start the same command there with --node-rank {}, and see what it says; open port {} "
      "of this host",
      number, options_.head.port);
  if (!refused_.empty()) remedy += fmt::format("; meanwhile {}", fmt::join(refused_, "; "));
  return remedy;
}

void CheckingHead::tell(const std::string& news) const {
  if (options_.on_news) options_.on_news(news);
}

}  // namespace holdfast::recovery
