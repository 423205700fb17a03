// Parses the command line and runs the subcommand that it names. A subcommand declares its options in its own source
// (`add_...`), so that this file knows the names of these functions alone. Whatever goes wrong becomes one sentence and
// exit code 2. See docs/decisions/exchange.md.

#include "command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <new>
#include <string_view>

#include "holdfast/base/error.h"
#include "subcommands.h"
#include "text.h"

namespace holdfast::cli {
namespace {

// The options of all subcommands. It must live until the action has run, because the action refers
// to its members.
class Parser {
 public:
  Parser(FileSystem& files, Console& console) : commands_{.app = app_, .files = files, .console = console} {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", "holdfast " HOLDFAST_VERSION);
    for (const auto add : {add_inspect, add_verify, add_diff, add_stats, add_plot, add_convert, add_prune, add_run,
                           add_status, add_scale, add_snapshot, add_report, add_chaos, add_doctor}) {
      add(commands_);
    }
  }

  // The action of the subcommand. Empty when there is nothing left to do, as after --help; `exit_code` is set then.
  std::function<int()> parse(std::vector<std::string> arguments, int& exit_code) {
    take_program(arguments);
    if (!knows_command_of(arguments)) {
      commands_.console.problems << "holdfast: there is no command \"" << printable(arguments.front())
                                 << "\"; \"holdfast --help\" lists all commands\n";
      exit_code = kNotDone;
      return {};
    }
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them in this order
    try {
      app_.parse(arguments);
      return commands_.action;
    } catch (const CLI::ParseError& error) {
      // CLI11 has a code above 100 for each kind of error; scripts get kNotDone for all of them.
      exit_code = app_.exit(error, commands_.console.out, commands_.console.problems) == 0
                      ? kDone
                      : kNotDone;  // CLI11 reports --help as an error with code 0
      return {};
    }
  }

 private:
  // CLI11 would say of an unknown command only that a command is missing. A missing command is left to CLI11.
  bool knows_command_of(const std::vector<std::string>& arguments) {
    if (arguments.empty() || arguments.front().starts_with('-')) return true;
    return !app_.get_subcommands([&](CLI::App* each) { return each->get_name() == arguments.front(); }).empty();
  }

  // After `run`, `chaos` or `doctor`, everything after the first "--" belongs to the program: its options and further
  // "--", too.
  void take_program(std::vector<std::string>& arguments) {
    const auto mark = std::find(arguments.begin(), arguments.end(), "--");
    static constexpr std::array<std::string_view, 3> kWithProgram = {"run", "chaos", "doctor"};
    if (mark == arguments.end() || std::ranges::find(kWithProgram, arguments.front()) == kWithProgram.end()) return;
    commands_.program.assign(mark + 1, arguments.end());
    arguments.erase(mark, arguments.end());
  }

  CLI::App app_{
      "Runs training programs so that they survive failures, shows and controls live runs, and works with files of "
      "named arrays: Holdfast's savepoints, and files of other frameworks.",
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
    // A lack of memory is not a bug to report: files may be larger than the machine.
  } catch (const std::bad_alloc&) {
    console.problems << "holdfast: there is not enough memory; free some memory and try again\n";
  } catch (const Error& error) {
    // Our own sentences are shorter, but they may quote an unknown file.
    constexpr std::size_t kMaxSentenceBytes = 8192;
    console.problems << "holdfast: " << shortened(printable(error.what()), kMaxSentenceBytes) << "\n";
  } catch (const std::exception& error) {
    console.problems << "holdfast: an unexpected error occurred (" << printable(error.what())
                     << "); please report it, with the command and its files\n";
  }
  return kNotDone;
}

}  // namespace holdfast::cli
