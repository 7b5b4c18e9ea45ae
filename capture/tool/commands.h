// The commands of `tapedeck`, one function each, behind plain option structs. main.cpp alone knows the command-line library,
// the files *report.cpp alone the JSON library.
//
// Each command prints its answer to stdout and everything else to stderr, returns an exit code, and throws tapedeck::Error,
// which main.cpp turns into a line on stderr and a code.
#pragma once

#include <tapedeck/capture/record/model_registry.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck::tool {

enum ExitCode : int {
  kOk = 0,
  kDiffers = 1,
  kUsage = 2,
  kBadFile = 3,
  kInfeasible = 4,
  kExecution = 5,
  kNoDevice = 6,
  kInterrupted = 130
};

struct RecordOptions {
  std::string model;
  ModelOptions options;
  std::string output;
  bool json = false;
};
struct PrintOptions {
  std::string file;
  std::string after;  // the graph as the pipeline has it after this pass
  bool planned = false;
  bool no_notes = false;
  bool json = false;
};
struct FileOptions {
  std::string file;
  bool json = false;
};
inline constexpr double kParallelPeak = 1.15;  // as PlanOptions has it
struct PlanCommandOptions {
  std::string file;
  std::string budget;  // "64MiB", "1.5GB", "4096", "50%"
  std::string chunk;   // most bytes of one block of the arena; empty: it is one block
  std::string strategy = "auto";
  std::string order = "auto";  // or "recorded"
  std::int64_t align = -1;     // as the device wants it
  std::string device = "cpu";
  std::string output;
  int threads = 1;
  double parallel_peak = kParallelPeak;
  double segment_us = 50;
  bool split_phases = false;
  std::string explain;  // "", "choices", "segments", "peak", "memory"
  std::string picture;  // .svg or .png: addresses x time
  std::string csv;      // the arena's buffers
  std::string costs;    // estimate, calibrated, profile; empty: the best there is
  bool json = false;
};
inline constexpr int kProfileSteps = 23;  // of which three warm up
struct ReplayOptions {
  std::string file;
  std::string device = "cpu";
  int threads = 0;                       // 0 = all
  double parallel_peak = kParallelPeak;  // of a plan that the file lacks
  int steps = 1;
  std::vector<std::string> inputs;  // NAME=@F.npy | NAME=rand:SEED | NAME=zeros
  std::string weights;
  std::string save;
  std::uint64_t seed = 42;
  bool check_eager = false;
  std::string trace;         // Chrome trace events of the last step
  std::string memory_trace;  // its allocations: .pickle or .json
  std::string chunk;         // plan anew with chunks of no more
  std::string costs;         // of a plan that the file lacks
  bool profile = false;      // time every node
  bool json = false;
};
struct BenchCommandOptions {
  std::vector<std::string> files;        // .tape, .graph, or the name of a model
  bool zoo = false;                      // every model there is
  bool small = false;                    // models at small sizes
  std::vector<int> threads;              // 0 = all; none: all
  std::string warmup;                    // "3" steps, "200ms", "1s"; empty: until steady
  double min_time_s = 0;                 // 0: 1, with --small 0.3
  std::string budget;                    // plan anew under it
  std::string chunk;                     // plan anew with chunks of no more
  double parallel_peak = kParallelPeak;  // of plans made here
  std::string costs;                     // of plans made here
  std::uint64_t seed = 42;
  bool json = false;
};
struct CalibrateCommandOptions {
  std::string output;              // empty: where the other commands look for it
  std::vector<std::string> check;  // files to replay and compare costs with; nothing is calibrated
  bool quick = false;
  bool show = false;
  bool json = false;
};
struct GradientCommandOptions {
  std::string file;
  std::vector<std::string> of, wrt, heads;  // names of values, each entry one or several with commas between
  std::string output;
  bool json = false;
};
struct OptOptions {
  std::string file;
  std::vector<std::string> passes;  // by name, in order; none: all that the pipeline simplifies with
  std::string output;
  bool fast_math = false;
  bool list = false;
  bool json = false;
};
struct ReduceCommandOptions {
  std::string file;
  std::string check;     // a shell command, {} for the candidate's file
  int expect_exit = -1;  // -1: as the command exits for FILE itself, which must not be 0
  std::int64_t max_checks = 20000;
  bool keep_sizes = false;
  std::string output;
  bool json = false;
};
struct OffsetsOptions {
  std::string file;             // .csv; "-": stdin
  std::string capacity, chunk;  // sizes; empty: none
  double seconds = 0;           // > 0: instead of work
  std::int64_t work = -1;       // -1: some ten seconds' worth
  std::int64_t align = 1;       // of buffers that say none
  bool anew = false;            // offsets in the file are not looked at
  int threads = 0;              // 0 = all
  std::string output;
  bool json = false;
};
struct ListOptions {
  bool json = false;
};

int record(const RecordOptions& options);
int info(const FileOptions& options);
int print(const PrintOptions& options);
int plan(const PlanCommandOptions& options);
int replay(const ReplayOptions& options);
int bench(const BenchCommandOptions& options);
int calibrate(const CalibrateCommandOptions& options);
int gradient(const GradientCommandOptions& options);
int opt(const OptOptions& options);
int reduce(const ReduceCommandOptions& options);
int offsets(const OffsetsOptions& options);
int verify(const FileOptions& options);
int view(const std::string& file);
int list_models(const ListOptions& options);
int list_ops(const ListOptions& options);
int list_settings(const ListOptions& options);
int list_devices(const ListOptions& options);

}  // namespace tapedeck::tool
