// The help text of the program and of its commands, from the table of commands.
#pragma once

#include <tapedeck/capture/tool/line/command.h>

#include <string>

namespace tapedeck::tool {

// Options that stand before the command; --help and --version are everywhere the same.
inline constexpr const char* kHelpOption = "--help";
inline constexpr const char* kVersionOption = "--version";

std::string program_help();
std::string command_help(const Command& command);
std::string usage_line(const Command& command);  // "tapedeck plan [OPTIONS] FILE"

}  // namespace tapedeck::tool
