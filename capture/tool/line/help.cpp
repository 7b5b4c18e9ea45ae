// Lays out the help: a heading for each group, the names in a column, the sentences beside them, wrapped.
//
//     Plan:
//       --budget SIZE        Plan for a peak of at most this many bytes: 64MiB, 1.5GB, 50%.
//       -o, --output FILE    Write the file with its plan here.
#include <tapedeck/capture/tool/line/examples.h>
#include <tapedeck/capture/tool/line/help.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tapedeck::tool {

namespace {

constexpr std::size_t kWidth = 110, kMostColumn = 28;

std::string wrapped(const std::string& text, std::size_t indent) {
  std::string lines, line;
  const auto flush = [&] {
    lines += (lines.empty() ? "" : "\n" + std::string(indent, ' ')) + line;
    line.clear();
  };
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t space = std::min(text.find(' ', from), text.size());
    const std::string word = text.substr(from, space - from);
    if (!line.empty() && indent + line.size() + 1 + word.size() > kWidth) flush();
    line += (line.empty() ? "" : " ") + word;
    from = space + 1;
  }
  flush();
  return lines;
}

// Two or three lines: the sizes, and the exit codes.
std::string footer() {
  std::string codes = "Exit codes: ";
  for (const auto& [code, meaning] : kExitCodes)
    codes += fmt::format("{}{} {}", codes.back() == ' ' ? "" : ", ", code, meaning);
  return fmt::format("{}\n{}.\n", kSizes, wrapped(codes, 0));
}

std::string section(const std::string& title, const std::vector<OptionText>& rows, std::size_t column) {
  if (rows.empty()) return "";
  std::string text = "\n" + title + ":\n";
  for (const OptionText& row : rows) {
    text += "  " + row.left;
    text += row.left.size() + 2 <= column ? std::string(column - row.left.size(), ' ') : "\n" + std::string(column + 2, ' ');
    text += wrapped(row.right, column + 2) + "\n";
  }
  return text;
}

}  // namespace

OptionText option_text(const Option& o) {
  std::string left = o.letter ? fmt::format("-{}, {}", o.letter, o.name) : o.name;
  if (!is_flag(o) && !is_argument(o)) left += " " + o.metavar;
  if (is_list(o)) left += o.several == Several::words || o.several == Several::rest ? " ..." : "";
  std::string right = o.help;
  const bool names_all = std::all_of(o.choices.begin(), o.choices.end(),
                                     [&](const std::string& choice) { return o.help.find(choice) != std::string::npos; });
  if (!names_all) right += fmt::format(" One of: {}.", fmt::join(o.choices, ", "));
  if (is_list(o) && o.several == Several::again) right += " May be given again.";
  if (const std::string fallback = default_text(o); o.required && !is_argument(o))
    right += " Required.";
  else if (!o.required && !fallback.empty())
    right += fmt::format(" Default: {}.", fallback);
  return {left, right};
}

namespace {

// The options under their headings. The headings stand in the order in which the options name them, and the heading that has
// --help comes last: "Output", or "Options" in the help of the whole program.
std::string option_sections(const std::vector<Option>& options, bool has_version) {
  std::vector<std::string> titles;
  const auto title_of = [](const Option& o) {
    return is_argument(o) ? std::string("Arguments") : o.group.empty() ? std::string("Options") : o.group;
  };
  std::vector<OptionText> help = {{"-h, --help", "Print this help."}};
  if (has_version) help.push_back({"--version", "Print the version."});
  std::size_t column = 12;
  for (const Option& o : options) {
    if (std::find(titles.begin(), titles.end(), title_of(o)) == titles.end()) titles.push_back(title_of(o));
    column = std::max(column, std::min(option_text(o).left.size() + 2, kMostColumn));
  }
  const std::string last = has_version ? "Options" : "Output";
  if (std::find(titles.begin(), titles.end(), last) == titles.end()) titles.push_back(last);
  std::rotate(std::find(titles.begin(), titles.end(), last), std::find(titles.begin(), titles.end(), last) + 1, titles.end());
  std::string text;
  for (const std::string& title : titles) {
    std::vector<OptionText> rows;
    for (const Option& o : options)
      if (title_of(o) == title) rows.push_back(option_text(o));
    if (title == last) rows.insert(rows.end(), help.begin(), help.end());
    text += section(title, rows, column);
  }
  return text;
}

// The column of the meanings is as wide as the longest line.
std::string example_section(const Command& command) {
  std::vector<OptionText> rows;
  std::size_t column = 0;
  for (const CommandExample& example : examples_of(command.name)) {
    rows.push_back({example.line, example.meaning});
    column = std::max(column, rows.back().left.size() + 2);
  }
  return section("Examples", rows, column);
}

}  // namespace

std::string usage_line(const Command& command) {
  std::string text = "tapedeck " + command.name + " [OPTIONS]";
  for (const Option& o : command.options)
    if (o.required && !is_argument(o)) text += fmt::format(" {} {}", o.letter ? std::string{'-', o.letter} : o.name, o.metavar);
  for (const Option& o : command.options)
    if (is_argument(o)) {
      const std::string name = o.name + (is_list(o) ? " ..." : "");
      text += o.required ? " " + name : " [" + name + "]";
    }
  return text;
}

std::string command_help(const Command& command) {
  const std::string notes = command.notes.empty() ? "" : command.notes + "\n";
  return fmt::format("{}\n\nUsage: {}\n{}{}\n{}{}", command.help, usage_line(command), option_sections(command.options, false),
                     example_section(command), notes, footer());
}

std::string program_help() {
  std::string text = fmt::format("{}\n\nUsage: tapedeck [OPTIONS] COMMAND [ARGUMENTS]\n", kDescription);
  for (int g = 0; g < kCommandGroups; ++g) {
    std::vector<OptionText> rows;
    for (const Command* c : all_commands())
      if (c->group == static_cast<CommandGroup>(g)) rows.push_back({c->name, c->help});
    text += section(heading(static_cast<CommandGroup>(g)), rows, 13);
  }
  text += option_sections(program().options, true);
  return text + "\nBegin with:\n  tapedeck record lenet -o lenet.tape\n  tapedeck plan lenet.tape --budget 70%\n" +
         "`tapedeck COMMAND --help` explains the options of a command.\n\n" + footer();
}

}  // namespace tapedeck::tool
