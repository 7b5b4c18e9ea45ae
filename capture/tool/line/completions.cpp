// One function for each shell writes the script of the whole table. A value is completed with the words that an option takes
// or offers, else with names of files where it is a file, else not at all.
#include <tapedeck/capture/tool/line/completions.h>
#include <tapedeck/capture/tool/line/help.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tapedeck::tool {

namespace {

std::vector<std::string> words_for(const Option& o) {
  return !o.choices.empty() ? o.choices : o.words ? o.words() : std::vector<std::string>();
}

// The text as it may stand in single quotes: without its quotes, and with a backslash before each character of `escaped`, which
// are characters of the syntax of zsh.
std::string quotable(const std::string& text, const char* escaped = "") {
  std::string result;
  for (const char c : text) {
    if (c == '\'') continue;
    if (std::string_view(escaped).find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

// ---- bash ----

std::string bash_names(const Option& o) { return o.letter ? fmt::format("-{} {}", o.letter, o.name) : o.name; }

std::string bash_offer(const std::vector<std::string>& words, bool with_files) {
  if (!words.empty())
    return fmt::format("mapfile -t COMPREPLY < <(compgen {}-W '{}' -- \"$cur\")", with_files ? "-f " : "",
                       fmt::join(words, " "));
  return with_files ? "mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")" : "COMPREPLY=()";
}

std::string bash_value(const Option& o) { return bash_offer(words_for(o), takes_files(o)); }

// The words that the shell offers for an argument. They are the same for every argument of a command, whatever its place.
std::string bash_arguments(const std::vector<Option>& options) {
  std::vector<std::string> words;
  bool with_files = false, has_any = false;
  for (const Option& o : options) {
    if (!is_argument(o)) continue;
    has_any = true;
    with_files = with_files || takes_files(o);
    const std::vector<std::string> more = words_for(o);
    words.insert(words.end(), more.begin(), more.end());
  }
  return has_any ? bash_offer(words, with_files) : "";
}

std::string bash_values(const std::string& command, const std::vector<Option>& options) {
  std::string cases;
  for (const Option& o : options) {
    if (is_flag(o) || is_argument(o)) continue;
    const std::string with_letter = o.letter ? fmt::format(" | {}/-{}", command, o.letter) : "";
    // After a word that may stand alone anything can follow; its choices are offered beside the rest.
    if (o.bare.empty())
      cases += fmt::format("    {}/{}{}) {}; return ;;\n", command, o.name, with_letter, bash_value(o));
    else
      cases += fmt::format("    {}/{}) {}; [[ $COMPREPLY ]] && return ;;\n", command, o.name, bash_value(o));
  }
  return cases;
}

std::string bash_line(const std::string& command, const std::vector<Option>& options) {
  std::string names = kHelpOption;
  const std::string values = bash_arguments(options);
  for (const Option& o : options)
    if (!is_argument(o)) names += " " + bash_names(o);
  return fmt::format("    {}) names='{}'{} ;;\n", command, names,
                     values.empty() ? "" : "; [[ $cur != -* ]] && { " + values + "; return; }");
}

std::string bash_script() {
  std::string commands, values = bash_values("", program().options), lines;
  std::string before = kVersionOption, skipped;
  for (const Option& o : program().options) {
    before += " " + bash_names(o);
    if (!is_flag(o)) skipped += (skipped.empty() ? "" : " | ") + o.name;
  }
  for (const Command* c : all_commands()) {
    commands += " " + c->name;
    values += bash_values(c->name, c->options);
    lines += bash_line(c->name, c->options);
  }
  return fmt::format(R"(# Completions of tapedeck for bash. In ~/.bashrc: source <(tapedeck completions bash)
_tapedeck() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} command= names= i
  COMPREPLY=()
  # --option=value is three words for bash.
  if [[ $cur == = ]]; then cur=
  elif [[ $prev == = ]]; then prev=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${{COMP_WORDS[i]}} in
      {}) ((++i)) ;;
      -*) ;;
      *) command=${{COMP_WORDS[i]}}; break ;;
    esac
  done
  case $command/$prev in
{}  esac
  case $command in
{}    *) names='{}{} {}' ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$names" -- "$cur")
}}
complete -o filenames -F _tapedeck tapedeck
)",
                     skipped, values, lines, kHelpOption, commands, before);
}

// ---- zsh ----

std::string zsh_spec(const Option& o) {
  const std::string help = quotable(first_sentence(o), "[]:");
  const std::vector<std::string> words = words_for(o);
  const std::string action = !words.empty() && !takes_files(o) ? fmt::format("({})", fmt::join(words, " "))
                             : !words.empty()
                                 ? fmt::format("_alternative \"words:name:({})\" \"files:file:_files\"", fmt::join(words, " "))
                             : takes_files(o) ? "_files"
                                              : " ";
  if (is_argument(o)) return fmt::format("'{}:{}:{}'", is_list(o) ? "*" : "", quotable(o.name, ":"), action);
  const std::string value =
      is_flag(o) ? "" : fmt::format("{}:{}:{}", o.bare.empty() ? "" : ":", quotable(o.metavar, ":"), action);
  const std::string again = is_list(o) ? "*" : "";
  std::string spec = fmt::format("'{}{}{}[{}]{}'", again, o.name, is_flag(o) ? "" : "=", help, value);
  if (o.letter) spec += fmt::format(" '{}-{}[{}]{}'", again, o.letter, help, value);
  return spec;
}

std::string zsh_script() {
  std::string specs, names, cases;
  for (const Option& o : program().options) specs += "    " + zsh_spec(o) + " \\\n";
  for (const Command* c : all_commands()) {
    names += fmt::format("        '{}:{}'\n", c->name, quotable(c->help, ":"));
    cases += fmt::format("        {})\n          _arguments '--help[Print the help]'", c->name);
    for (const Option& o : c->options) cases += " \\\n            " + zsh_spec(o);
    cases += " ;;\n";
  }
  return fmt::format(R"(#compdef tapedeck
# Completions of tapedeck for zsh. In a folder of $fpath: tapedeck completions zsh > _tapedeck
_tapedeck() {{
  local context state line
  typeset -A opt_args
  _arguments -C '--help[Print the help]' '--version[Print the version]' \
{}    '1:command:->command' '*::argument:->argument'
  case $state in
    command)
      local -a commands
      commands=(
{}      )
      _describe command commands ;;
    argument)
      case $words[1] in
{}      esac ;;
  esac
}}
if [ "$funcstack[1]" = _tapedeck ]; then _tapedeck "$@"; else compdef _tapedeck tapedeck; fi
)",
                     specs, names, cases);
}

// ---- fish ----

std::string fish_line(const std::string& condition, const Option& o) {
  const std::vector<std::string> words = words_for(o);
  std::string text = fmt::format("complete -c tapedeck -n '{}'", condition);
  if (!is_argument(o)) text += " -l " + o.name.substr(2) + (o.letter ? std::string(" -s ") + o.letter : "");
  if (!is_flag(o) && !is_argument(o) && o.bare.empty()) text += " -r";
  if (takes_files(o)) text += " -F";
  if (!words.empty()) text += fmt::format(" -a '{}'", fmt::join(words, " "));
  return text + (is_argument(o) ? "\n" : fmt::format(" -d '{}'\n", quotable(first_sentence(o))));
}

std::string fish_script() {
  std::string text =
      "# Completions of tapedeck for fish: tapedeck completions fish > ~/.config/fish/completions/tapedeck.fish\n"
      "complete -c tapedeck -f\n"
      "complete -c tapedeck -l help -s h -d 'Print the help'\n"
      "complete -c tapedeck -n __fish_use_subcommand -l version -d 'Print the version'\n";
  for (const Option& o : program().options) text += fish_line("__fish_use_subcommand", o);
  for (const Command* c : all_commands()) {
    text += fmt::format("complete -c tapedeck -n __fish_use_subcommand -a {} -d '{}'\n", c->name, quotable(c->help));
    for (const Option& o : c->options) text += fish_line("__fish_seen_subcommand_from " + c->name, o);
  }
  return text;
}

}  // namespace

std::string completions(const std::string& shell) {
  return shell == "bash" ? bash_script() : shell == "zsh" ? zsh_script() : fish_script();
}

}  // namespace tapedeck::tool
