// The table of commands. A command registers itself at the end of its own file, with its options, its help and its function;
// the parser, the help text and the completions of shells read the table and nothing else.
//
// A command prints its answer to stdout and everything else to stderr, returns an exit code, and throws tapedeck::Error, which
// main.cpp turns into a line on stderr, an exit code, and with --json an object on stdout. So a command writes its files before
// it prints its answer.
#pragma once

#include <tapedeck/capture/tool/line/option.h>
#include <tapedeck/engine/ir/error.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::tool {

enum ExitCode : int {
  kOk = 0,
  kDiffers = 1,
  kUsage = 2,
  kBadFile = 3,
  kInfeasible = 4,
  kExecution = 5,
  kNoDevice = 6,
  kInterrupted = 130
};

// The headings of the help, in this order.
enum class CommandGroup : std::uint8_t { record, plan, replay, graphs, lists };
inline constexpr int kCommandGroups = 5;
const char* heading(CommandGroup group);

struct Command {
  std::string name;
  CommandGroup group;
  std::string help;   // one sentence
  std::string notes;  // lines below the options in the help; empty: none
  std::vector<Option> options;
  std::function<int()> run;
};

std::vector<const Command*> all_commands();      // by group, then by name
bool runs_user_program(const Command& command);  // it has an option that takes the rest of the line (Several::rest)
const Command* find_command(const std::string& name);

// How much the program says beside its answer. Every command has the options that set this.
struct Talk {
  bool quiet = false;    // no progress, no notes
  bool verbose = false;  // how long each part of the work took
};
Talk& talk();
Option quiet_option(const std::string& more = "");  // `more` is a sentence for the help

// The options that stand before the command, and their values.
struct Program {
  std::vector<std::string> op_libraries;
  std::vector<Option> options;
};
const Program& program();

bool register_command(Command command);
// The same from a struct of options: `table` states its members as options, and `run` receives the struct with their values.
template <class Options>
bool register_command(const char* name, CommandGroup group, const char* help, std::vector<Option> (*table)(Options&),
                      int (*run)(const Options&), const std::string& notes = "") {
  const auto options = std::make_shared<Options>();
  return register_command(Command{name, group, help, notes, table(*options), [options, run] { return run(*options); }});
}

}  // namespace tapedeck::tool
