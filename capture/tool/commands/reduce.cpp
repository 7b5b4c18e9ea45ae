// reduce: shrinks a graph for which a shell command fails. Every candidate is written to a file in a temporary folder, and the
// command decides by its exit code whether the candidate is kept.
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/start_values.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/capture/reduce/reduce.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace tapedeck::tool {

namespace {

struct ReduceCommandOptions {
  std::string file;
  std::string check;     // a shell command, {} for the candidate's file
  int expect_exit = -1;  // -1: the exit code of the command for FILE itself, which must not be 0
  std::int64_t max_checks = 20000;
  bool keep_sizes = false;
  std::string output;
  bool json = false;
};

std::vector<Option> reduce_table(ReduceCommandOptions& o) {
  return {
      file_argument(&o.file),
      {.name = "--check",
       .metavar = "COMMAND",
       .to = &o.check,
       .help = "The shell command that fails; {} stands for the file of the candidate.",
       .required = true},
      {.name = "--expect-exit",
       .metavar = "CODE",
       .to = &o.expect_exit,
       .help = "Keep a candidate if the command exits with this code.",
       .fallback = "the exit code for FILE itself, which must not be 0",
       .least = 0,
       .most = 255},
      {.name = "--max-checks",
       .metavar = "N",
       .to = &o.max_checks,
       .help = "Run the command at most this many times.",
       .least = 1,
       .most = 1e12},
      {.name = "--keep-sizes", .to = &o.keep_sizes, .help = "Leave the dimensions as they are."},
      {.name = "--output",
       .letter = 'o',
       .metavar = "FILE",
       .to = &o.output,
       .help = "Write the graph here instead of to stdout: .graph, or .tape if FILE is a .tape.",
       .group = "Output"},
      json_option(&o.json),
  };
}

// A folder of its own for the candidates, removed at the end.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tapedeck_reduce_XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw ExecutionError(fmt::format("{}: {}", pattern, std::strerror(errno)));
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string with_file(std::string command, const std::string& path) {
  if (command.find("{}") == std::string::npos) return command + " '" + path + "'";
  for (std::size_t at = 0; (at = command.find("{}", at)) != std::string::npos; at += path.size() + 2)
    command.replace(at, 2, "'" + path + "'");
  return command;
}

// The exit code of a shell command, 128 + the signal if one ended it; its output is not shown.
int exit_code(const std::string& command) {
  const pid_t child = ::fork();
  if (child < 0) throw ExecutionError(fmt::format("cannot start a process for the check: {}", std::strerror(errno)));
  if (child == 0) {
    const int nowhere = ::open("/dev/null", O_RDWR);
    for (int fd : {0, 1, 2}) ::dup2(nowhere, fd);
    pass_signals_on();
    ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw ExecutionError(fmt::format("cannot wait for the process of the check: {}", std::strerror(errno)));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The file with the graph, and with those of its tensors that still fit the graph.
TapeFile tape_of(const TapeFile& file, const Graph& graph) {
  TapeFile result;
  result.captured = graph;
  result.metadata = file.metadata;
  for (ValueId v = 0; v < graph.n_inputs + graph.n_state; ++v) {
    const Value& value = graph.values[v];
    for (const auto* stored : {&file.inputs, &file.state}) {
      const auto known = stored->find(value.name.str());
      if (known != stored->end() && known->second.type() == value.type)
        (graph.is_state(v) ? result.state : result.inputs)[known->first] = known->second;
    }
  }
  return result;
}

void write_graph(const std::string& path, const TapeFile& file, const Graph& graph) {
  if (path.ends_with(".tape")) save_tape(path, tape_of(file, graph));
  if (path.ends_with(".tape")) return;
  write_text(path, tapedeck::print(graph));
}

int run_reduce(const ReduceCommandOptions& request) {
  check_outputs({request.file}, {{"-o", request.output, true}});
  const TapeFile file = load_any(request.file, Check::all);
  const Folder folder;
  const std::string candidate = folder.file(request.file.ends_with(".graph") ? "candidate.graph" : "candidate.tape");
  const std::string command = with_file(request.check, candidate);
  const auto check = [&](const Graph& graph) {
    write_graph(candidate, file, graph);
    return exit_code(command);
  };
  const int wanted = request.expect_exit >= 0 ? request.expect_exit : check(file.captured);
  if (request.expect_exit < 0 && wanted == 0)
    throw UsageError(
        fmt::format("'{}' exits 0 for {}, so nothing fails; give --expect-exit 0 if this exit is the interesting one",
                    request.check, request.file));
  if (wanted == 127 && request.expect_exit < 0)
    throw UsageError(fmt::format("'{}' exits 127: the shell finds no such command; check its name and path", request.check));

  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  ReduceOptions options;
  options.max_checks = request.max_checks;
  options.sizes = !request.keep_sizes;
  options.cancel = &interrupted();
  std::int64_t checks = 0;
  options.progress = [&](const ReduceProgress& p) {
    checks = p.checks;
    if (terminal) fmt::print(stderr, "\r\033[K{} nodes, {} elements, {} checks", p.nodes, p.elements, p.checks);
  };
  const Graph small = tapedeck::reduce(
      file.captured, [&](const Graph& g) { return check(g) == wanted && !interrupted(); }, options);
  if (terminal) fmt::print(stderr, "\r\033[K");
  fmt::print(stderr, "{} -> {} nodes, {} checks{}\n", file.captured.node_count(), small.node_count(), checks,
             interrupted() ? ", interrupted" : "");

  if (!request.output.empty()) write_graph(request.output, file, small);
  const std::string text = request.output.empty() ? tapedeck::print(small) : std::string();
  const std::string result = request.json ? reduce_report(file.captured, small, checks, interrupted(), text) : text;
  answer(result, answers_beside(request.output));
  return interrupted() ? kInterrupted : kOk;
}

[[maybe_unused]] const bool reduce_registered = register_command(
    "reduce", CommandGroup::graphs, "Shrink a graph for which a command fails, as long as the command fails in the same way.",
    reduce_table, run_reduce, "Ctrl-C stops the search and leaves the smallest graph so far.");

}  // namespace

}  // namespace tapedeck::tool
