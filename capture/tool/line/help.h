// The help text of the program and of its commands, from the table of commands.
#pragma once

#include <tapedeck/capture/tool/line/command.h>

#include <string>

namespace tapedeck::tool {

// Options that stand before the command; --help and --version are everywhere the same.
inline constexpr const char* kHelpOption = "--help";
inline constexpr const char* kVersionOption = "--version";

// An option as the help and the manual page show it: "-o, --output FILE", and the sentences with its choices and its default.
struct OptionText {
  std::string left, right;
};
OptionText option_text(const Option& option);

inline constexpr const char* kDescription =
    "Tapedeck records tensor programs, plans their memory under a hard byte budget, and replays them bit for bit.";
inline constexpr const char* kSizes =
    "Sizes: a bare number is bytes; KB MB GB are 1000s, KiB MiB GiB 1024s; 50% is of the peak that keeps everything.";
inline constexpr const char* kExitCodes[][2] = {{"0", "ok"},
                                                {"1", "differs"},
                                                {"2", "usage"},
                                                {"3", "bad or missing file or invalid graph"},
                                                {"4", "infeasible budget"},
                                                {"5", "execution error"},
                                                {"6", "no such device or built without it"},
                                                {"130", "interrupted"}};

std::string program_help();
std::string command_help(const Command& command);
std::string usage_line(const Command& command);  // "tapedeck plan [OPTIONS] FILE"

}  // namespace tapedeck::tool
