// tapedeck: record, show, plan, replay and verify captured training steps from a shell. Every command registers itself; see
// capture/tool/line/command.h. This file turns an error into a line on stderr, an exit code, and with --json an object on
// stdout.
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/line/parse.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/load_op_library.h>

#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <optional>
#include <span>
#include <string_view>

using namespace tapedeck;
using namespace tapedeck::tool;

namespace {

using Words = std::span<char*>;

// A stream that the caller has closed must not become the file that is opened next. Reading from stdin and writing to stdout
// and stderr then fail, and nothing is lost silently.
void reserve_standard_streams() {
  for (const int fd : {0, 1, 2})
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) std::abort();
}

int run(Words words) {
  const Parsed parsed = parse_line(static_cast<int>(words.size()), words.data());
  if (!parsed.command) {
    answer(parsed.text);
    return kOk;
  }
  catch_signals();
  for (const std::string& library : program().op_libraries) load_ops(library);
  std::optional<Working> working;
  if (!runs_user_program(*parsed.command)) working.emplace(parsed.command->name);  // else the terminal is the program's
  return parsed.command->run();
}

Failure failure_of(int code, const Error& e) {
  Failure failure{code, e.what(), e.kind(), e.file(), e.line()};
  if (const auto* infeasible = dynamic_cast<const InfeasiblePlanError*>(&e)) failure.infeasible = *infeasible;
  return failure;
}

// The exception that is being handled.
Failure current_failure() {
  try {
    throw;
  } catch (const Cancelled& e) {
    return {kInterrupted, "interrupted", e.kind()};
  } catch (const UsageError& e) {
    return failure_of(kUsage, e);
  } catch (const TypeError& e) {
    return failure_of(kUsage, e);
  } catch (const DeviceError& e) {
    return failure_of(kNoDevice, e);
  } catch (const InfeasibleError& e) {
    return failure_of(kInfeasible, e);
  } catch (const ExecutionError& e) {
    return failure_of(kExecution, e);
  } catch (const CaptureError& e) {
    return failure_of(kExecution, e);
  } catch (const Error& e) {
    return failure_of(kBadFile, e);
  } catch (const std::bad_alloc&) {
    return {kExecution, "out of memory"};
  } catch (const std::exception& e) {
    return {kExecution, e.what()};
  }
}

// The line may be the one that cannot be parsed, so its words are asked.
bool wants_json(Words words) {
  return std::any_of(words.begin(), words.end(), [](const char* word) { return std::string_view(word) == "--json"; });
}

std::string command_of(Words words) {
  const auto named = std::find_if(words.begin(), words.end(), [](const char* word) { return find_command(word) != nullptr; });
  return named == words.end() ? "" : *named;
}

int report(const Failure& failure, Words words) {
  std::fprintf(stderr, "tapedeck: %s\n", failure.message.c_str());
  if (!wants_json(words) || std::ferror(stdout)) return failure.code;
  std::fputs(error_report(command_of(words), failure).c_str(), stdout);
  std::fflush(stdout);
  return failure.code;
}

}  // namespace

int main(int argc, char** argv) {
  reserve_standard_streams();
  const Words words(argv, static_cast<std::size_t>(argc));
  try {
    const int code = run(words);
    finish_answer();
    return code;
  } catch (...) {
    const int own = count_own_words(argc, argv);
    return report(current_failure(), words.first(static_cast<std::size_t>(own)).subspan(1));
  }
}
