// completions: the script that teaches a shell the commands and options of this program.
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/line/completions.h>

#include <cstdio>

namespace tapedeck::tool {

namespace {

struct CompletionsOptions {
  std::string shell;
};

std::vector<Option> table(CompletionsOptions& o) {
  return {{.name = "SHELL", .to = &o.shell, .help = "The shell.", .required = true, .choices = {"bash", "zsh", "fish"}}};
}

int run(const CompletionsOptions& options) {
  const std::string script = completions(options.shell);
  answer(script);
  return kOk;
}

[[maybe_unused]] const bool registered =
    register_command("completions", CommandGroup::lists,
                     "Print a script with which bash, zsh or fish completes commands and options.", table, run,
                     "bash: add `source <(tapedeck completions bash)` to ~/.bashrc.\n"
                     "zsh:  tapedeck completions zsh > _tapedeck, in a folder of $fpath.\n"
                     "fish: tapedeck completions fish > ~/.config/fish/completions/tapedeck.fish");

}  // namespace

}  // namespace tapedeck::tool
