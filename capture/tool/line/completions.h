// Scripts that teach a shell to complete the tool's command lines, from the table of commands.
#pragma once

#include <tapedeck/capture/tool/line/command.h>

#include <string>
#include <vector>

namespace tapedeck::tool {

// `shell` is bash, zsh or fish.
std::string completions(const std::string& shell);

}  // namespace tapedeck::tool
