// Memory that replicas share is made here, and its descriptors go to them with messages, which no network could carry.
// So requests for memory end at the agent, on whichever host the head is. docs/decisions/agents.md

#include "hosts/local_host.h"

#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "channel/arena_exchange.h"
#include "channel/messages.h"
#include "holdfast/base/error.h"
#include "memory/snapshot_memories.h"

namespace holdfast::recovery {
namespace {

class LocalHost final : public HostAgent {
 public:
  LocalHost(boost::asio::io_context& io, std::unique_ptr<ReplicaStarter> starter, const LocalHostOptions& options)
      : io_(io), is_plain_program_(options.is_plain_program), starter_(std::move(starter)) {}

  std::shared_ptr<ReplicaProcess> start(const ReplicaStarter::Program& program,
                                        ReplicaStarter::Handlers handlers) override;
  void open_generation(const Generation& generation) override;
  void cancel_generation() override;
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
  void send_snapshot_memory(int id, std::size_t bytes);

  boost::asio::io_context& io_;
  const bool is_plain_program_;
  const std::unique_ptr<ReplicaStarter> starter_;  // outlives all processes
  std::map<int, Started> started_;                 // by member
  SnapshotMemories snapshot_memories_;
  // These three belong to the newest generation.
  Generation generation_;
  std::optional<ArenaExchange> arenas_;
  std::map<int, int> ranks_;  // of members that have not left it
  std::optional<GpuWatch> gpu_watch_;
};

std::shared_ptr<ReplicaProcess> LocalHost::start(const ReplicaStarter::Program& program,
                                                 ReplicaStarter::Handlers handlers) {
  std::erase_if(started_, [](const auto& entry) { return entry.second.process.expired(); });
  const int id = program.member;
  ReplicaStarter::Handlers of_agent = handlers;
  of_agent.on_message = [this, id](Message& message) { on_message(id, message); };
  const std::shared_ptr<ReplicaProcess> process = starter_->start(program, std::move(of_agent));
  started_[id] = {.process = process, .handlers = std::move(handlers)};
  return process;
}

void LocalHost::open_generation(const Generation& generation) {
  generation_ = generation;
  const auto size = static_cast<int>(generation.members.size());
  arenas_.emplace(generation.number, size);
  snapshot_memories_.forget_old();
  ranks_.clear();
  for (int rank = 0; rank < size; ++rank) ranks_[generation.members[rank]] = rank;
  for (int rank = 0; rank < size; ++rank) {
    Message welcome{
        .body = Welcome{.generation = generation.number, .rank = rank, .size = size, .shards = generation.shards}};
    welcome.body["kind"] = kWelcome;
    // Only rank 0 looks for a state, and gives it to the others.
    if (rank == 0 && generation.may_use_snapshots) welcome.descriptors = snapshot_memories_.read_only_descriptors();
    send(generation.members[rank], welcome);
  }
}

void LocalHost::cancel_generation() {
  if (arenas_) send_replies(arenas_->cancel());
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
  const bool is_of_an_older_one = kind == kCheckedIn && body.at("generation").get<int>() != generation_.number;
  const bool leaves = kind == kFinished || kind == kFailure || (kind == kCheckedIn && !is_of_an_older_one);
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
    send(generation_.members.at(static_cast<std::size_t>(reply.rank)), reply.message);
  }
}

void LocalHost::send_arenas(int id, ArenaNumber which, std::size_t bytes, FileDescriptor shown) {
  const auto rank = ranks_.find(id);
  // A request that was sent in an earlier generation may arrive after its end.
  if (rank == ranks_.end() || which.generation != generation_.number) {
    return send(id, {.body = arena_refusal(which, ErrorCode::cancelled,
                                           fmt::format("generation {} was ended", which.generation))});
  }
  send_replies(arenas_->request(rank->second, which.number, bytes, std::move(shown)));
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
