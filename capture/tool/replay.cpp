#include <tapedeck/capture/tool/commands.h>
#include <tapedeck/capture/tool/costs.h>
#include <tapedeck/capture/tool/profile_table.h>
#include <tapedeck/capture/tool/report.h>
#include <tapedeck/capture/tool/support.h>

#include <tapedeck/capture/executor.h>
#include <tapedeck/capture/planner.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

namespace tapedeck::tool {

namespace {

std::string name_of(const Graph& g, ValueId v) { return g.values[static_cast<std::size_t>(v)].name.str(); }
const Type& type_of(const Graph& g, ValueId v) { return g.values[static_cast<std::size_t>(v)].type; }

Tensor zeros_of(const Type& type) {
  const std::vector<unsigned char> zero(static_cast<std::size_t>(type.bytes()));
  return from_bytes(type, zero.data());
}

// "@F.npy", "rand:SEED" or "zeros".
Tensor input_value(const std::string& spec, const std::string& name, const Type& type) {
  if (spec == "zeros") return zeros_of(type);
  if (spec.starts_with("@")) return load_npy(spec.substr(1));
  if (spec.starts_with("rand:") && spec.size() > 5 && spec.find_first_not_of("0123456789", 5) == spec.npos && spec.size() < 24)
    return default_value(type, std::strtoull(spec.c_str() + 5, nullptr, 10), name);
  throw UsageError(fmt::format("--input {}={}: write @FILE.npy, rand:SEED or zeros", name, spec));
}

// What the replay starts from: the file's values, the command line's over them, defaults for the rest.
struct Start {
  std::vector<Tensor> inputs, state;
};

Start starting_values(const TapeFile& file, const ReplayOptions& options) {
  const Graph& g = file.captured;
  Start start;
  for (ValueId v = 0; v < g.n_inputs; ++v) {
    auto it = file.inputs.find(name_of(g, v));
    start.inputs.push_back(it != file.inputs.end() ? it->second : default_value(type_of(g, v), options.seed, name_of(g, v)));
  }
  for (ValueId v = g.n_inputs; v < g.n_inputs + g.n_state; ++v) {
    auto it = file.state.find(name_of(g, v));
    start.state.push_back(it != file.state.end() ? it->second : default_value(type_of(g, v), options.seed, name_of(g, v)));
  }
  for (const std::string& item : options.inputs) {
    const std::size_t equals = item.find('=');
    if (equals == item.npos) throw UsageError(fmt::format("--input {}: write NAME=VALUE", item));
    const std::string name = item.substr(0, equals);
    ValueId v = 0;
    while (v < g.n_inputs && name_of(g, v) != name) ++v;
    if (v == g.n_inputs) {
      std::string names;
      for (ValueId i = 0; i < g.n_inputs; ++i) names += (i ? ", " : "") + name_of(g, i);
      throw UsageError(fmt::format("no input '{}'; there are: {}", name, names));
    }
    start.inputs[static_cast<std::size_t>(v)] = input_value(item.substr(equals + 1), name, type_of(g, v));
  }
  if (options.weights.empty()) return start;
  int used = 0;
  const auto tensors = load_safetensors(options.weights);
  const bool is_tape = tensors.count("graph") > 0;  // weights of a capture stand under state/
  for (const auto& [key, tensor] : tensors) {
    if (is_tape && !key.starts_with("state/")) continue;
    const std::string name = is_tape ? key.substr(6) : key;
    ValueId v = g.n_inputs;
    while (v < g.n_inputs + g.n_state && name_of(g, v) != name) ++v;
    if (v == g.n_inputs + g.n_state) {
      std::fprintf(stderr, "tapedeck: %s: '%s' is no state of the graph, left out\n", options.weights.c_str(), name.c_str());
      continue;
    }
    if (tensor.type() != type_of(g, v))
      throw FileError(fmt::format("{}: '{}' is {}, the graph wants {}", options.weights, name, to_string(tensor.type()), to_string(type_of(g, v))));
    start.state[static_cast<std::size_t>(v - g.n_inputs)] = tensor;
    ++used;
  }
  if (used == 0) throw FileError(fmt::format("{}: holds no state of the graph", options.weights));
  return start;
}

// Runs the same steps eagerly beside the replay and remembers the first thing that differs.
class EagerCheck {
 public:
  EagerCheck(const Graph& captured, const Start& start) : graph_(captured), inputs_(start.inputs), state_(start.state) {}

  void step(const Executor& executor) {
    EagerResult eager = run_eagerly(graph_, inputs_, state_);
    const std::vector<Tensor> outputs = executor.outputs();
    for (std::size_t i = 0; i < eager.outputs.size(); ++i)
      compare(outputs[i], eager.outputs[i], i < graph_.output_names.size() && !graph_.output_names[i].empty() ? graph_.output_names[i].str() : graph_.value_name(graph_.outputs[i]));
    for (std::size_t i = 0; i < eager.state.size(); ++i) {
      const std::string name = name_of(graph_, graph_.n_inputs + static_cast<ValueId>(i));
      compare(executor.state(name), eager.state[i], name);
    }
    state_ = std::move(eager.state);
  }
  const std::string& first_difference() const { return difference_; }

 private:
  void compare(const Tensor& replayed, const Tensor& eager, const std::string& name) {
    if (difference_.empty() && !bit_equal(replayed, eager)) difference_ = name;
  }
  const Graph& graph_;
  std::vector<Tensor> inputs_, state_;
  std::string difference_;
};

std::string text_of(const std::string& path, const ReplaySummary& s) {
  std::string text = fmt::format("{}: {} step{} on {} with {} thread{}\n", path, s.steps, s.steps == 1 ? "" : "s", s.device, s.threads, s.threads == 1 ? "" : "s");
  text += fmt::format("  planned peak   {}\n  observed peak  {}\n", human_size(s.planned_peak_bytes), human_size(s.observed_peak_bytes));
  text += fmt::format("  step           median {:.3f} ms, min {:.3f}, max {:.3f}\n", s.median_ms, s.min_ms, s.max_ms);
  if (s.equal_to_eager) text += fmt::format("  equal to eager {}\n", *s.equal_to_eager ? "yes" : "NO, first at '" + s.first_difference + "'");
  if (s.profile) text += profile_text(*s.profile);
  return text;
}

void time_summary(std::vector<double> ms, ReplaySummary* s) {
  std::sort(ms.begin(), ms.end());
  const std::size_t n = ms.size();
  s->min_ms = ms.front();
  s->max_ms = ms.back();
  s->median_ms = n % 2 ? ms[n / 2] : (ms[n / 2 - 1] + ms[n / 2]) / 2;
}

int thread_count(const ReplayOptions& options) {
  if (options.profile && options.threads > 1) throw UsageError("--profile times nodes one by one, on one thread");
  if (options.profile) return 1;
  return options.threads > 0 ? options.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace

int replay(const ReplayOptions& options) {
  TapeFile file = load_any(options.file, Check::all);
  tapedeck::PlanOptions how;
  how.cancel = &interrupted();
  const int threads = thread_count(options);
  const std::shared_ptr<const CostModel> costs = file.plan && !options.profile ? nullptr : choose_costs(options.costs, file);
  how.costs = costs;
  Plan plan = file.plan ? *file.plan : make_plan(file.captured, how);
  Executor executor(std::move(plan), {threads, options.device});
  const Start start = starting_values(file, options);
  for (std::size_t i = 0; i < start.inputs.size(); ++i) executor.set_input(static_cast<int>(i), start.inputs[i]);
  for (std::size_t i = 0; i < start.state.size(); ++i) executor.set_state(name_of(file.captured, file.captured.n_inputs + static_cast<ValueId>(i)), start.state[i]);

  EagerCheck check(file.captured, start);
  std::optional<NodeTimer> timer;
  if (options.profile) timer.emplace(executor.plan(), options.steps);
  std::vector<double> ms;
  {
    Progress progress("replaying");
    for (int s = 0; s < options.steps; ++s) {
      if (interrupted()) throw Cancelled("interrupted");
      const auto begin = std::chrono::steady_clock::now();
      executor.run(timer ? timer->timeline() : nullptr);
      ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
      if (timer) timer->step_done();
      if (options.check_eager) check.step(executor);
      progress.at(static_cast<double>(s + 1) / options.steps);
    }
  }

  ReplaySummary summary;
  summary.device = options.device;
  summary.threads = threads;
  summary.steps = options.steps;
  summary.planned_peak_bytes = executor.plan().peak_bytes;
  summary.observed_peak_bytes = executor.observed_peak_bytes();
  time_summary(std::move(ms), &summary);
  if (options.check_eager) {
    summary.first_difference = check.first_difference();
    summary.equal_to_eager = summary.first_difference.empty();
  }
  if (timer) {
    file.profile = timer->finish(summary.observed_peak_bytes);
    summary.profile = profile_table(executor.plan(), *file.profile, costs && costs->calibration ? &*costs->calibration : nullptr);
    summary.profile->saved = options.save;
  }
  if (!options.save.empty()) {
    for (const std::string& name : executor.state_names()) file.state[name] = executor.state(name);
    save_tape(options.save, file);
  }
  const std::string text = options.json ? replay_report(summary) : text_of(options.file, summary);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return summary.equal_to_eager.value_or(true) ? kOk : kDiffers;
}

}  // namespace tapedeck::tool
