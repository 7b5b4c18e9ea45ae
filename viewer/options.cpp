// Parses the command line of tapedeck-viewer: a file, and options with values. Every error is one line that names the argument
// and the accepted form.
#include <tapedeck/viewer/options.h>

#include <tapedeck/viewer/drawing/theme.h>
#include <tapedeck/viewer/panels/panels.h>

#include <tapedeck/engine/text/suggest.h>

#include <algorithm>
#include <cstdlib>

namespace tapedeck::viewer {

namespace {

bool parse_size(const std::string& text, int* width, int* height) {
  const std::size_t x = text.find('x');
  if (x == std::string::npos || x == 0 || x > 5 || text.size() - x - 1 > 5) return false;
  const auto digits = [](const std::string& s) { return !s.empty() && s.find_first_not_of("0123456789") == std::string::npos; };
  if (!digits(text.substr(0, x)) || !digits(text.substr(x + 1))) return false;
  *width = std::atoi(text.c_str());
  *height = std::atoi(text.c_str() + x + 1);
  return *width >= 64 && *height >= 64 && *width <= 16384 && *height <= 16384;
}

// "150" or "150%", from kLeastScale to kMostScale.
bool parse_scale(std::string text, double* scale) {
  if (text.ends_with('%')) text.pop_back();
  if (text.empty() || text.size() > 3 || text.find_first_not_of("0123456789") != std::string::npos) return false;
  *scale = std::atoi(text.c_str()) / 100.0;
  return *scale >= kLeastScale && *scale <= kMostScale;
}

bool is_compare_command(const std::string& id) {
  return std::find(compare_commands().begin(), compare_commands().end(), id) != compare_commands().end();
}

// "a, b or c"
std::string list_of(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

bool parse_renderer(const std::string& text, Renderer* renderer) {
  if (text == "auto")
    *renderer = Renderer::automatic;
  else if (text == "gl")
    *renderer = Renderer::gl;
  else if (text == "soft")
    *renderer = Renderer::soft;
  else
    return false;
  return true;
}

}  // namespace

std::string usage_text() {
  return "Usage: tapedeck-viewer [FILE] [options]\n"
         "\n"
         "Shows the memory plan of a .tape file or a .graph text: addresses x time, live bytes, nodes, decisions.\n"
         "\n"
         "  --budget SIZE|PCT%      plan under this budget (64MiB, 1.5GB; percent of the peak of keeping everything)\n"
         "  --costs SOURCE          where microseconds come from: best, estimate, calibrated, profile (default best, as the "
         "tool)\n"
         "  --profile FILE.tape     times and peak of `tapedeck replay --profile --save`, beside those of the plan\n"
         "  --compare FILE          two plans side by side, on the same scales; --budget then means the second; with "
         "--export:\n"
         "                          the table of what differs\n"
         "  --live [PID|FOLDER]     watch a running program (TAPEDECK_VIEW=1 ./program); --shot and --export take what is "
         "there\n"
         "  --shot FILE.png|svg|pdf write a picture unattended and leave; needs no display\n"
         "  --size WxH              of the window or the picture (default 1600x900)\n"
         "  --panel NAME            with --shot or --export: only this panel: " +
         panel_list() +
         "\n"
         "  --export FILE.csv       write the numbers of --panel and leave\n"
         "  --run ID,ID,...         run these commands in order, when the file and its plan are there\n"
         "  --session               begin as the session beside the file says, with --shot, --export and --run too\n"
         "  --no-session            neither read the session beside the file nor write one\n"
         "  --theme NAME            " +
         theme_list() +
         "\n"
         "  --scale PERCENT         how large everything is, 75 to 300 (default 100)\n"
         "  --renderer auto|gl|soft how the canvases are drawn (default auto: OpenGL where there is a GPU)\n"
         "  --commands              list the commands: ID, sentence, keys\n"
         "  --help, --version\n"
         "\n"
         "Exit codes: 0 ok, 2 usage, 3 bad or missing file, 4 the budget cannot be met (the picture shows why), 5 other "
         "failures.\n";
}

Sessions Options::sessions() const {
  if (!session.value_or(!unattended() && run.empty())) return Sessions::off;
  return unattended() ? Sessions::read : Sessions::read_and_write;
}

CompareLook Options::look_after_run(CompareLook look) const {
  for (const Command* command : run) look = look_after(look, command->id);
  return look;
}

std::string picture_name_problem(const std::string& path) {
  for (const char* ending : {".png", ".svg", ".pdf"})
    if (path.ends_with(ending)) return "";
  return "pictures are written as .png, .svg or .pdf, and '" + path + "' ends otherwise";
}

bool parse_options(const std::vector<std::string>& arguments, Options* options, std::string* error) {
  const auto fail = [&](const std::string& text) {
    *error = text;
    return false;
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i], value;
    if (name == "--help" || name == "-h") {
      options->help = true;
      continue;
    }
    if (name == "--version") {
      options->version = true;
      continue;
    }
    if (name == "--commands") {
      options->commands = true;
      continue;
    }
    if (name == "--session" || name == "--no-session") {
      if (options->session.has_value() && *options->session != (name == "--session"))
        return fail("--session and --no-session exclude each other");
      options->session = name == "--session";
      continue;
    }
    if (name == "--live") {
      const bool has_value = i + 1 < arguments.size() && !arguments[i + 1].starts_with("-");
      options->live = has_value ? arguments[++i] : "";
      continue;
    }
    if (name.starts_with("--live=")) {
      options->live = name.substr(7);
      continue;
    }
    if (name.empty() || name[0] != '-') {
      if (!options->file.empty())
        return fail("more than one file: '" + options->file + "' and '" + name + "'; two are shown with --compare");
      options->file = name;
      continue;
    }
    const std::size_t equals = name.find('=');
    if (equals != std::string::npos && name.starts_with("--")) {
      value = name.substr(equals + 1);
      name.resize(equals);
    } else {
      static const std::vector<std::string> known = {"--shot",    "--size",     "--panel",   "--budget",     "--renderer",
                                                     "--compare", "--run",      "--costs",   "--theme",      "--scale",
                                                     "--export",  "--profile",  "--session", "--no-session", "--help",
                                                     "--version", "--commands", "--live",    "-platform",    "-style"};
      if (std::find(known.begin(), known.end(), name) == known.end())
        return fail("unknown option " + name + did_you_mean(name, {known.begin(), known.end()}));
      if (i + 1 == arguments.size()) return fail(name + " needs a value");
      if (arguments[i + 1].starts_with("--")) return fail(name + " needs a value, and " + arguments[i + 1] + " is an option");
      value = arguments[++i];
    }
    if (name == "--shot" && !value.empty())
      options->shot = value;
    else if (name == "--export" && !value.empty())
      options->csv = value;
    else if (name == "--compare" && !value.empty())
      options->compare = value;
    else if (name == "--profile" && !value.empty())
      options->profile = value;
    else if (name == "--costs") {
      if (!parse_cost_source(value, &options->costs))
        return fail("--costs takes best, estimate, calibrated or profile, not '" + value + "'");
    } else if (name == "--run") {
      if (!parse_commands(value, &options->run, error)) return fail("--run: " + *error);
    } else if (name == "--panel")
      options->panel = value;
    else if (name == "-platform" || name == "-style")
      continue;  // an option of Qt itself
    else if (name == "--size") {
      if (!parse_size(value, &options->width, &options->height))
        return fail("--size wants WIDTHxHEIGHT, each 64 to 16384, not '" + value + "'");
    } else if (name == "--budget") {
      if (!parse_budget(value, &options->budget))
        return fail("--budget wants a size such as 64MiB or a percentage such as 60%, not '" + value + "'");
    } else if (name == "--theme") {
      Theme theme{};
      if (!find_theme(value, &theme)) return fail("--theme wants one of " + theme_list() + ", not '" + value + "'");
      options->theme = theme;
    } else if (name == "--scale") {
      if (!parse_scale(value, &options->scale)) return fail("--scale wants percent from 75 to 300, not '" + value + "'");
    } else if (name == "--renderer") {
      if (!parse_renderer(value, &options->renderer)) return fail("--renderer wants auto, gl or soft, not '" + value + "'");
    } else {
      const bool is_switch = name == "--help" || name == "--version" || name == "--commands" || name.ends_with("session");
      if (is_switch) return fail(name + " takes no value");
      return fail(value.empty() ? name + " needs a value" : "unknown option " + name);
    }
  }
  if (options->help || options->version || options->commands) return true;
  if (options->panel == "compare") {
    if (options->compare.empty()) return fail("--panel compare needs --compare FILE");
    options->panel.clear();
  }
  if (options->panel == "live") options->panel = "curve";  // the panel Live bytes
  if (options->live && !(options->file + options->compare + options->panel).empty())
    return fail("--live shows a running program, and goes with no FILE, --compare or --panel");
  const bool is_start = options->panel == "start";
  if (is_start && !options->file.empty()) return fail("--panel start is the page without a FILE");
  if (is_start && !options->csv.empty()) return fail("--panel start has no table to export");
  if (!options->panel.empty() && !is_start && find_panel(options->panel) == nullptr)
    return fail("no panel '" + options->panel + "'; there are " + panel_list() + ", compare, start");
  if (!options->panel.empty() && !options->unattended()) return fail("--panel goes with --shot or --export");
  if (!options->panel.empty() && !options->compare.empty()) return fail("--panel and --compare exclude each other");
  if (!options->shot.empty() && !picture_name_problem(options->shot).empty())
    return fail("--shot: " + picture_name_problem(options->shot));
  if (!options->run.empty() && options->file.empty()) return fail("--run needs a FILE");
  if (!options->compare.empty())
    for (const Command* command : options->run)
      if (!is_compare_command(command->id))
        return fail("--compare goes with --run " + list_of(compare_commands()) + ", not " + command->id);
  if (!options->shot.empty() && options->file.empty() && !options->live && !is_start) return fail("--shot needs a FILE");
  if (!options->csv.empty() && options->file.empty() && !options->live) return fail("--export needs a FILE");
  if (!options->csv.empty() && options->compare.empty() && !options->live && options->panel.empty())
    return fail("--export writes the numbers of one panel: add --panel with one of " + panel_list());
  if (!options->csv.empty() && !options->csv.ends_with(".csv"))
    return fail("--export writes a .csv file, and " + options->csv + " ends otherwise");
  if (!options->profile.empty() && options->file.empty()) return fail("--profile needs a FILE whose plan it is compared with");
  if (!options->profile.empty() && !options->compare.empty()) return fail("--profile and --compare exclude each other");
  if (!options->compare.empty() && options->file.empty()) return fail("--compare needs a FILE to compare with");
  return true;
}

}  // namespace tapedeck::viewer
