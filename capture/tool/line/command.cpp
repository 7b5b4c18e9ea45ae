#include <tapedeck/capture/tool/line/command.h>

#include <algorithm>
#include <deque>
#include <tuple>

namespace tapedeck::tool {

namespace {

std::deque<Command>& command_registry() {
  static std::deque<Command> commands;  // addresses are stable
  return commands;
}

}  // namespace

const char* heading(CommandGroup group) {
  constexpr const char* names[kCommandGroups] = {"Record a step and look at it", "Plan its memory", "Run it and measure",
                                                 "Work on graphs", "About this program"};
  return names[static_cast<int>(group)];
}

Talk& talk() {
  static Talk talk;
  return talk;
}

Option quiet_option(const std::string& more) {
  return {.name = "--quiet",
          .letter = 'q',
          .to = &talk().quiet,
          .help = "Print no progress and no notes; errors are still printed." + more,
          .group = "Output"};
}

// Adds the options that every command has, where the command does not state its own.
bool register_command(Command command) {
  const auto has = [&](const char* name) {
    return std::any_of(command.options.begin(), command.options.end(), [&](const Option& o) { return o.name == name; });
  };
  if (!has("--quiet")) command.options.push_back(quiet_option());
  if (!has("--verbose"))
    command.options.push_back({.name = "--verbose",
                               .letter = 'v',
                               .to = &talk().verbose,
                               .help = "Print how long each part of the work took.",
                               .group = "Output"});
  command_registry().push_back(std::move(command));
  return true;
}

std::vector<const Command*> all_commands() {
  std::vector<const Command*> commands;
  for (const Command& command : command_registry()) commands.push_back(&command);
  std::sort(commands.begin(), commands.end(),
            [](const Command* a, const Command* b) { return std::tie(a->group, a->name) < std::tie(b->group, b->name); });
  return commands;
}

bool runs_user_program(const Command& command) {
  return std::any_of(command.options.begin(), command.options.end(), takes_rest);
}

const Command* find_command(const std::string& name) {
  for (const Command& command : command_registry())
    if (command.name == name) return &command;
  return nullptr;
}

const Program& program() {
  static Program* const program = [] {
    auto* p = new Program;
    p->options = {{.name = "--load",
                   .metavar = "FILE",
                   .to = &p->op_libraries,
                   .help = "Load a library of ops (.so) before the command runs."}};
    return p;
  }();
  return *program;
}

}  // namespace tapedeck::tool
