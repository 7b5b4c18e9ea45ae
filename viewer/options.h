// The command line of tapedeck-viewer.
#pragma once

#include <tapedeck/capture/file/file_costs.h>
#include <tapedeck/viewer/commands.h>
#include <tapedeck/viewer/compare/compare_picture.h>
#include <tapedeck/viewer/drawing/picture.h>
#include <tapedeck/viewer/saved/session_file.h>
#include <tapedeck/viewer/words/colours.h>
#include <tapedeck/viewer/words/format.h>

#include <optional>
#include <string>
#include <vector>

namespace tapedeck::viewer {

// The exit codes, equal to those of the command-line tool.
enum ExitCode { kOk = 0, kUsage = 2, kBadFile = 3, kInfeasible = 4, kExecution = 5 };

// The parsed command line. Empty texts mean that the option is not given.
struct Options {
  std::string file, compare, shot, panel, csv, profile;
  int width = 1600, height = 900;
  Budget budget;
  Renderer renderer = Renderer::automatic;
  CostSource costs = CostSource::best;
  std::vector<const Command*> run;
  std::optional<Theme> theme;
  double scale = 0;                 // 0: not given
  std::optional<bool> session;      // --session, --no-session
  std::optional<std::string> live;  // --live: a process, a folder, or empty
  bool help = false, version = false, commands = false;

  bool unattended() const { return !shot.empty() || !csv.empty(); }  // no window is opened
  // A picture, a table and a list of commands depend on the command line only, unless it asks for the session; and nothing
  // unattended writes one.
  Sessions sessions() const;
  CompareLook look_after_run(CompareLook look) const;  // what --run makes of the look of a comparison
};

// Parses the arguments after the program's name. Returns false and sets `error`, one line, for an unknown or wrong argument.
bool parse_options(const std::vector<std::string>& arguments, Options* options, std::string* error);
std::string usage_text();
// Says what is wrong with the name of a picture; empty if a picture of this name can be written: .png, .svg
// or .pdf.
std::string picture_name_problem(const std::string& path);

}  // namespace tapedeck::viewer
