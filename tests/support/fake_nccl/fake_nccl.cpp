// Ranks exchange messages through the mailboxes of their communicator. A send waits until its message is received, as a
// kernel of NCCL may, so code that relies on buffering hangs here too.

#include "support/fake_nccl/fake_nccl.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "collective/nccl/nccl_abi.h"
#include "support/fake_nccl/fake_stream.h"

using holdfast::FakeStream;
using holdfast::nccl::Comm;
using holdfast::nccl::Config;
using holdfast::nccl::DataType;
using holdfast::nccl::Operation;
using holdfast::nccl::Result;
using holdfast::nccl::UniqueId;

namespace {

constexpr int kNoRank = -1;

// The kind of call, the sender, the receiver. Calls of different kinds do not match each other.
using Route = std::tuple<std::string_view, int, int>;

struct Letter {
  std::vector<float> floats;
  int* untaken =
      nullptr;  // counter of the sending kernel, which lives until all its letters are taken or it is aborted
};

// The messages of a communicator's ranks and the rest of their shared state; guarded by world().mutex.
struct Clique {
  int ranks = 0;
  int joined = 0;
  std::map<Route, std::deque<Letter>> mail;
};

struct Member {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  bool is_aborted = false;
  bool is_revoked = false;
  bool is_busy = false;
  int looks_until_done = 0;        // how often a call in progress will still be polled
  Result error = Result::success;  // of a call that came too early; permanent
  int running = 0;
};

// The work of one group on a stream.
struct Kernel {
  Member& member;
  int untaken = 0;  // letters
};

using Send = std::function<void(Kernel&)>;
using Receive = std::function<bool(Member&)>;  // false: it still waits for a message

struct World {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> rules;
  std::map<std::pair<std::string, int>, int> calls;
  std::map<std::string, std::shared_ptr<Clique>> cliques;  // by unique id
  std::map<Comm*, std::shared_ptr<Member>> members;
  std::uint64_t next_id = 1;
  int running = 0;
  std::map<int, int> ended;  // by rank
};

std::vector<std::string> words(const char* text) {
  std::istringstream stream(text == nullptr ? "" : text);
  std::vector<std::string> all;
  for (std::string word; stream >> word;) all.push_back(word);
  return all;
}

// Never destroyed: calls that hang may outlive everything else.
World& world() {
  static World& only = *[] {
    auto* const made = new World;
    made->rules = words(std::getenv("HOLDFAST_FAKE_NCCL"));
    return made;
  }();
  return only;
}

// Finds the value of a rule for this rank. The caller holds the mutex.
bool find_rule(const std::string& key, int rank, std::string& value) {
  for (std::string rule : world().rules) {
    const std::size_t at = rule.find('@');
    if (at != std::string::npos) {
      if (std::stoi(rule.substr(at + 1)) != rank) continue;
      rule.resize(at);
    }
    if (rule.rfind(key, 0) != 0) continue;
    value = rule.substr(key.size());
    return true;
  }
  return false;
}

bool has_rule(const std::string& rule, int rank) {
  std::string rest;
  return find_rule(rule, rank, rest) && rest.empty();
}

// Begins every call: counts it, and hangs or fails as the rules say. The caller holds the mutex.
Result enter(std::unique_lock<std::mutex>& lock, const std::string& function, int rank) {
  World& all = world();
  ++all.calls[{function, rank}];
  if (rank != kNoRank) ++all.calls[{function, kNoRank}];
  all.changed.wait(lock, [&] { return !has_rule("hang=" + function, rank); });
  std::string result;
  return find_rule("fail=" + function + ":", rank, result) ? static_cast<Result>(std::stoi(result)) : Result::success;
}

std::shared_ptr<Member> find(Comm* comm) {
  const auto found = world().members.find(comm);
  return found == world().members.end() ? nullptr : found->second;
}

int rank_of(Comm* comm) {
  const std::shared_ptr<Member> member = find(comm);
  return member ? member->rank : kNoRank;
}

// One operation of a group. It runs on the stream, and the caller holds the mutex.
struct Work {
  Comm* comm = nullptr;
  FakeStream* stream = nullptr;
  Send send;
  Receive receive;
};

thread_local int group_depth = 0;
thread_local std::vector<Work> group;
thread_local Result group_error = Result::success;

void post(Kernel& kernel, std::string_view call, int to, const float* from, std::size_t count) {
  const Member& member = kernel.member;
  member.clique->mail[{call, member.rank, to}].push_back({{from, from + count}, &kernel.untaken});
  ++kernel.untaken;
}

// NCCL does not compare sizes: it hangs or writes past the end. No test may pass in that way.
void require_same_count(const Member& member, std::string_view call, int from, std::size_t sent, std::size_t expected) {
  if (sent == expected) return;
  std::fprintf(stderr, "fake NCCL: rank %d sent %zu floats by %.*s of which rank %d expects %zu\n", from, sent,
               static_cast<int>(call.size()), call.data(), member.rank, expected);
  std::abort();
}

bool take(Member& member, std::string_view call, int from, float* to, std::size_t count) {
  auto& mail = member.clique->mail[{call, from, member.rank}];
  if (mail.empty()) return false;
  const Letter letter = std::move(mail.front());
  mail.pop_front();
  require_same_count(member, call, from, letter.floats.size(), count);
  std::copy(letter.floats.begin(), letter.floats.end(), to);
  --*letter.untaken;
  world().changed.notify_all();
  return true;
}

// Stops all running work. Messages that peers have not received by then are lost.
void stop(Member& member) {
  member.is_aborted = true;
  for (auto& [route, letters] : member.clique->mail) {
    if (std::get<1>(route) == member.rank) letters.clear();
  }
  world().changed.notify_all();
}

// In any order, because the operations of a group do not wait for each other.
void receive_what_is_there(Member& member, std::vector<Receive>& missing) {
  for (auto receive = missing.begin(); receive != missing.end();) {
    receive = (*receive)(member) ? missing.erase(receive) : receive + 1;
  }
}

// Like a kernel, it ends when all its parts are done or when it is aborted. NCCL may buffer small messages and end
// before a peer has received them. No caller may rely on that, so this one always waits.
void run(const std::shared_ptr<Member>& member, const std::vector<Work>& works) {
  World& all = world();
  std::unique_lock lock(all.mutex);
  Kernel kernel{.member = *member};
  std::vector<Receive> missing;
  for (const Work& work : works) {
    if (work.send && !member->is_aborted) work.send(kernel);
    if (work.receive) missing.push_back(work.receive);
  }
  all.changed.notify_all();
  all.changed.wait(lock, [&] {
    if (has_rule("kernel=stuck", member->rank)) return false;
    if (member->is_aborted) return true;
    receive_what_is_there(*member, missing);
    return missing.empty() && kernel.untaken == 0;
  });
  --member->running;
  --all.running;
  ++all.ended[member->rank];
  all.changed.notify_all();
}

// All work of a group belongs to one communicator and one stream. The caller holds the mutex.
Result launch(std::vector<Work> works) {
  if (works.empty()) return Result::success;
  const std::shared_ptr<Member> member = find(works.front().comm);
  FakeStream* const stream = works.front().stream;
  ++member->running;
  ++world().running;
  member->looks_until_done = 2;
  member->is_busy = has_rule("busy=ncclGroupEnd", member->rank);
  stream->enqueue([member, works = std::move(works)] { run(member, works); });
  return Result::in_progress;
}

// The state for ncclCommGetAsyncError(). The caller holds the mutex.
Result state_of(const Member& member) {
  if (member.error != Result::success) return member.error;
  if (member.clique->joined < member.clique->ranks) return Result::in_progress;
  if (member.is_busy || member.looks_until_done > 0) return Result::in_progress;
  std::string told;
  return find_rule("async=", member.rank, told) ? static_cast<Result>(std::stoi(told)) : Result::success;
}

// Like NCCL's ncclCommEnsureReady(): a call before the previous one has succeeded fails, and so do all later ones. The
// caller holds the mutex.
Result require_ready(Member& member) {
  if (member.is_revoked) return Result::invalid_usage;
  if (state_of(member) == Result::in_progress) member.error = Result::invalid_argument;
  return state_of(member);
}

Result queue(const char* function, Work work) {
  std::unique_lock lock(world().mutex);
  const Result entered = enter(lock, function, rank_of(work.comm));
  if (entered != Result::success) return entered;
  const std::shared_ptr<Member> member = find(work.comm);
  if (!member) return Result::invalid_argument;
  const Result ready = require_ready(*member);
  if (ready != Result::success) return ready;
  if (group_depth == 0) return launch({std::move(work)});
  group.push_back(std::move(work));
  return Result::success;
}

// If one call fails, its whole group fails.
Result add(const char* function, Work work) {
  const Result queued = queue(function, std::move(work));
  const bool has_failed = queued != Result::success && queued != Result::in_progress;
  if (has_failed && group_depth > 0 && group_error == Result::success) group_error = queued;
  return queued;
}

FakeStream* stream_of(void* stream) {
  return static_cast<FakeStream*>(stream);
}

void post_to_all(Kernel& kernel, std::string_view call, const float* from, std::size_t count) {
  const Member& member = kernel.member;
  for (int rank = 0; rank < member.clique->ranks; ++rank) {
    if (rank != member.rank) post(kernel, call, rank, from, count);
  }
}

bool have_all_sent(const Member& member, std::string_view call) {
  for (int rank = 0; rank < member.clique->ranks; ++rank) {
    const auto& mail = member.clique->mail;
    const auto found = mail.find({call, rank, member.rank});
    if (rank != member.rank && (found == mail.end() || found->second.empty())) return false;
  }
  return true;
}

}  // namespace

extern "C" {

void fake_nccl_obey(const char* rules) {
  World& all = world();
  const std::lock_guard lock(all.mutex);
  all.rules = words(rules);
  all.calls.clear();
  all.ended.clear();
  all.changed.notify_all();
}

int fake_nccl_calls(const char* function, int rank) {
  const std::lock_guard lock(world().mutex);
  return world().calls[{function, rank}];
}

int fake_nccl_running() {
  const std::lock_guard lock(world().mutex);
  return world().running;
}

int fake_nccl_ended(int rank) {
  const std::lock_guard lock(world().mutex);
  return world().ended[rank];
}

Result ncclGetVersion(int* version) {
  std::unique_lock lock(world().mutex);
  std::string given = "22809";
  find_rule("version=", kNoRank, given);
  *version = std::stoi(given);
  return enter(lock, "ncclGetVersion", kNoRank);
}

Result ncclGetUniqueId(UniqueId* id) {
  std::unique_lock lock(world().mutex);
  const std::string text = "fake " + std::to_string(world().next_id++);
  std::memset(id->bytes, 0, sizeof id->bytes);
  std::memcpy(id->bytes, text.data(), text.size());
  return enter(lock, "ncclGetUniqueId", kNoRank);
}

Result ncclCommInitRankConfig(Comm** comm, int ranks, UniqueId id, int rank, Config* config) {
  std::unique_lock lock(world().mutex);
  const Result entered = enter(lock, "ncclCommInitRankConfig", rank);
  if (entered != Result::success) return entered;
  if (config->magic != 0xCAFE'BEEF || config->blocking != 0) return Result::invalid_argument;
  std::shared_ptr<Clique>& clique = world().cliques[id.bytes];
  if (!clique) clique = std::make_shared<Clique>();
  clique->ranks = ranks;
  ++clique->joined;
  auto member = std::make_shared<Member>();
  member->clique = clique;
  member->rank = rank;
  member->is_busy = has_rule("busy=ncclCommInitRankConfig", rank);
  *comm = reinterpret_cast<Comm*>(member.get());
  world().members[*comm] = member;
  return Result::in_progress;
}

Result ncclCommGetAsyncError(Comm* comm, Result* error) {
  std::unique_lock lock(world().mutex);
  const Result entered = enter(lock, "ncclCommGetAsyncError", rank_of(comm));
  if (entered != Result::success) return entered;
  const std::shared_ptr<Member> member = find(comm);
  if (!member) return Result::invalid_argument;
  *error = state_of(*member);
  if (*error == Result::in_progress && member->looks_until_done > 0) --member->looks_until_done;
  return Result::success;
}

// Like NCCL's abort: stops running work, waits for it, and frees the communicator.
Result ncclCommAbort(Comm* comm) {
  std::unique_lock lock(world().mutex);
  const Result entered = enter(lock, "ncclCommAbort", rank_of(comm));
  if (entered != Result::success) return entered;
  const std::shared_ptr<Member> member = find(comm);
  if (!member) return Result::invalid_argument;
  stop(*member);
  world().changed.wait(lock, [&] { return member->running == 0; });
  world().members.erase(comm);
  return Result::success;
}

Result ncclCommRevoke(Comm* comm, int flags) {
  std::unique_lock lock(world().mutex);
  const Result entered = enter(lock, "ncclCommRevoke", rank_of(comm));
  if (entered != Result::success) return entered;
  const std::shared_ptr<Member> member = find(comm);
  if (!member || flags != 0 || member->is_revoked) return Result::invalid_argument;
  member->is_revoked = true;
  stop(*member);
  member->looks_until_done = 2;
  return Result::in_progress;
}

Result ncclGroupStart() {
  ++group_depth;
  return Result::success;
}

Result ncclGroupEnd() {
  if (--group_depth > 0) return Result::success;
  std::vector<Work> works = std::move(group);
  group.clear();
  const Result of_calls = std::exchange(group_error, Result::success);
  std::unique_lock lock(world().mutex);
  const int rank = works.empty() ? kNoRank : rank_of(works.front().comm);
  const Result entered = enter(lock, "ncclGroupEnd", rank);
  if (entered != Result::success) return entered;
  return of_calls == Result::success ? launch(std::move(works)) : of_calls;
}

Result ncclSend(const void* from, std::size_t count, DataType, int peer, Comm* comm, void* stream) {
  const auto send = [=](Kernel& kernel) { post(kernel, "ncclSend", peer, static_cast<const float*>(from), count); };
  return add("ncclSend", {comm, stream_of(stream), send, nullptr});
}

Result ncclRecv(void* to, std::size_t count, DataType, int peer, Comm* comm, void* stream) {
  const auto receive = [=](Member& member) { return take(member, "ncclSend", peer, static_cast<float*>(to), count); };
  return add("ncclRecv", {comm, stream_of(stream), nullptr, receive});
}

Result ncclAllGather(const void* from, void* to, std::size_t count, DataType, Comm* comm, void* stream) {
  const auto send = [=](Kernel& kernel) {
    post_to_all(kernel, "ncclAllGather", static_cast<const float*>(from), count);
  };
  const auto receive = [=](Member& member) {
    if (!have_all_sent(member, "ncclAllGather")) return false;
    for (int rank = 0; rank < member.clique->ranks; ++rank) {
      float* const place = static_cast<float*>(to) + static_cast<std::size_t>(rank) * count;
      if (rank == member.rank) {
        std::memmove(place, from, count * sizeof(float));
      } else {
        take(member, "ncclAllGather", rank, place, count);
      }
    }
    return true;
  };
  return add("ncclAllGather", {comm, stream_of(stream), send, receive});
}

Result ncclAllReduce(const void* from, void* to, std::size_t count, DataType, Operation, Comm* comm, void* stream) {
  const auto send = [=](Kernel& kernel) {
    post_to_all(kernel, "ncclAllReduce", static_cast<const float*>(from), count);
  };
  const auto receive = [=](Member& member) {
    if (!have_all_sent(member, "ncclAllReduce")) return false;
    const auto* const own = static_cast<const float*>(from);
    std::vector<float> sum(count, 0.0F);
    std::vector<float> summand(count);
    for (int rank = 0; rank < member.clique->ranks; ++rank) {
      if (rank == member.rank) {
        summand.assign(own, own + count);
      } else {
        take(member, "ncclAllReduce", rank, summand.data(), count);
      }
      for (std::size_t i = 0; i < count; ++i) sum[i] += summand[i];
    }
    std::memcpy(to, sum.data(), count * sizeof(float));
    return true;
  };
  return add("ncclAllReduce", {comm, stream_of(stream), send, receive});
}

Result ncclBroadcast(const void* from, void* to, std::size_t count, DataType, int root, Comm* comm, void* stream) {
  const auto send = [=](Kernel& kernel) {
    if (kernel.member.rank == root) post_to_all(kernel, "ncclBroadcast", static_cast<const float*>(from), count);
  };
  const auto receive = [=](Member& member) {
    return member.rank == root || take(member, "ncclBroadcast", root, static_cast<float*>(to), count);
  };
  return add("ncclBroadcast", {comm, stream_of(stream), send, receive});
}

const char* ncclGetErrorString(Result result) {
  switch (result) {
    case Result::success:
      return "no error";
    case Result::remote_error:
      return "remote process exited or there was a network error";
    case Result::invalid_usage:
      return "invalid usage";
    default:
      return "some error";
  }
}

const char* ncclGetLastError(Comm*) {
  return "the fake's last error";
}
}
