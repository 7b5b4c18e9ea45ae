#include <tapedeck/tests/gpu/bench/engine_bench.h>

#include <tapedeck/kernels/cuda/convolution/dnn_conv.h>
#include <tapedeck/kernels/cuda/device_runtime.h>
#include <tapedeck/tests/gpu/bench/prepared_call.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>

namespace tapedeck::gpu {
namespace {

namespace cpu = kernels::cpu;
namespace cuda = kernels::cuda;
using cpu::ConvPass;

// ---- the convolutions ----

// Square images and windows, x [batch,in,size,size] and weights [out,in,window,window].
struct SquareConv {
  std::int64_t batch, in, size, out, window, stride, padding;
  int calls = 0;  // in the forward pass of a step of W5
  std::int64_t out_size() const { return (size + 2 * padding - window) / stride + 1; }
  std::string name() const {
    return fmt::format("x[{},{},{},{}] w[{},{},{},{}] stride {}", batch, in, size, size, out, in, window, window, stride);
  }
};

constexpr SquareConv kConvs[] = {
    // ResNet-18, batches of 32 images of 32 x 32
    {32, 3, 32, 64, 7, 2, 3, 1},
    {32, 64, 8, 64, 3, 1, 1, 4},
    {32, 64, 8, 128, 3, 2, 1, 1},
    {32, 64, 8, 128, 1, 2, 0, 1},
    {32, 128, 4, 128, 3, 1, 1, 3},
    {32, 128, 4, 256, 3, 2, 1, 1},
    {32, 128, 4, 256, 1, 2, 0, 1},
    {32, 256, 2, 256, 3, 1, 1, 3},
    {32, 256, 2, 512, 3, 2, 1, 1},
    {32, 256, 2, 512, 1, 2, 0, 1},
    {32, 512, 1, 512, 3, 1, 1, 3},
    // the kernels of the bench
    {32, 64, 32, 64, 3, 1, 1},
    {32, 256, 14, 256, 3, 1, 1},
    // ResNet-50, batches of 16 images of 224 x 224
    {16, 64, 56, 64, 3, 1, 1},
    {16, 256, 56, 64, 1, 1, 0},
    {16, 256, 56, 512, 1, 2, 0},
    {16, 128, 28, 128, 3, 1, 1},
    {16, 512, 7, 512, 3, 1, 1},
};

const char* name_of(ConvPass pass) {
  return pass == ConvPass::forward ? "forward" : pass == ConvPass::input_grad ? "input_grad" : "weight_grad";
}

cuda::DnnConvolution problem_of(const SquareConv& c, ConvPass pass, DType dtype) {
  cuda::DnnConvolution p;
  p.pass = pass, p.dtype = dtype;
  cpu::ConvShape& s = p.shape;
  s.batch = c.batch, s.in_channels = c.in, s.out_channels = c.out;
  for (const std::size_t i : {1, 2}) {
    s.in[i] = c.size, s.kernel[i] = c.window, s.stride[i] = c.stride;
    s.before[i] = s.after[i] = c.padding;
  }
  p.strides = cpu::packed_images(s);
  return p;
}

// ---- time on the device ----

// The time of one run on the device: a graph holds several, so that the host takes no part.
class GraphTimer {
 public:
  GraphTimer() {
    std::string why;
    runtime_ = cuda::cuda_runtime(0, &why);
    if (!runtime_) throw std::runtime_error(why);
    must(runtime_->create_stream(&stream_));
  }
  ~GraphTimer() { runtime_->destroy_stream(stream_); }
  GraphTimer(const GraphTimer&) = delete;
  GraphTimer& operator=(const GraphTimer&) = delete;

  cuda::Stream stream() const { return stream_; }
  // `run` gives its work to `on`. A run that takes more than `limit_us` is timed once, without a graph.
  double us(const std::function<void()>& run, cuda::Stream on, double limit_us = 1e9) {
    run();
    must(runtime_->synchronize(on));
    auto start = Clock::now();
    run();
    must(runtime_->synchronize(on));
    const double once = us_since(start);
    if (once > limit_us) return once;
    const int runs = once > 400 ? 4 : 20;
    const Exec exec(*runtime_, on, run, runs);
    std::vector<double> times;
    for (int i = 0; i < 4; ++i) {
      start = Clock::now();
      must(runtime_->launch(exec.exec, on));
      must(runtime_->synchronize(on));
      if (i > 0) times.push_back(us_since(start) / runs);
    }
    return median(times);
  }

 private:
  struct Exec {
    cuda::DeviceRuntime& runtime;
    cuda::Graph graph = nullptr;
    cuda::GraphExec exec = nullptr;
    Exec(cuda::DeviceRuntime& device, cuda::Stream on, const std::function<void()>& run, int runs) : runtime(device) {
      must(runtime.begin_capture(on));
      try {
        for (int i = 0; i < runs; ++i) run();
      } catch (...) {
        if (!runtime.end_capture(on, &graph)) runtime.destroy_graph(graph);
        throw;
      }
      must(runtime.end_capture(on, &graph));
      if (const char* error = runtime.instantiate(graph, &exec)) {
        runtime.destroy_graph(graph);
        throw std::runtime_error(error);
      }
    }
    ~Exec() {
      runtime.destroy_exec(exec);
      runtime.destroy_graph(graph);
    }
    Exec(const Exec&) = delete;
    Exec& operator=(const Exec&) = delete;
  };

  std::shared_ptr<cuda::DeviceRuntime> runtime_;
  cuda::Stream stream_ = nullptr;
};

// ---- one way ----

struct Way {
  std::string name, places, notes, behaviour, failed;
  std::int64_t engine = -1, workspace = 0;
  bool compiled = false;
  double plan_us = 0, us = 0;
};

std::string list_of(const std::vector<int>& numbers) {
  std::string text;
  for (const int n : numbers) text += (text.empty() ? "" : ",") + std::to_string(n);
  return text;
}

std::string engine_name(const cuda::DnnConfiguration& c) {
  std::string text = fmt::format("engine {}", c.engine);
  for (const auto& [type, value] : c.knobs) text += fmt::format(" {}={}", type, value);
  return text;
}

std::string json_text(const std::string& text) {
  std::string quoted;
  for (const char c : text) quoted += c == '"' || c == '\\' ? '\'' : c == '\n' ? ' ' : c;
  return '"' + quoted + '"';
}

// ---- all ways of one convolution ----

constexpr std::size_t kRandom = 1 << 18;
constexpr int kMostCompiled = 3;

struct Modes {
  const char* letter;
  int mode;
};
constexpr Modes kModes[] = {
    {"A", cuda::dnn::CUDNN_HEUR_MODE_A}, {"F", cuda::dnn::CUDNN_HEUR_MODE_FALLBACK}, {"B", cuda::dnn::CUDNN_HEUR_MODE_B}};

class Bench {
 public:
  Bench(GraphTimer* timer, cuda::DnnConvolutions* convolutions, const SquareConv& c, ConvPass pass, DType dtype)
      : timer_(timer), convolutions_(*convolutions), conv_(c), problem_(problem_of(c, pass, dtype)) {
    operands_.x = tensor({c.batch, c.in, c.size, c.size});
    operands_.w = tensor({c.out, c.in, c.window, c.window});
    operands_.y = tensor({c.batch, c.out, c.out_size(), c.out_size()});
    operands_.stream = timer->stream();
    operands_.may_plan = false;
  }

  // `compile`: the engines that are compiled at run time, too.
  std::vector<Way> all(bool compile) {
    std::vector<Way> ways;
    const auto propose_begin = Clock::now();
    std::map<std::string, std::size_t> known;
    std::vector<cuda::DnnConfiguration> usable;
    for (const Modes& m : kModes)
      for (cuda::DnnConfiguration& c : convolutions_.configurations(problem_, m.mode)) {
        ++proposed_;
        if (!c.usable) continue;
        const std::string name = engine_name(c), place = fmt::format("{}{}", m.letter, c.index);
        const auto [at, is_new] = known.try_emplace(name, ways.size());
        if (!is_new) {
          ways[at->second].places += " " + place;
          continue;
        }
        ways.push_back({name, place, list_of(c.notes), list_of(c.behaviour), "", c.engine, 0, c.compiles_at_run_time()});
        usable.push_back(std::move(c));
      }
    propose_us_ = us_since(propose_begin);
    int left = compile ? kMostCompiled : 0;
    for (const bool compiled : {false, true})
      for (std::size_t i = 0; i < usable.size(); ++i) {
        if (ways[i].compiled != compiled) continue;
        if (compiled && left-- <= 0)
          ways[i].failed = "is compiled at run time, and was not tried";
        else
          time_configuration(usable[i], &ways[i]);
      }
    time_others(&ways);
    return ways;
  }
  int proposed() const { return proposed_; }
  double propose_us() const { return propose_us_; }

 private:
  void* tensor(std::vector<std::int64_t> sizes) {
    Type type{problem_.dtype, {}};
    type.shape.rank = static_cast<int>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), type.shape.sizes);
    const std::vector<unsigned char> bytes = random_bytes(type, -1, 1, kRandom);
    void* at = memory_.take(bytes.size());
    must(cuda::copy_to_device(at, bytes.data(), bytes.size(), timer_->stream()));
    must(cuda::synchronize(timer_->stream()));
    return at;
  }

  void time_configuration(const cuda::DnnConfiguration& c, Way* way) {
    try {
      const auto begin = Clock::now();
      way->workspace = convolutions_.use(problem_, c.mode, c.index);
      way->plan_us = us_since(begin);
      if (way->workspace < 0) throw std::runtime_error(convolutions_.last_failure());
      if (static_cast<std::size_t>(way->workspace) > operands_.workspace_bytes) {
        operands_.workspace = memory_.take(static_cast<std::size_t>(way->workspace));
        operands_.workspace_bytes = static_cast<std::size_t>(way->workspace);
      }
      const auto run = [&] {
        if (!convolutions_.run(problem_, operands_)) throw std::runtime_error(convolutions_.last_failure());
      };
      way->us = timer_->us(run, timer_->stream(), std::max(600.0, 3 * best_));
      best_ = best_ == 0 ? way->us : std::min(best_, way->us);
    } catch (const std::exception& error) {
      way->failed = error.what();
    }
  }

  // The sum of the times of some calls.
  void time_calls(const char* name, const std::vector<std::string>& examples, std::vector<Way>* ways) {
    Way way;
    way.name = name;
    try {
      for (const std::string& example : examples) {
        PreparedCall call(example, problem_.dtype, kRandom);
        way.us += timer_->us([&] { call.run(); }, call.stream(), std::max(600.0, 3 * best_));
        call.wait();
      }
    } catch (const std::exception& error) {
      way.failed = error.what();
    }
    ways->push_back(std::move(way));
  }

  void time_others(std::vector<Way>* ways) {
    const SquareConv& c = conv_;
    const std::int64_t o = c.out_size(), length = o * o, places = c.in * c.window * c.window;
    const std::string x = fmt::format("f32[{},{},{},{}]", c.batch, c.in, c.size, c.size);
    const std::string w = fmt::format("f32[{},{},{},{}]", c.out, c.in, c.window, c.window);
    const std::string y = fmt::format("f32[{},{},{},{}]", c.batch, c.out, o, o);
    const std::string walk = fmt::format("stride=[{0},{0}], padding=[{1},{1}]", c.stride, c.padding);
    const std::string window = fmt::format("window=[{0},{0}], {1}", c.window, walk);
    const std::string unfold = fmt::format("unfold({}) {{{}}}", x, window);
    const auto product = [](std::int64_t m, std::int64_t k, std::int64_t n) {
      return fmt::format("matmul(f32[{},{}], f32[{},{}])", m, k, k, n);
    };
    const auto batched = [&](std::int64_t m, std::int64_t k, std::int64_t n) {
      return fmt::format("matmul(f32[{},{}], f32[{},{},{}])", m, k, c.batch, k, n);
    };
    std::string own;
    std::vector<std::string> columns, matrix;  // a product with the columns, and with the matrix of the whole map
    const std::int64_t from = c.in * c.size * c.size, to = c.out * length;
    const std::string expand = fmt::format("copy(f32[{},{}])", from, to);
    switch (problem_.pass) {
      case ConvPass::forward:
        own = fmt::format("conv2d({}, {}) {{{}}}", x, w, walk);
        columns = {unfold, batched(c.out, places, length)};
        matrix = {expand, product(c.batch, from, to)};
        break;
      case ConvPass::input_grad:
        own = fmt::format("conv2d_input_grad({}, {}) {{{}, size=[{},{}]}}", y, w, walk, c.size, c.size);
        columns = {batched(places, c.out, length),
                   fmt::format("fold(f32[{},{},{}]) {{size=[{},{}], {}}}", c.batch, places, length, c.size, c.size, window)};
        matrix = {expand, product(c.batch, to, from)};
        break;
      case ConvPass::weight_grad:
        own = fmt::format("conv2d_weight_grad({}, {}) {{{}, size=[{},{}]}}", y, x, walk, c.window, c.window);
        columns = {unfold, product(c.out, c.batch * length, places)};  // the transposes are left out
        matrix = {expand, product(to, c.batch, from)};
    }
    setenv("TAPEDECK_CUDA_CONV", "own", 1);
    time_calls("own kernels", {own}, ways);
    unsetenv("TAPEDECK_CUDA_CONV");
    time_calls("columns and product", columns, ways);
    if (from * to <= std::int64_t{1} << 24) {
      time_calls("matrix and product", matrix, ways);
      time_calls("product alone", {matrix[1]}, ways);
    }
  }

  GraphTimer* timer_;
  cuda::DnnConvolutions& convolutions_;
  SquareConv conv_;
  cuda::DnnConvolution problem_;
  DeviceMemory memory_;
  cuda::DnnOperands operands_;
  int proposed_ = 0;
  double propose_us_ = 0, best_ = 0;
};

// ---- the report ----

// The way that the first configuration gives: neither compiled at run time nor refused.
const Way* first_way(const std::vector<Way>& ways) {
  for (const Way& way : ways)
    if (way.engine >= 0 && !way.compiled && way.failed.empty()) return &way;
  return nullptr;
}

void report(const std::string& name, std::vector<Way> ways, const Bench& bench, Rows* rows) {
  const Way* const first = first_way(ways);
  const std::string first_name = first ? first->name : "";
  fmt::print("---- {}: {} proposed in {:.0f} us\n", name, bench.proposed(), bench.propose_us());
  std::stable_sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) {
    return std::pair(!a.failed.empty(), a.us) < std::pair(!b.failed.empty(), b.us);
  });
  for (const Way& w : ways) {
    std::string json =
        fmt::format(R"({{"conv": "{}", "way": "{}", "engine": {}, "places": "{}", "notes": "{}", "behaviour": "{}")", name,
                    w.name, w.engine, w.places, w.notes, w.behaviour);
    json += fmt::format(R"(, "workspace": {}, "compiled": {}, "plan_us": {:.1f}, "us": {:.2f}, "failed": {}}})", w.workspace,
                        w.compiled, w.plan_us, w.us, json_text(w.failed));
    std::string text = w.failed.empty() ? fmt::format("{:>9.2f} us", w.us) : "   failed   ";
    text += fmt::format(" {} {:<14} {}", w.name == first_name ? '*' : ' ', w.places, w.name);
    if (w.engine >= 0)
      text +=
          fmt::format("  notes {}  behaviour {}  workspace {}  plan {:.0f} us", w.notes, w.behaviour, w.workspace, w.plan_us);
    if (!w.failed.empty()) text += "  " + w.failed;
    rows->write(json, text);
  }
}

}  // namespace

void bench_engines(const std::string& only, double seconds, Rows* rows) {
  const auto begin = Clock::now();
  GraphTimer timer;
  cuda::DnnConvolutions convolutions;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const double end = dtype == DType::f32 ? seconds * 0.6 : seconds;
    for (const SquareConv& c : kConvs)
      for (const ConvPass pass : {ConvPass::forward, ConvPass::input_grad, ConvPass::weight_grad}) {
        const std::string name = fmt::format("{} {} {}", c.name(), name_of(pass), dtype_name(dtype));
        if (name.find(only) == std::string::npos || (pass == ConvPass::input_grad && c.in == 3)) continue;
        if (us_since(begin) > end * 1e6) {
          rows->failed(name, "left out: the time was over");
          continue;
        }
        try {
          Bench bench(&timer, &convolutions, c, pass, dtype);
          std::vector<Way> ways = bench.all(us_since(begin) < end * 0.7e6);
          report(name, std::move(ways), bench, rows);
        } catch (const std::exception& error) {
          rows->failed(name, error.what());
        }
      }
  }
  fmt::print("---- {:.1f} s\n", us_since(begin) / 1e6);
}

}  // namespace tapedeck::gpu
