// The only file that knows the command-line library. It declares every option of the table to the library, and says in words of
// our own what is wrong with a command line: the name, the nearest name that exists, and the command that explains more.
#include <tapedeck/capture/tool/line/help.h>
#include <tapedeck/capture/tool/line/parse.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/suggest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>

namespace tapedeck::tool {

namespace {

std::string names_of(const Option& o) { return o.letter ? fmt::format("-{},{}", o.letter, o.name) : o.name; }

CLI::Option* declare(CLI::App* app, const Option& o) {
  const auto add = [&](auto* member) -> CLI::Option* {
    using Member = std::remove_pointer_t<decltype(member)>;
    if constexpr (std::is_same_v<Member, bool>)
      return app->add_flag(names_of(o), *member);
    else
      return app->add_option(names_of(o), *member);
  };
  CLI::Option* option = std::visit(add, o.to);
  option->required(o.required);
  if (is_flag(o)) return option;
  option->type_name(o.metavar);
  if (is_list(o) && o.several != Several::words) option->allow_extra_args(false);
  if (is_list(o) && o.several == Several::commas) option->delimiter(',');
  return option->check(CLI::Validator([&o](std::string& text) { return fault_of(o, text); }, ""));
}

void declare_all(CLI::App* app, const std::vector<Option>& options) {
  for (const Option& o : options)
    if (!takes_rest(o)) declare(app, o);
  for (const Option& o : options)
    if (!o.excludes.empty()) app->get_option(o.name)->excludes(app->get_option(o.excludes));
}

// ---- an option that may stand alone ----

// The words of the line, reversed as the library takes them. `--explain segments` becomes `--explain=segments`, and a bare
// `--explain FILE` becomes `--explain=choices FILE`.
struct Words {
  std::vector<std::string> all;
  const Option* lone = nullptr;  // the last such option on the line ...
  std::string after;             // ... and the word behind it and its value
};

const Option* lone_option(const std::string& word) {
  for (const Command* c : all_commands())
    for (const Option& o : c->options)
      if (!o.bare.empty() && o.name == word) return &o;
  return nullptr;
}

bool is_offered(const Option& o, const std::string& word) {
  const std::vector<std::string> offered = o.words ? o.words() : o.choices;
  return std::find(offered.begin(), offered.end(), word) != offered.end();
}

// A word that names no file: `--explain relu.3` names a value, and `--explain c.tape` stands alone. %c.tape is a value.
bool may_be_value(const Option& o, const std::string& word) {
  if (!o.words || word.empty() || word[0] == '-') return false;
  if (word[0] == '%') return true;
  const bool is_file = word.find('/') != std::string::npos || word.ends_with(".tape") || word.ends_with(".graph");
  std::error_code none;
  return !is_file && !std::filesystem::exists(word, none);
}

Words words_of(int argc, char** argv) {
  Words words;
  for (int i = 1; i < argc; ++i) {
    words.all.emplace_back(argv[i]);
    const Option* o = lone_option(argv[i]);
    if (!o) continue;
    const bool has_value = i + 1 < argc && (is_offered(*o, argv[i + 1]) || may_be_value(*o, argv[i + 1]));
    words.all.back() += "=" + (has_value ? std::string(argv[++i]) : o->bare);
    if (i + 1 >= argc || argv[i + 1][0] == '-') continue;
    words.lone = o;
    words.after = argv[i + 1];
  }
  std::reverse(words.all.begin(), words.all.end());
  return words;
}

// ---- words for a program of the user ----

// The index of the first word from `i` on that is no option, and no value of an option.
int skip_options(int i, int argc, char** argv, const std::vector<Option>& options) {
  for (; i < argc && argv[i][0] == '-' && argv[i][1] != 0; ++i) {
    const std::string_view word = argv[i];
    const auto takes_next = [&](const Option& o) {
      return !is_argument(o) && !is_flag(o) && (word == o.name || (word.size() == 2 && word[1] == o.letter));
    };
    if (std::any_of(options.begin(), options.end(), takes_next)) ++i;
  }
  return i;
}

void hand_over(const Command& command, int from, int argc, char** argv) {
  for (const Option& o : command.options)
    if (takes_rest(o)) std::get<std::vector<std::string>*>(o.to)->assign(argv + from, argv + argc);
}

// ---- options whose order counts ----

bool is_option_word(const Option& o, std::string_view word) { return word == o.name || word.starts_with(o.name + "="); }

void note_turns(const Command& command, int argc, char** argv) {
  for (int i = 1; i < argc && argv[i] != std::string_view("--"); ++i)
    for (const Option& o : command.options)
      if (o.turns && is_option_word(o, argv[i])) o.turns->push_back(o.name);
}

// ---- faults ----

std::vector<std::string_view> names_of(const std::vector<Option>& options) {
  std::vector<std::string_view> names = {kHelpOption};
  for (const Option& o : options)
    if (!is_argument(o)) names.push_back(o.name);
  return names;
}

[[noreturn]] void refuse(const Command* c, const std::string& fault) {
  throw UsageError(fmt::format("{}{} See: tapedeck {}--help", fault, fault.back() == '?' ? "" : ".", c ? c->name + " " : ""));
}

std::string unknown_option(const Command* c, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const std::vector<Option>& options = c ? c->options : program().options;
  return fmt::format("{} has no option {}{}", c ? c->name : "tapedeck", name, did_you_mean(name, names_of(options)));
}

std::string unknown_command(const std::string& word) {
  std::vector<std::string_view> names;
  for (const Command* known : all_commands()) names.push_back(known->name);
  return fmt::format("there is no command '{}'{}", word, did_you_mean(word, names));
}

// A word too many: where it stands behind a lone option, it is meant as the value of that option.
std::string word_too_many(const Command& c, const std::string& word, const Words& words) {
  const bool is_file = words.after.find_first_of("./") != std::string::npos;
  if (words.lone && !is_file) {
    if (const std::string fault = fault_of(*words.lone, words.after); !fault.empty())
      return fmt::format("{}: {}", words.lone->name, fault);
    return fmt::format("{} takes one word; '{}' is a second", words.lone->name, words.after);
  }
  return fmt::format("{} does not take the further word '{}'; write: {}", c.name, word, usage_line(c));
}

std::string excluded(const CLI::App& app, const Command& c) {
  for (const Option& o : c.options)
    if (!o.excludes.empty() && app.count(o.name) > 0 && app.count(o.excludes) > 0)
      return fmt::format("{} and {} exclude each other; give one of them", o.name, o.excludes);
  return "";
}

std::string missing(const CLI::App& app, const Command& c) {
  for (const Option& o : c.options)
    if (o.required && app.count(o.name) == 0)
      return fmt::format("{} is missing; write: {}", is_argument(o) ? o.name : names_of(o), usage_line(c));
  return "";
}

std::string without_value(const CLI::ArgumentMismatch& e, const Command& c) {
  const std::string text = e.what();
  for (const Option& o : c.options)
    if (text.starts_with(o.name + ":")) return fmt::format("{} needs a value: {} {}", o.name, o.name, o.metavar);
  return text;
}

// The library's error in our words.
[[noreturn]] void explain(const CLI::ParseError& e, const CLI::App& app, const Words& words) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const Command* c = chosen.empty() ? nullptr : find_command(chosen[0]->get_name());
  const std::vector<std::string> rest = app.remaining(true);
  if (!c && !rest.empty() && rest[0][0] != '-') refuse(c, unknown_command(rest[0]));  // the options behind it are its own
  for (const std::string& word : rest)
    if (word.size() > 1 && word[0] == '-') refuse(c, unknown_option(c, word));
  if (!c) refuse(c, rest.empty() ? "a command is missing; write: tapedeck COMMAND [ARGUMENTS]" : unknown_command(rest[0]));
  if (dynamic_cast<const CLI::ExtrasError*>(&e) && !rest.empty()) refuse(c, word_too_many(*c, rest[0], words));
  if (const auto* mismatch = dynamic_cast<const CLI::ArgumentMismatch*>(&e)) refuse(c, without_value(*mismatch, *c));
  if (const std::string fault = excluded(*chosen[0], *c); !fault.empty()) refuse(c, fault);
  if (dynamic_cast<const CLI::RequiredError*>(&e))
    if (const std::string fault = missing(*chosen[0], *c); !fault.empty()) refuse(c, fault);
  refuse(c, e.what());
}

// `tapedeck help plan`, which other programs know, is `tapedeck plan --help`.
Parsed help_on(const std::string& name) {
  if (name.empty()) return {program_help(), nullptr};
  const Command* const command = find_command(name);
  if (!command) refuse(nullptr, unknown_command(name));
  return {command_help(*command), nullptr};
}

}  // namespace

int count_own_words(int argc, char** argv) {
  const int at = skip_options(1, argc, argv, program().options);
  const Command* const command = at < argc ? find_command(argv[at]) : nullptr;
  if (!command || !runs_user_program(*command)) return argc;
  return std::min(argc, skip_options(at + 1, argc, argv, command->options) + 1);
}

Parsed parse_line(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "help") return help_on(argc > 2 ? argv[2] : "");
  const int own = count_own_words(argc, argv);
  CLI::App app("", "tapedeck");
  app.require_subcommand(1);
  app.set_version_flag(kVersionOption, std::string("tapedeck ") + TAPEDECK_VERSION);
  declare_all(&app, program().options);
  for (const Command* c : all_commands()) declare_all(app.add_subcommand(c->name), c->options);
  Words words = words_of(own, argv);
  try {
    app.parse(std::vector<std::string>(words.all));
  } catch (const CLI::CallForVersion& e) {
    return {std::string(e.what()) + "\n", nullptr};
  } catch (const CLI::CallForHelp&) {
    const std::vector<CLI::App*> chosen = app.get_subcommands();
    return {chosen.empty() ? program_help() : command_help(*find_command(chosen[0]->get_name())), nullptr};
  } catch (const CLI::ParseError& e) {
    explain(e, app, words);
  }
  const Command* const command = find_command(app.get_subcommands()[0]->get_name());
  hand_over(*command, own, argc, argv);
  note_turns(*command, own, argv);
  return {"", command};
}

}  // namespace tapedeck::tool
