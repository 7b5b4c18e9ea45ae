#include <tapedeck/capture/tool/line/examples.h>
#include <tapedeck/capture/tool/line/help.h>
#include <tapedeck/capture/tool/line/man_page.h>

#include <tapedeck/engine/eager/settings.h>

#include <fmt/format.h>

#include <string_view>

namespace tapedeck::tool {

namespace {

// Text as it may stand on a line: a backslash and a minus are escaped, and no line begins with a dot or a quote, which would be
// a request of the language.
std::string escaped(std::string_view text) {
  std::string result;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && (c == '.' || c == '\'')) result += "\\&";
    at_start = c == '\n';
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
  }
  return result;
}

std::string entry(const std::string& left, const std::string& right) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", escaped(left), escaped(right));
}

std::string options_text(const std::vector<Option>& options) {
  std::string text;
  for (const Option& o : options) {
    const OptionText row = option_text(o);
    text += entry(row.left, row.right);
  }
  return text;
}

std::string command_text(const Command& c) {
  std::string text = fmt::format(".SS {}\n{}\n.PP\n\\fB{}\\fR\n", escaped(c.name), escaped(c.help), escaped(usage_line(c)));
  text += options_text(c.options);
  for (const CommandExample& example : examples_of(c.name))
    text += fmt::format(".PP\n{}\n.nf\n    {}\n.fi\n", escaped(example.meaning), escaped(example.line));
  if (!c.notes.empty()) text += fmt::format(".PP\n.nf\n{}\n.fi\n", escaped(c.notes));
  return text;
}

}  // namespace

std::string man_page() {
  std::string text = fmt::format(".TH TAPEDECK 1 \"\" \"tapedeck {}\" \"User Commands\"\n", TAPEDECK_VERSION);
  text += ".SH NAME\ntapedeck \\- record, plan and replay tensor programs\n";
  text += ".SH SYNOPSIS\n\\fBtapedeck\\fR [OPTIONS] COMMAND [ARGUMENTS]\n";
  text += fmt::format(".SH DESCRIPTION\n{}\n.PP\n{}\n", escaped(kDescription), escaped(kSizes));
  text += ".SH OPTIONS\n";
  text += options_text(program().options);
  text += entry("-h, --help", "Print the help of the program, or of the command before it.");
  text += entry("--version", "Print the version.");
  text += ".SH COMMANDS\n";
  for (const Command* c : all_commands()) text += command_text(*c);
  text += ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : kExitCodes) text += entry(code, meaning);
  text += ".SH ENVIRONMENT\n";
  for (const SettingDoc& s : setting_docs())
    text += entry(s.name, fmt::format("{}. Values: {}; default: {}.", s.meaning, s.values, s.fallback));
  text += ".SH EXAMPLES\n";
  for (const char* line : {"tapedeck record lenet -o lenet.tape", "tapedeck plan lenet.tape --budget 70% -o planned.tape",
                           "tapedeck replay planned.tape --steps 5 --check-eager"})
    text += fmt::format(".PP\n.nf\n{}\n.fi\n", escaped(line));
  return text;
}

}  // namespace tapedeck::tool
