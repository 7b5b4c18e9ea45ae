// offsets: places the buffers of a CSV file. It reads the list, searches for as long as it is asked to, checks the placement
// on its own, and writes the list with its offsets.
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/sizes.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/capture/formats/input_file.h>
#include <tapedeck/capture/planner/place/buffers_csv.h>
#include <tapedeck/capture/planner/place/check_placement.h>
#include <tapedeck/engine/eager/threads.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace tapedeck::tool {

namespace {

struct OffsetsOptions {
  std::string file;             // .csv; "-": stdin
  std::string capacity, chunk;  // sizes; empty: none
  double seconds = 0;           // > 0: instead of work
  std::int64_t work = -1;       // -1: about ten seconds of it
  std::int64_t align = 1;       // of buffers for which the file has none
  bool anew = false;            // ignore the offsets in the file
  int threads = 0;              // 0: all
  std::string output;
  bool json = false;
};

std::vector<Option> offsets_table(OffsetsOptions& o) {
  return {
      {.name = "FILE.csv",
       .to = &o.file,
       .help =
           "A list with the columns id,lower,upper,size and, if wanted, alignment, gaps, hint, offset (fixed). - reads stdin.",
       .required = true},
      {.name = "--capacity",
       .metavar = "SIZE",
       .to = &o.capacity,
       .help = "Stop as soon as all buffers end below this: 1048576, 64MiB."},
      {.name = "--align",
       .metavar = "BYTES",
       .to = &o.align,
       .help = "The alignment of buffers for which the file has none.",
       .least = 1,
       .most = 1e12},
      {.name = "--chunk",
       .metavar = "SIZE",
       .to = &o.chunk,
       .help =
           "Use several arenas, none larger than this; a larger buffer gets an arena of its size. Hints have no effect then."},
      {.name = "--anew",
       .to = &o.anew,
       .help = "Ignore the offsets in the file and place all buffers; use this for the CSV of a plan."},
      {.name = "--seconds",
       .metavar = "S",
       .to = &o.seconds,
       .help = "Search for this long. Answers may differ from run to run.",
       .group = "Search",
       .fallback = "--work decides",
       .least = 0.001,
       .most = 1e6},
      {.name = "--work",
       .metavar = "STEPS",
       .to = &o.work,
       .help = "Search for this many steps; equal work gives an equal answer. 0 places greedily and does not search.",
       .group = "Search",
       .fallback = "as many steps as take about ten seconds",
       .least = 0,
       .most = 1e18,
       .excludes = "--seconds"},
      {.name = "--threads",
       .metavar = "N",
       .to = &o.threads,
       .help = "Search on this many threads, 0 for all. The answer for some work is the same with any number.",
       .group = "Search",
       .least = 0,
       .most = 4096},
      {.name = "--output",
       .letter = 'o',
       .metavar = "FILE",
       .to = &o.output,
       .help = "Write the list with its offsets here, even if the capacity is not met. With - the list goes to stdout and the "
               "summary to stderr.",
       .group = "Output"},
      json_option(&o.json),
  };
}

double gap_percent(const OffsetsSummary& s) {
  return s.lower_bound > 0 ? 100.0 * static_cast<double>(s.peak - s.lower_bound) / static_cast<double>(s.lower_bound) : 0.0;
}

std::string summary_text(const std::string& path, const OffsetsSummary& s) {
  std::string text = fmt::format("{}: {} buffers\n", path, s.buffers);
  const auto line = [&](const char* name, const std::string& value) { text += fmt::format("  {:<12} {}\n", name, value); };
  line("peak", human_size(s.peak) + (s.arenas > 1 ? fmt::format(", in {} arenas", s.arenas) : ""));
  line("lower bound", human_size(s.lower_bound));
  line("gap", s.optimal ? "none can be lower" : fmt::format("{:.2f} % at most", gap_percent(s)));
  if (s.proven_bound > s.lower_bound) line("proven bound", human_size(s.proven_bound) + ": all that is lower was searched");
  if (s.capacity >= 0) line("capacity", human_size(s.capacity) + (s.peak <= s.capacity ? ", met" : ", not met"));
  line("found in", fmt::format("{:.3f} s, {} steps of search{}", s.seconds, s.work, s.interrupted ? ", interrupted" : ""));
  return text;
}

std::int64_t size_given(const char* option, const std::string& text) {
  try {
    return parse_size(text);
  } catch (const UsageError& e) {
    throw UsageError(fmt::format("{}: {}", option, e.what()));
  }
}

constexpr double kUsualSeconds = 10;
constexpr double kMostSeconds = 30;  // a step may take longer than is thought

PlaceOptions options_of(const OffsetsOptions& request) {
  PlaceOptions how;
  how.seconds = request.seconds;
  if (!request.capacity.empty()) how.capacity = size_given("--capacity", request.capacity);
  if (!request.chunk.empty() && (how.chunk_bytes = size_given("--chunk", request.chunk)) == 0)
    throw UsageError("--chunk 0: an arena needs at least one byte; give a size such as 64MiB");
  how.threads = request.threads > 0 ? request.threads : thread_count();
  how.cancel = &interrupted();
  return how;
}

void set_usual_limit(const BufferList& list, PlaceOptions* how) {
  std::size_t stretches = list.buffers.size();
  for (const Tenant& b : list.buffers) stretches += b.holes.size();
  how->work = place_steps(kUsualSeconds * 1e6, stretches);
  how->seconds = kMostSeconds;
}

std::string read_text(const std::string& path) {
  const StopAtInterrupt stop;  // there is no list yet
  return path == "-" ? read_text_from(STDIN_FILENO, source_name(path)) : read_text_file(path);
}

// The file and line of a buffer.
std::string line_of(const OffsetsOptions& request, std::int32_t buffer) {
  return fmt::format("{}:{}", source_name(request.file), buffer + 2);
}

std::string ids_of(const BufferList& list, const std::vector<std::int32_t>& buffers) {
  std::string text;
  for (const std::int32_t i : buffers)
    text += (text.empty() ? "buffer " : " and buffer ") + shown_id(list, static_cast<std::size_t>(i));
  return text;
}

BufferList read_list(const OffsetsOptions& request) {
  BufferList list = parse_buffers(read_text(request.file), source_name(request.file), request.align);
  for (const std::string& doubt : list.doubts)
    fmt::print(stderr, "tapedeck: {}:1: warning: {}\n", source_name(request.file), doubt);
  if (list.unread_lines > 0)
    fmt::print(stderr, "tapedeck: {}: warning: {} line{} after line {} {} not read: a blank line ends the list\n",
               source_name(request.file), list.unread_lines, list.unread_lines == 1 ? "" : "s", list.rows.size() + 2,
               list.unread_lines == 1 ? "is" : "are");
  for (std::size_t i = 0; i < list.buffers.size(); ++i) {
    if (request.anew) list.buffers[i].fixed = -1;
    if (list.has_arenas && list.buffers[i].fixed >= 0)
      throw UsageError(
          fmt::format("{}: {} has an offset in one of several arenas, and such offsets cannot be kept; give --anew to place "
                      "all buffers again",
                      line_of(request, static_cast<std::int32_t>(i)), ids_of(list, {static_cast<std::int32_t>(i)})));
    if (!request.chunk.empty() && list.buffers[i].fixed >= 0)
      throw UsageError(fmt::format(
          "{}: {} has an offset, but the list names no arena, which --chunk needs; give --anew to place all buffers again",
          line_of(request, static_cast<std::int32_t>(i)), ids_of(list, {static_cast<std::int32_t>(i)})));
  }
  return list;
}

// An error of place() is an error of the file.
Offsets place_list(const OffsetsOptions& request, const BufferList& list, const PlaceOptions& how) {
  try {
    return place(list.buffers, how);
  } catch (const PlaceError& e) {
    throw FileError(
        fmt::format("{}: error: {} {}", line_of(request, e.buffers().back()), ids_of(list, e.buffers()), e.fault()));
  }
}

int run_offsets(const OffsetsOptions& request) {
  PlaceOptions how = options_of(request);
  const BufferList list = read_list(request);
  if (request.work >= 0)
    how.work = request.work;
  else if (request.seconds <= 0)
    set_usual_limit(list, &how);
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  if (terminal)
    how.on_better = [](std::int64_t end, double seconds) {
      fmt::print(stderr, "\r\033[K{:.1f} s: {}", seconds, human_size(end));
    };
  const auto start = std::chrono::steady_clock::now();
  const Offsets placed = place_list(request, list, how);
  OffsetsSummary s;
  s.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (terminal) fmt::print(stderr, "\r\033[K");
  const std::string fault = find_fault(list.buffers, placed, how.chunk_bytes);
  if (!fault.empty())
    throw ExecutionError(fmt::format("the placement breaks a rule and is not written; please report this: {}", fault));

  s.buffers = static_cast<std::int64_t>(list.buffers.size());
  s.lower_bound = placed.bound;
  s.peak = placed.end;
  s.optimal = placed.optimal || placed.end <= placed.bound;
  s.proven_bound = s.optimal ? std::max(placed.bound, placed.end) : placed.bound;
  s.capacity = how.capacity;
  s.work = placed.work;
  s.arenas = placed.arena.empty() ? 1 : 1 + *std::max_element(placed.arena.begin(), placed.arena.end());
  s.interrupted = interrupted();
  if (!request.output.empty()) write_text(request.output, print_buffers(list, placed));
  const std::string text = request.json ? offsets_report(s) : summary_text(source_name(request.file), s);
  answer(text, answers_beside(request.output));
  if (how.capacity >= 0 && s.peak > how.capacity) {
    std::fprintf(stderr, "tapedeck: the best placement found needs %s, more than the capacity%s\n", human_size(s.peak).c_str(),
                 s.optimal ? "; no placement needs less" : "");
    return kInfeasible;
  }
  return s.interrupted ? kInterrupted : kOk;
}

[[maybe_unused]] const bool offsets_registered = register_command(
    "offsets", CommandGroup::plan, "Place a list of buffers in as few bytes as possible.", offsets_table, run_offsets,
    "A buffer lives from lower to upper-1 (in a column `end`: to end). A gap a-b says that it is not needed from a to b-1.\n"
    "The first blank line ends the list. Packed files: gzip -dc FILE.csv.gz | tapedeck offsets -\n"
    "Ctrl-C stops the search and keeps the best list so far. Exit code 4 says that the capacity is not met.");

}  // namespace

}  // namespace tapedeck::tool
