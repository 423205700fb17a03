// Programs that call supervise() more than once, or otherwise than they should:
//
//   calls_program WAY DIRECTORY
//
//   once             prints what kind of process it is before, within and after its only run
//   asks             prints whether it is a replica, and ends
//   starts           its replica 0 executes `calls_program once DIRECTORY/inner`
//   twice            two runs
//   same_directory   two runs in one directory
//   nested           a run within a run
//   other_calls      a replica takes another directory than the first process
//   no_call          a replica makes no call
//   too_few_calls    two runs; a replica of the second makes the first call only
//   stopped          two runs; the first is asked to stop while it trains
//   stopped_late     two runs; the first is asked to stop when all replicas have trained
//   stopped_last     two runs; the first is asked to stop when the watchdog has seen the end of a replica that finished
//   divided_data     one run whose replicas take a part of the data each
//   other_model      one run whose replica 1 has a larger model

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include <unistd.h>

#include "holdfast/holdfast.h"

using namespace holdfast;

namespace {

class StopAtStep final : public Callback {
 public:
  std::string name() const override { return "stop_at_step"; }
  void on_step_end(TrainingContext& context, const Logs&) override {
    if (context.step() == 2 && context.is_primary()) ::kill(::getppid(), SIGTERM);
  }
};

// Until its parent has taken its exit status. The watchdog replaces this process if that does not happen.
void wait_for_end_of_process(const std::string& file) {
  pid_t process = 0;
  std::ifstream(file) >> process;
  if (process <= 0) std::abort();
  while (::kill(process, 0) == 0) std::this_thread::yield();
}

// As a program of a library would whose replicas read parts of the data.
void train_on_own_part(Replica& replica) {
  const Dataset all = from_tensors(Tensor{Shape{16, 2}}, Tensor{Shape{16, 1}});
  Trainer trainer{replica, Sequential{Input{2}, Dense{1}}, SGD{0.1F}, MeanSquaredError{}};
  trainer.fit(all.skip(8 * replica.rank()).take(8).batch(4));
}

void train_own_model(Replica& replica) {
  Trainer trainer{replica, Sequential{Input{2}, Dense{1 + 100 * replica.rank()}, Dense{1}}, SGD{0.1F},
                  MeanSquaredError{}};
  trainer.fit(from_tensors(Tensor{Shape{16, 2}}, Tensor{Shape{16, 1}}).batch(4));
}

void train(Replica& replica, std::vector<CallbackHandle> callbacks = {}, std::int64_t epochs = 2) {
  Tensor features{Shape{16, 2}};
  Tensor targets{Shape{16, 1}};
  for (std::int64_t i = 0; i < 16; ++i) {
    features.sample(i)[0] = static_cast<float>(i) / 16.0F;
    targets.sample(i)[0] = static_cast<float>(i) / 8.0F;
  }
  Trainer trainer{replica, Sequential{Input{2}, Dense{1}}, SGD{0.1F}, MeanSquaredError{}};
  trainer.fit(from_tensors(features, targets).batch(4), {.epochs = epochs, .callbacks = std::move(callbacks)});
}

void say(const char* where) {
  std::printf("%s %s\n", where, is_replica_process() ? "replica" : "first");
  std::fflush(stdout);
}

int run(int argc, char** argv, const std::string& directory, const std::function<void(Replica&)>& body) {
  return supervise(argc, argv, {.replicas = 2, .run_directory = directory, .shards = 4}, body);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string way = argv[1];
  const std::string directory = argv[2];
  const auto plain = [](Replica& replica) { train(replica); };
  if (way == "asks") {
    say("asked:");
    return 0;
  }
  if (way == "once") {
    say("before:");
    if (is_replica_process()) std::system((std::string(argv[0]) + " asks -").c_str());
    const int code = run(argc, argv, directory, [](Replica& replica) {
      say("within:");
      train(replica);
      say("trained:");
      std::printf("not flushed by rank %d;", replica.rank());
    });
    say("after:");
    return code;
  }
  if (way == "starts") {
    return run(argc, argv, directory, [&](Replica& replica) {
      if (replica.is_primary()) {
        const int code = std::system((std::string(argv[0]) + " once " + directory + "/inner").c_str());
        std::printf("inner program ended with %d\n", code);
        std::fflush(stdout);
      }
      train(replica);
    });
  }
  if (way == "same_directory") {
    const int first = run(argc, argv, directory, plain);
    const int second = run(argc, argv, directory + "/.", plain);
    std::printf("codes %d %d\n", first, second);
    return 0;
  }
  if (way == "divided_data") return run(argc, argv, directory, train_on_own_part);
  if (way == "other_model") return run(argc, argv, directory, train_own_model);
  if (way == "nested") {
    return run(argc, argv, directory, [&](Replica&) { run(argc, argv, directory + "/inner", plain); });
  }
  if (way == "other_calls") {
    return run(argc, argv, directory + (is_replica_process() ? "/b" : "/a"), plain);
  }
  if (way == "no_call") {
    return is_replica_process() ? 0 : run(argc, argv, directory, plain);
  }
  const auto first_body = [&](Replica& replica) {
    if (way == "stopped") return train(replica, {StopAtStep{}}, 1'000'000);
    const std::string process_of_other = directory + "/process_of_other";
    if (way == "stopped_last" && !replica.is_primary()) std::ofstream(process_of_other) << ::getpid();
    train(replica);
    if (!replica.is_primary()) return;
    if (way == "stopped_last") wait_for_end_of_process(process_of_other);
    if (way == "stopped_late" || way == "stopped_last") ::kill(::getppid(), SIGTERM);
  };
  const int first = run(argc, argv, directory + "/a", first_body);
  if (way == "too_few_calls" && is_replica_process()) return first;
  const int second = run(argc, argv, directory + "/b", plain);
  std::printf("codes %d %d\n", first, second);
  return second;
}
