// Memory that replicas share is made here, and its descriptors go to them with messages, which no network could carry.
// So requests for memory end at the agent, on whichever host the head is. In a generation over several hosts, arenas
// are shared by the ranks of this host alone, and come with the connections of their lane. docs/decisions/agents.md

#include "hosts/local_host.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "channel/arena_exchange.h"
#include "channel/messages.h"
#include "holdfast/base/error.h"
#include "links/link_exchange.h"
#include "memory/snapshot_memories.h"

namespace holdfast::recovery {
namespace {

struct Ranks {
  int first = 0;
  int count = 0;
};

// Those of this host, which follow one another.
Ranks ranks_here(const HostAgent::Generation& generation) {
  const std::vector<int>& hosts = generation.hosts;
  if (hosts.empty()) return {.first = 0, .count = static_cast<int>(generation.members.size())};
  const auto first = std::find(hosts.begin(), hosts.end(), generation.host);
  return {.first = static_cast<int>(first - hosts.begin()),
          .count = static_cast<int>(std::count(first, hosts.end(), generation.host))};
}

class LocalHost final : public HostAgent {
 public:
  LocalHost(boost::asio::io_context& io, std::unique_ptr<ReplicaStarter> starter, const LocalHostOptions& options)
      : io_(io),
        is_plain_program_(options.is_plain_program),
        links_(options.links),
        reach_time_(options.reach_time),
        starter_(std::move(starter)) {}

  std::shared_ptr<ReplicaProcess> start(const ReplicaStarter::Program& program,
                                        ReplicaStarter::Handlers handlers) override;
  void open_generation(const Generation& generation) override;
  void cancel_generation() override;
  void when_unreached(OnUnreached handler) override { on_unreached_ = std::move(handler); }
  std::uint64_t arrivals(int member) const override;
  std::optional<MemorySnapshots::Whole> newest_snapshot() const override { return snapshot_memories_.newest(); }
  void watch_devices(const std::vector<int>& cuda_numbers, GpuWatch::Handlers handlers) override {
    gpu_watch_.emplace(io_, cuda_numbers, std::move(handlers));
  }
  void stop_watching_devices() override { gpu_watch_.reset(); }

 private:
  struct Started {
    std::weak_ptr<ReplicaProcess> process{};  // the head drops it, which kills the process
    ReplicaStarter::Handlers handlers{};
  };

  void on_message(int id, Message& message);
  void send(int id, const Message& message);
  void send_replies(const std::vector<ArenaExchange::Reply>& replies);
  void send_arenas(int id, ArenaNumber which, std::size_t bytes, FileDescriptor shown);
  void refuse(int local_rank, int exchange, ErrorCode code, const std::string& why);
  void add_links(int exchange, LinkExchange::Links links);
  void miss_links(int exchange, int peer, const std::string& why);
  void send_snapshot_memory(int id, std::size_t bytes);

  boost::asio::io_context& io_;
  const bool is_plain_program_;
  LinkListener* const links_;                      // null: a single host
  const std::chrono::milliseconds reach_time_;     // for another host
  const std::unique_ptr<ReplicaStarter> starter_;  // outlives all processes
  std::map<int, Started> started_;                 // by member
  SnapshotMemories snapshot_memories_;
  // These belong to the newest generation.
  Generation generation_;
  int first_rank_ = 0;  // of this host
  std::optional<ArenaExchange> arenas_;
  std::map<int, int> ranks_;                                   // within this host, of members that have not left it
  std::optional<LinkExchange> exchange_;                       // with other hosts, if it has any
  std::map<int, std::vector<ArenaExchange::Reply>> unlinked_;  // replies that wait for it, by exchange
  std::optional<GpuWatch> gpu_watch_;
  OnUnreached on_unreached_;
};

std::shared_ptr<ReplicaProcess> LocalHost::start(const ReplicaStarter::Program& program,
                                                 ReplicaStarter::Handlers handlers) {
  std::erase_if(started_, [](const auto& entry) { return entry.second.process.expired(); });
  const int id = program.member;
  ReplicaStarter::Handlers of_agent = handlers;
  of_agent.on_message = [this, id](Message& message) { on_message(id, message); };
  // An agent must not wait until the process runs: its beats go on meanwhile. A single host has no beats.
  ReplicaStarter::Program not_waited_for = program;
  not_waited_for.is_waited_for = links_ == nullptr;
  const std::shared_ptr<ReplicaProcess> process = starter_->start(not_waited_for, std::move(of_agent));
  started_[id] = {.process = process, .handlers = std::move(handlers)};
  return process;
}

void LocalHost::open_generation(const Generation& generation) {
  generation_ = generation;
  const auto size = static_cast<int>(generation.members.size());
  const auto [first, count] = ranks_here(generation);
  first_rank_ = first;
  arenas_.emplace(generation.number, count);
  snapshot_memories_.forget_old();
  unlinked_.clear();
  exchange_.reset();
  if (!generation.peers.empty()) {
    HOLDFAST_ASSERT(links_ != nullptr);
    exchange_.emplace(
        io_, *links_,
        LinkExchange::Hosts{.host = generation.host,
                            .of_ranks = generation.hosts,
                            .peers = generation.peers,
                            .reach_time = reach_time_},
        LinkExchange::Handlers{
            .on_links = [this](int exchange, LinkExchange::Links links) { add_links(exchange, std::move(links)); },
            .on_failed = [this](int exchange, int peer, const std::string& why) { miss_links(exchange, peer, why); }});
  }
  ranks_.clear();
  for (int rank = first; rank < first + count; ++rank) ranks_[generation.members[rank]] = rank - first;
  for (int rank = first; rank < first + count; ++rank) {
    const Welcome about{.generation = generation.number,
                        .rank = rank,
                        .size = size,
                        .shards = generation.shards,
                        .host_ranks = ranks_by_host(generation.hosts)};
    Message welcome{.body = about};
    welcome.body["kind"] = kWelcome;
    // Only rank 0 looks for a state, and gives it to the others.
    if (rank == 0 && generation.may_use_snapshots) welcome.descriptors = snapshot_memories_.read_only_descriptors();
    send(generation.members[rank], welcome);
  }
}

void LocalHost::cancel_generation() {
  if (exchange_) exchange_->shut_down();
  if (!arenas_) return;
  // Ranks that wait for connections only: their arenas have been exchanged, so cancel() does not answer them.
  const auto unlinked = std::exchange(unlinked_, {});
  for (const auto& [exchange, replies] : unlinked) {
    for (const ArenaExchange::Reply& reply : replies) {
      refuse(reply.rank, exchange, ErrorCode::cancelled, fmt::format("generation {} was ended", generation_.number));
    }
  }
  send_replies(arenas_->cancel());
}

std::uint64_t LocalHost::arrivals(int member) const {
  const auto rank = ranks_.find(member);
  return rank == ranks_.end() ? 0 : arenas_->arrivals(rank->second);
}

// Descriptors travel with the message, so it cannot be kept for later.
void LocalHost::on_message(int id, Message& message) {
  const nlohmann::json& body = message.body;
  const auto kind = body.at("kind").get<std::string>();
  if (kind == kArenaRequest) {
    return send_arenas(id, arena_number_of(body), body.at("bytes").get<std::size_t>(),
                       message.descriptors.empty() ? FileDescriptor() : std::move(message.descriptors.front()));
  }
  if (kind == kSnapshotRequest) return send_snapshot_memory(id, body.at("bytes").get<std::size_t>());
  // A rank that checks in late for an earlier generation has not left this one.
  const bool is_of_an_older_one = kind == kCheckedIn && body.at("generation").get<int>() != generation_.number;
  const bool leaves = kind == kFinished || kind == kFailure || (kind == kCheckedIn && !is_of_an_older_one);
  // Its later requests are refused as those of an ended generation.
  if (leaves) ranks_.erase(id);
  started_.at(id).handlers.on_message(message);
}

// A plain program reads no messages.
void LocalHost::send(int id, const Message& message) {
  const auto started = started_.find(id);
  if (started == started_.end() || is_plain_program_) return;
  const std::shared_ptr<ReplicaProcess> process = started->second.process.lock();
  if (process == nullptr) return;
  try {
    process->send(message);
  } catch (const Error& error) {
    // The death or exit of a process that is gone is noticed elsewhere, and says more.
    if (error.code() != ErrorCode::unavailable) started->second.handlers.on_bad_message(error.what());
  }
}

// A reply completes an exchange of all ranks, and one of these may have died meanwhile.
void LocalHost::send_replies(const std::vector<ArenaExchange::Reply>& replies) {
  for (const ArenaExchange::Reply& reply : replies) {
    send(generation_.members.at(static_cast<std::size_t>(first_rank_ + reply.rank)), reply.message);
  }
}

void LocalHost::refuse(int local_rank, int exchange, ErrorCode code, const std::string& why) {
  const ArenaNumber which{.generation = generation_.number, .number = exchange};
  send(generation_.members.at(static_cast<std::size_t>(first_rank_ + local_rank)),
       {.body = arena_refusal(which, code, why)});
}

void LocalHost::send_arenas(int id, ArenaNumber which, std::size_t bytes, FileDescriptor shown) {
  const auto rank = ranks_.find(id);
  // A request that was sent in an earlier generation may arrive after its end.
  if (rank == ranks_.end() || which.generation != generation_.number) {
    return send(id, {.body = arena_refusal(which, ErrorCode::cancelled,
                                           fmt::format("generation {} was ended", which.generation))});
  }
  std::vector<ArenaExchange::Reply> replies = arenas_->request(rank->second, which.number, bytes, std::move(shown));
  const bool has_arenas = !replies.empty() && !replies.front().message.descriptors.empty();
  // Refusals go out at once, and so does everything in a generation within this host.
  if (!exchange_ || !has_arenas) return send_replies(replies);
  // All ranks of this host have asked. They get their arenas when the other hosts are as far.
  unlinked_[which.number] = std::move(replies);
  exchange_->connect(which.number);
}

// A rank beyond the lanes gets none.
void LocalHost::add_links(int exchange, LinkExchange::Links links) {
  std::vector<ArenaExchange::Reply> replies = std::move(unlinked_.extract(exchange).mapped());
  for (ArenaExchange::Reply& reply : replies) {
    if (reply.rank >= static_cast<int>(links.size())) continue;
    for (FileDescriptor& link : links[static_cast<std::size_t>(reply.rank)]) {
      // That of this host itself, which has none.
      if (link.is_open()) reply.message.descriptors.push_back(std::move(link));
    }
    // The worker takes as many descriptors for links, and all before them for arenas.
    reply.message.body["links"] = generation_.peers.size();
  }
  send_replies(replies);
}

// Nothing is wrong with the ranks that wait. The head ends the generation, and they keep their states.
void LocalHost::miss_links(int exchange, int peer, const std::string& why) {
  if (on_unreached_) {
    return on_unreached_(generation_.number, peer,
                         fmt::format("{}; let the hosts of the run reach each other at any port", why));
  }
  const auto replies = std::move(unlinked_.extract(exchange).mapped());
  for (const ArenaExchange::Reply& reply : replies) {
    refuse(reply.rank, exchange, ErrorCode::input_output,
           fmt::format(
               "this host has no connection with host {}: {}; let the hosts of the run reach each other at any port",
               peer, why));
  }
}

void LocalHost::send_snapshot_memory(int id, std::size_t bytes) {
  try {
    std::vector<FileDescriptor> descriptors;
    descriptors.push_back(snapshot_memories_.add(bytes));
    send(id, {.body = {{"kind", kSnapshotMemory}}, .descriptors = std::move(descriptors)});
  } catch (const Error& error) {
    // A limit of this process would refuse memory to the next replica as well.
    started_.at(id).handlers.on_failure(error.what(), error.code() == ErrorCode::refused);
  }
}

}  // namespace

std::unique_ptr<HostAgent> local_host(boost::asio::io_context& io, std::unique_ptr<ReplicaStarter> starter,
                                      const LocalHostOptions& options) {
  return std::make_unique<LocalHost>(io, std::move(starter), options);
}

}  // namespace holdfast::recovery
