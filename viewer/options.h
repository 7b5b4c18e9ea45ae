// The command line of tapedeck-viewer.
#pragma once

#include <tapedeck/viewer/model/format.h>
#include <tapedeck/viewer/picture.h>

#include <string>
#include <vector>

namespace tapedeck::viewer {

// Exit codes, the same as the tool's.
enum ExitCode { kOk = 0, kUsage = 2, kBadFile = 3, kInfeasible = 4, kExecution = 5 };

struct Options {
  std::string file, compare, shot, panel;
  int width = 1600, height = 900;
  Budget budget;
  Renderer renderer = Renderer::automatic;
  bool help = false, version = false;
};

// False with a one-line `error` on anything it does not know. `arguments` are those after the program's name.
bool parse_options(const std::vector<std::string>& arguments, Options* options, std::string* error);
const char* usage_text();
const std::vector<std::string>& panel_names();  // memory curve nodes details decisions

}  // namespace tapedeck::viewer
