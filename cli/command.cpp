#include "command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <functional>
#include <new>

#include "chaos.h"
#include "convert.h"
#include "diff.h"
#include "doctor.h"
#include "exit_code.h"
#include "holdfast/base/error.h"
#include "inspect.h"
#include "live_run.h"
#include "prune.h"
#include "report.h"
#include "run.h"
#include "stats.h"
#include "status.h"
#include "subcommands.h"
#include "text.h"
#include "verify.h"

namespace holdfast::cli {
namespace {

// What the arguments ask for.
class Parser {
 public:
  Parser(FileSystem& files, Console& console) : commands_{.app = app_, .files = files, .console = console} {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", "holdfast " HOLDFAST_VERSION);
    for (const auto add : {add_inspect, add_verify, add_diff, add_stats, add_convert, add_prune, add_run, add_status,
                           add_scale, add_snapshot, add_report, add_chaos, add_doctor}) {
      add(commands_);
    }
  }

  // None when all is said already, as by --help; `exit_code` then.
  std::function<int()> parse(std::vector<std::string> arguments, int& exit_code) {
    take_program(arguments);
    if (!knows_command_of(arguments)) {
      commands_.console.problems << "holdfast: there is no command \"" << printable(arguments.front())
                                 << "\"; \"holdfast --help\" lists those that there are\n";
      exit_code = kNotDone;
      return {};
    }
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
    try {
      app_.parse(arguments);
      return commands_.action;
    } catch (const CLI::ParseError& error) {
      exit_code = app_.exit(error, commands_.console.out, commands_.console.problems) == 0
                      ? kDone
                      : kNotDone;  // help is one, too
      return {};
    }
  }

 private:
  // True where there is none, too: CLI11 says that one is missing, and not which one it does not know.
  bool knows_command_of(const std::vector<std::string>& arguments) {
    if (arguments.empty() || arguments.front().starts_with('-')) return true;
    const std::vector<CLI::App*> commands = app_.get_subcommands([](CLI::App*) { return true; });
    return std::any_of(commands.begin(), commands.end(),
                       [&](const CLI::App* command) { return command->get_name() == arguments.front(); });
  }

  // What follows the first "--" after `run` or `chaos` is the program's own, options and further "--" too.
  void take_program(std::vector<std::string>& arguments) {
    const auto mark = std::find(arguments.begin(), arguments.end(), "--");
    if (mark == arguments.end() || (arguments.front() != "run" && arguments.front() != "chaos")) return;
    commands_.program.assign(mark + 1, arguments.end());
    arguments.erase(mark, arguments.end());
  }

  CLI::App app_{
      "Runs programs so that they survive failures, shows and steers live runs, and handles files of named arrays: "
      "Holdfast's savepoints, and those of other frameworks.",
      "holdfast"};
  Subcommands commands_;
};

}  // namespace

int run_command(const std::vector<std::string>& arguments, FileSystem& files, Console& console) {
  try {
    int exit_code = kNotDone;
    Parser parser(files, console);
    const std::function<int()> action = parser.parse(arguments, exit_code);
    return action ? action() : exit_code;
  } catch (const std::bad_alloc&) {
    console.problems << "holdfast: no memory left; free some memory and try again\n";
  } catch (const Error& error) {
    // Our own sentences are shorter; text from an unknown file may not be.
    constexpr std::size_t kMaxSentenceBytes = 8192;
    console.problems << "holdfast: " << shortened(printable(error.what()), kMaxSentenceBytes) << "\n";
  } catch (const std::exception& error) {
    console.problems << "holdfast: this failed in a way that nobody thought of (" << printable(error.what())
                     << "); please report it, with the command and its files\n";
  }
  return kNotDone;
}

}  // namespace holdfast::cli
