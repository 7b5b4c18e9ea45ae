// run: compiles a C++ script against the library of this tool, and runs it. A script that was compiled before runs at once.
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/child.h>
#include <tapedeck/capture/tool/files/missing_file.h>
#include <tapedeck/capture/tool/files/picture.h>
#include <tapedeck/capture/tool/files/script_cache.h>
#include <tapedeck/capture/tool/files/script_compiler.h>
#include <tapedeck/capture/tool/files/temporary_folder.h>
#include <tapedeck/capture/tool/files/terminal.h>

#include <tapedeck/capture/formats/file_checksum.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

namespace tapedeck::tool {

namespace {

namespace fs = std::filesystem;

struct RunOptions {
  std::string script;
  std::vector<std::string> arguments;
  std::vector<std::string> flags;
  bool view = false;
};

std::vector<Option> run_table(RunOptions& o) {
  return {
      {.name = "FILE.cpp", .to = &o.script, .help = "The script: a C++ program with a main().", .required = true},
      {.name = "ARGUMENT",
       .to = &o.arguments,
       .help = "Words for the script, also those that begin with a dash.",
       .several = Several::rest},
      {.name = "--flag",
       .metavar = "FLAG",
       .to = &o.flags,
       .help = "A further word for the compiler: --flag=-O0, --flag=-lz.",
       .group = "Options"},
      {.name = "--view",
       .to = &o.view,
       .help = "Open the captured step in the viewer when the script ends: of the steps that capture() made, the one that was "
               "destroyed last.",
       .group = "Options"},
      {.name = "--verbose",
       .letter = 'v',
       .to = &talk().verbose,
       .help = "Print the command of the compiler, and how long it took.",
       .group = "Output"}};
}

void check_script(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  require_other_file(path);
  if (!fs::is_regular_file(status)) throw FileError(fmt::format("{}: cannot read: it is no file", path));
  // A tape or a program given by mistake would make a compiler print megabytes of errors.
  std::array<char, 4096> start{};
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), start.size());
  if (std::memchr(start.data(), 0, static_cast<std::size_t>(file.gcount())) != nullptr)
    throw FileError(fmt::format("{}: it is no C++ script, because it has a zero byte. `tapedeck replay` runs tapes.", path));
}

// The key of the program in the cache. It stands for everything that decides what the compiler makes, except the bytes of the
// files that it reads: their bytes are in the second half of the name (script_cache.h).
std::string key_of(const ScriptCompiler& compiler, const RunOptions& request) {
  std::vector<std::string> parts = compile_command(compiler, request.flags, request.script, "", "");
  parts.insert(parts.end(), {compiler.version, file_checksum(compiler.library), fs::canonical(request.script).string(),
                             fs::current_path().string()});
  return strings_checksum(parts);
}

// Whether a file was written after `began`, so that the compiler may have read other bytes than those that are there now.
bool has_changed(const std::vector<std::string>& inputs, fs::file_time_type began) {
  return std::any_of(inputs.begin(), inputs.end(), [&](const std::string& path) {
    std::error_code error;
    const fs::file_time_type written = fs::last_write_time(path, error);
    return error || written > began;
  });
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the files that the compiler has read. The compiler prints its errors, with the lines of the script, to stderr.
std::vector<std::string> compile(const ScriptCompiler& compiler, const RunOptions& request, const TemporaryFolder& making) {
  const std::vector<std::string> words =
      compile_command(compiler, request.flags, request.script, making.file("program"), making.file("inputs"));
  note(fmt::format("compiling {} ...", request.script));
  if (talk().verbose) std::fprintf(stderr, "tapedeck: %s\n", fmt::format("{}", fmt::join(words, " ")).c_str());
  const Progress progress("compiling");
  const ChildEnd end = run_child(words);
  if (end.signal == SIGINT) throw Cancelled("interrupted");
  if (end.error || end.signal)
    throw ExecutionError(fmt::format("run: the compiler {} {}", compiler.command[0],
                                     end.error ? std::strerror(end.error) : fmt::format("was ended by signal {}", end.signal)));
  if (end.code != 0) throw FileError(fmt::format("{}: it does not compile", request.script));
  return listed_inputs(text_of(making.file("inputs")));
}

// The end of the script as an exit code, as a shell gives it.
int code_of(const ChildEnd& end, const RunOptions& request, const std::string& program) {
  if (end.error) throw ExecutionError(fmt::format("run: {}: {}", program, std::strerror(end.error)));
  if (end.signal == 0) return end.code;
  std::fprintf(stderr, "tapedeck: %s was ended by signal %d (%s)\n", request.script.c_str(), end.signal, strsignal(end.signal));
  return 128 + end.signal;
}

class Script {
 public:
  explicit Script(const RunOptions& request)
      : request_(request), compiler_(find_compiler()), cache_(key_of(compiler_, request)) {}

  int run(const std::vector<std::string>& environment) const {
    if (const std::string program = cache_.find(); !program.empty()) {
      const ChildEnd end = start(program, environment);
      if (end.error != ENOENT) return code_of(end, request_, program);  // else another run has removed it as old
    }
    const fs::file_time_type began = fs::file_time_type::clock::now();
    const TemporaryFolder making(cache_.beginning_of_making());
    const std::vector<std::string> inputs = compile(compiler_, request_, making);
    const bool kept = !inputs.empty() && !has_changed(inputs, began);
    const std::string program = kept ? cache_.keep(making.file("program"), inputs) : making.file("program");
    return code_of(start(program, environment), request_, program);
  }

 private:
  ChildEnd start(const std::string& program, const std::vector<std::string>& environment) const {
    std::vector<std::string> words = {program};
    words.insert(words.end(), request_.arguments.begin(), request_.arguments.end());
    return run_child(words, {.environment = environment});
  }

  const RunOptions& request_;
  const ScriptCompiler compiler_;
  const ScriptCache cache_;
};

// The library saves the step: see CapturedStep::~CapturedStep().
int run_and_view(const RunOptions& request) {
  const std::string viewer = viewer_program();
  const TemporaryFolder folder(fs::temp_directory_path() / "tapedeck-run-");
  const std::string tape = folder.file("step.tape");
  const int code = Script(request).run({"TAPEDECK_SAVE_STEP=" + tape});
  if (!fs::exists(tape)) {
    const std::string text =
        fmt::format("{}: there is no step to view: no step that capture() made has recorded and was destroyed before the end",
                    request.script);
    if (code == kOk) throw ExecutionError(text);
    note(text);
    return code;
  }
  const ChildEnd end = run_child({viewer, tape});
  if (end.error || (code == kOk && end.code != 0))
    throw ExecutionError(end.error ? fmt::format("{}: {}", viewer, std::strerror(end.error))
                                   : fmt::format("{} ended with exit code {}", viewer, end.code));
  return code;
}

int run_script(const RunOptions& request) {
  check_script(request.script);
  return request.view ? run_and_view(request) : Script(request).run({});
}

[[maybe_unused]] const bool run_registered = register_command(
    "run", CommandGroup::record, "Compile a C++ script against this library, and run it.", run_table, run_script,
    "The exit code is that of the script, or 128 and the number of the signal that ended it. Before the script runs: 3, it is\n"
    "missing or does not compile; 6, no compiler or no viewer. CXX names another compiler. Compiled scripts are kept in\n"
    "$XDG_CACHE_HOME/tapedeck/run or ~/.cache/tapedeck/run, and used again while the script, the files that it includes, the\n"
    "compiler and the library are the same.");

}  // namespace

}  // namespace tapedeck::tool
