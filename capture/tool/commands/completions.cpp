// completions, man: the script that teaches a shell the commands and options of this program, and the manual page.
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/line/completions.h>
#include <tapedeck/capture/tool/line/man_page.h>

namespace tapedeck::tool {

namespace {

struct CompletionsOptions {
  std::string shell;
};

std::vector<Option> completions_table(CompletionsOptions& o) {
  return {{.name = "SHELL", .to = &o.shell, .help = "The shell.", .required = true, .choices = {"bash", "zsh", "fish"}}};
}

int run_completions(const CompletionsOptions& options) {
  const std::string script = completions(options.shell);
  answer(script);
  return kOk;
}

struct ManOptions {
  std::string output;
};

std::vector<Option> man_options(ManOptions& o) {
  return {{.name = "--output",
           .letter = 'o',
           .metavar = "FILE",
           .to = &o.output,
           .help = "Write the page here.",
           .group = "Output",
           .fallback = "stdout"}};
}

int run_man(const ManOptions& options) {
  check_outputs({}, {{"-o", options.output, true}});
  write_text(options.output.empty() ? "-" : options.output, man_page());
  return kOk;
}

[[maybe_unused]] const bool man_registered =
    register_command("man", CommandGroup::lists, "Print the manual page: every command and every option.", man_options, run_man,
                     "tapedeck man -o tapedeck.1 && man ./tapedeck.1");
[[maybe_unused]] const bool completions_registered = register_command(
    "completions", CommandGroup::lists, "Print a script with which bash, zsh or fish completes commands and options.",
    completions_table, run_completions,
    "bash: add `source <(tapedeck completions bash)` to ~/.bashrc.\n"
    "zsh:  tapedeck completions zsh > _tapedeck, in a folder of $fpath.\n"
    "fish: tapedeck completions fish > ~/.config/fish/completions/tapedeck.fish");

}  // namespace

}  // namespace tapedeck::tool
