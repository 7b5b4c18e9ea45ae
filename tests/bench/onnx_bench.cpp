// Measures the import of ONNX models: nodes a second of a deep model without much weight, bytes a second of a wide model with
// few nodes, and the most memory that the process held.
//
//   onnx_bench [--nodes N] [--megabytes N] [--runs N] [FILE.onnx...]
//
// Without files it writes a chain of additions and ReLUs, and a chain of matrix products, to a temporary folder, with the
// weights inside the model and beside it. Each import is a process of its own, so that its memory is its own. A file that is
// given is imported as it is and as a step of training.
#include <tapedeck/capture/file/captured_file.h>
#include <tapedeck/capture/onnx/export_onnx.h>
#include <tapedeck/capture/onnx/import_onnx.h>
#include <tapedeck/tapedeck.h>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace tapedeck;
using Clock = std::chrono::steady_clock;

struct Asked {
  int nodes = 10'000, megabytes = 400, runs = 5;
  std::vector<std::string> files;
};

// A chain x -> f(x, w0) -> relu -> f(.., w1) -> relu -> ... -> y, as a model.
void write_chain(const std::string& path, int links, const Shape& sizes, Tensor (*f)(const Arg&, const Arg&), bool beside) {
  const NoGrad no_gradients;
  std::vector<Tensor> weights;
  for (int i = 0; i < links; ++i) weights.push_back(normal(sizes).name(fmt::format("layer{}.weight", i)).role(Role::parameter));
  const Tensor x = normal({4, sizes[-1]});
  Capture capture("chain");
  Tensor h = capture.input("x", x);
  for (const Tensor& w : weights) h = relu(f(h, w));
  capture.output("y", h);
  export_onnx(path, tape_of(capture.finish()), {beside});
}

// The milliseconds of an import in a process of its own, and the KiB that it held at most.
struct Measured {
  double ms = 0, kib = 0;
};

// The most memory of this program: what the process held before it became this program does not count.
double most_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:" && status >> word) return std::atof(word.c_str());
  return 0;
}

// That process imports the model, and writes its measurement to the descriptor.
int import_one(const std::string& path, const std::string& loss, int to) {
  OnnxOptions options;
  options.train = loss != "none";
  options.loss = options.train ? loss : "";
  const auto start = Clock::now();
  const OnnxImport import = import_onnx(path, options);
  const Measured m{std::chrono::duration<double, std::milli>(Clock::now() - start).count(), most_kib()};
  return write(to, &m, sizeof m) == sizeof m ? 0 : 1;
}

bool import_apart(const std::string& path, const std::string& loss, Measured* m) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    const std::string to = std::to_string(ends[1]);
    execl("/proc/self/exe", "onnx_bench", "--one", path.c_str(), loss.c_str(), to.c_str(), nullptr);
    _exit(1);
  }
  close(ends[1]);
  const bool told = read(ends[0], m, sizeof *m) == sizeof *m;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return told;
}

void measure(const std::string& what, const std::string& path, const std::string& loss, int runs, double nodes, double bytes) {
  std::vector<double> ms;
  double kib = 0;
  for (int i = 0; i < runs; ++i) {
    Measured m;
    if (!import_apart(path, loss, &m)) return fmt::print("{:<34} failed\n", what);
    ms.push_back(m.ms);
    kib = std::max(kib, m.kib);
  }
  std::sort(ms.begin(), ms.end());
  const double median = ms[ms.size() / 2];
  fmt::print("{:<34} median {:8.1f} ms (min {:.1f}, max {:.1f})  ", what, median, ms.front(), ms.back());
  if (nodes > 0) fmt::print("{:.2f} s for 10,000 nodes  ", median / 1e3 * 1e4 / nodes);
  fmt::print("{:.0f} MB/s  held {:.1f} MB, {:+.1f} MB beside the file\n", bytes / 1e3 / median, kib * 1.024e-3,
             kib * 1.024e-3 - bytes / 1e6);
}

double size_of(const std::string& path) { return static_cast<double>(std::filesystem::file_size(path)); }

void measure_own(const Asked& asked) {
  std::string folder = (std::filesystem::temp_directory_path() / "onnx_bench.XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  const std::string deep = folder + "/deep.onnx", wide = folder + "/wide.onnx", beside = folder + "/beside.onnx";
  constexpr std::int64_t kSide = 2000;
  const int matrices = std::max(1, static_cast<int>(asked.megabytes * 1e6 / (kSide * kSide * 4)));
  write_chain(deep, asked.nodes / 2, {8}, add, false);
  write_chain(wide, matrices, {kSide, kSide}, matmul, false);
  write_chain(beside, matrices, {kSide, kSide}, matmul, true);
  measure(fmt::format("{} nodes", asked.nodes), deep, "none", asked.runs, asked.nodes, size_of(deep));
  measure(fmt::format("{} nodes, a step of training", asked.nodes), deep, "mse", asked.runs, asked.nodes, size_of(deep));
  measure(fmt::format("{} MB of weights", asked.megabytes), wide, "none", asked.runs, 0, size_of(wide));
  measure(fmt::format("{} MB of weights beside", asked.megabytes), beside, "none", asked.runs, 0,
          size_of(beside) + size_of(beside + ".data"));
  std::filesystem::remove_all(folder);
}

bool parse(int argc, char** argv, Asked* asked) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto number = [&](int* to) { return i + 1 < argc && (*to = std::atoi(argv[++i])) > 0; };
    if (word == "--nodes"       ? !number(&asked->nodes)
        : word == "--megabytes" ? !number(&asked->megabytes)
        : word == "--runs"      ? !number(&asked->runs)
                                : word.starts_with("-"))
      return false;
    if (!word.starts_with("-")) asked->files.push_back(word);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && std::string(argv[1]) == "--one") return import_one(argv[2], argv[3], std::atoi(argv[4]));
  Asked asked;
  if (!parse(argc, argv, &asked)) {
    fmt::print(stderr, "usage: onnx_bench [--nodes N] [--megabytes N] [--runs N] [FILE.onnx...]\n");
    return 2;
  }
  if (!has_onnx()) {
    fmt::print(stderr, "onnx_bench: this build has no support for ONNX\n");
    return 6;
  }
  if (asked.files.empty()) measure_own(asked);
  for (const std::string& file : asked.files) {
    measure(file, file, "none", asked.runs, 0, size_of(file));
    measure(file + ", training", file, "cross_entropy", asked.runs, 0, size_of(file));
  }
  return 0;
}
