#include <tapedeck/capture/tool/commands/replay_steps.h>

#include <tapedeck/capture/replay/monitor_inputs.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/terminal.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/shown_name.h>
#include <tapedeck/engine/text/suggest.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <set>
#include <tuple>
#include <utility>

namespace tapedeck::tool {

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) { return std::chrono::duration<double, std::milli>(Clock::now() - begin).count(); }

// "%h" names the value that "h" names.
std::string without_percent(const std::string& name) { return name.starts_with('%') ? name.substr(1) : name; }

// The value of that name, or the one that the graph returns under it.
ValueId find_value(const Graph& g, const char* option, const std::string& given) {
  const std::string name = without_percent(given);
  std::vector<std::string> names;
  for (ValueId v = 0; v < g.value_count(); ++v) {
    names.push_back(g.value_name(v));
    if (names.back() == name) return v;
  }
  for (std::size_t i = 0; i < g.output_names.size(); ++i) {
    names.push_back(g.output_names[i].str());
    if (names.back() == name) return g.outputs[i];
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  throw UsageError(fmt::format("{} {}: the plan has no such value{}", option, given, did_you_mean(name, views)));
}

// The number of a node, if the text is a number.
std::optional<NodeId> node_number(const Graph& g, const std::string& text) {
  if (text.empty() || text.find_first_not_of("0123456789") != text.npos) return std::nullopt;
  NodeId n = kNone;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || n >= g.node_count())
    throw UsageError(
        fmt::format("--until {}: the plan has nodes 0 to {}; the value of that number is %{}", text, g.node_count() - 1, text));
  return n;
}

// ": did you mean 'conv1'?", of what a pattern can name.
std::string near_names(const Graph& g, const std::string& pattern) {
  std::set<std::string> names;
  for (const Node& node : g.nodes) {
    names.insert(node.op->name);
    if (!node.origin.path.empty()) names.insert(node.origin.path.str());
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) names.insert(g.value_name(v));
  }
  return did_you_mean(pattern, {names.begin(), names.end()});
}

bool has_phase(const Graph& g, Phase phase) {
  return std::any_of(g.nodes.begin(), g.nodes.end(), [&](const Node& n) { return n.origin.phase == phase; });
}

std::string monitored_text(const MonitoredValue& m, const std::string& shown) {
  const TensorStatistics& s = m.statistics;
  return fmt::format("step {}: {} {} {}: min {:.6g}, max {:.6g}, mean {:.6g}{}\n", m.step, m.op, shown, to_string(m.type),
                     s.min, s.max, s.mean, s.not_finite() > 0 ? fmt::format(", {} not finite", s.not_finite()) : "");
}

// The name of a monitored value. A value that is computed again has no name but the number by which the executor knows it.
std::string readable(const Graph& g, const MonitoredValue& m) {
  for (ValueId v = g.nodes[m.node].first_output; v < g.nodes[m.node].first_output + g.nodes[m.node].n_outputs; ++v)
    if (m.name == g.value_name(v) && g.values[v].name.empty()) return shown_name(g, v).substr(1);
  return m.name;
}

}  // namespace

ReplaySteps::ReplaySteps(Executor* executor, const Start& start, StepOptions options)
    : executor_(*executor), start_(start), options_(std::move(options)), inputs_(start.inputs) {
  const Graph& g = executor_.plan().graph;
  find_shown();
  if (!options_.values.empty()) executor_.keep_steps();
  if (options_.phase && !has_phase(g, *options_.phase))
    throw UsageError(
        fmt::format("--phase {}: the graph has no {} nodes", phase_name(*options_.phase), phase_name(*options_.phase)));
  watch();
}

void ReplaySteps::find_shown() {
  const Graph& g = executor_.plan().graph;
  const auto show = [&](ValueId v, const std::string& name) { shown_.push_back({name, g.values[v].type}); };
  const std::optional<NodeId> number = node_number(g, options_.until);
  const ValueId until = options_.until.empty() || number ? kNone : find_value(g, "--until", options_.until);
  last_node_ = number ? *number : until == kNone ? kNone : g.values[until].node;
  for (const std::string& name : options_.values) show(find_value(g, "--value", name), without_percent(name));
  if (!shown_.empty()) return;
  if (until != kNone) show(until, without_percent(options_.until));
  for (std::int32_t k = 0; number && k < g.nodes[*number].n_outputs; ++k)
    show(g.nodes[*number].first_output + k, g.value_name(g.nodes[*number].first_output + k));
  if (shown_.empty()) shown_ = outputs_of(g);
}

void ReplaySteps::watch() {
  for (const std::string& pattern : options_.monitors) {
    try {
      executor_.monitor(pattern, with_input_names([this](const Monitored& m) { note(m); }),
                        {.operands = options_.monitor_inputs});
    } catch (const UsageError& e) {
      throw UsageError(fmt::format("--monitor {}: {}{}", pattern, e.what(), near_names(executor_.plan().graph, pattern)));
    }
  }
}

// A value that several nodes read, or that several patterns show, is noted once, for the first node on any number of threads.
void ReplaySteps::note(const Monitored& m) {
  const Node& node = executor_.plan().graph.nodes[m.node];
  const auto seen = std::find_if(seen_.begin(), seen_.end(), [&](const MonitoredValue& s) { return s.name == m.name; });
  if (seen == seen_.end()) {
    seen_.push_back({0, m.node, m.name, node.op->name, m.value.type(), statistics(m.value)});
  } else if (m.node < seen->node) {
    seen->node = m.node;
    seen->op = node.op->name;
  }
}

void ReplaySteps::run(ReplaySummary* summary) {
  Progress progress("replaying");
  const Clock::time_point began = Clock::now();
  const bool loops = options_.loop_s > 0;
  const auto loop_done = [&] { return ms_since(began) / 1000 / options_.loop_s; };
  for (std::int64_t s = 0; loops ? s == 0 || loop_done() < 1 : s < options_.steps; ++s) {
    if (interrupted() && loops && s > 0) break;
    if (interrupted()) throw Cancelled("interrupted");
    feed(s);
    seen_.clear();
    const std::vector<Tensor> inputs = inputs_;
    const bool is_last = !loops && s + 1 == options_.steps;
    RunOptions how{.timeline = options_.timeline ? options_.timeline(loops || is_last) : nullptr, .cancel = &interrupted()};
    how.progress = [&](double done) {
      progress.at(loops ? std::min(loop_done(), 1.0) : (static_cast<double>(s) + done) / static_cast<double>(options_.steps));
    };
    const Clock::time_point begin = Clock::now();
    try {
      options_.reads_ahead && !is_last && !how.timeline ? run_beside_reading(s + 1) : run_step(is_last, how, summary);
    } catch (const Cancelled&) {
      if (!loops || s == 0) throw;
      break;
    }
    summary->step_ms.push_back(ms_since(begin));
    tell(s + 1, summary);
    if (options_.after_step) options_.after_step(inputs);
  }
  summary->steps = static_cast<std::int64_t>(summary->step_ms.size());
  summary->interrupted = loops && interrupted();
  summary->until = options_.until;
  show_values(summary);
}

void ReplaySteps::feed(std::int64_t step) {
  if (unread_) std::rethrow_exception(std::exchange(unread_, nullptr));
  if (step == fed_) return;
  fed_ = step;
  for (const auto& [input, sequence] : start_.sequences) {
    Tensor value = sequence->at(step);
    if (!value.defined()) continue;
    executor_.set_input(input, value);
    inputs_[static_cast<std::size_t>(input)] = std::move(value);
  }
}

// An input that cannot be read is an error of the next step, after the results of this one were told.
void ReplaySteps::run_beside_reading(std::int64_t next) {
  executor_.launch();
  try {
    feed(next);
  } catch (...) {
    unread_ = std::current_exception();
  }
  executor_.synchronize();
}

void ReplaySteps::run_step(bool is_last, const RunOptions& how, ReplaySummary* summary) {
  if (is_last && options_.phase) return run_phases(how, summary);
  if (is_last && stops_in_order()) return run_to_stop(summary);
  if (!is_last || options_.values.empty()) return executor_.run(how);
  executor_.step(0);  // a step in parts is kept
  executor_.resume(how);
}

// Inputs and state are there without a run, so an `until` that names one of them stops before the first node.
void ReplaySteps::run_to_stop(ReplaySummary* summary) {
  const Graph& g = executor_.plan().graph;
  Breakpoints at;
  if (last_node_ != kNone) at.nodes.push_back(last_node_);
  at.nan = options_.stop_at_nan;
  at.infinite = options_.stop_at_infinity;
  at.pause = &interrupted();
  if (!options_.until.empty() && last_node_ == kNone) return;
  const Stop stop = executor_.run_until(at);
  if (stop.reason == StopReason::pause) throw Cancelled("interrupted");
  ShownStop shown{.reason = stop.reason, .node = stop.node, .nodes = g.node_count(), .nodes_left = stop.nodes_left};
  if (stop.node != kNone) shown.node_text = g.node_text(stop.node);
  if (stop.value != kNone) shown.value = g.value_name(stop.value);
  shown.element = stop.element;
  shown.number = stop.number;
  summary->stop = std::move(shown);
}

void ReplaySteps::show_values(ReplaySummary* summary) const {
  const Graph& g = executor_.plan().graph;
  for (const std::string& name : options_.values) {
    const ValueId v = find_value(g, "--value", name);
    summary->values.push_back(show_value(g, v, without_percent(name), executor_.inspect(v)));
  }
  if (!options_.values.empty()) summary->kept_bytes = executor_.kept_bytes();
}

void ReplaySteps::run_phases(const RunOptions& how, ReplaySummary* summary) {
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::update}) {
    if (phase > *options_.phase || !has_phase(executor_.plan().graph, phase)) continue;
    const Clock::time_point begin = Clock::now();
    executor_.run(phase, how);
    summary->phase_ms.emplace_back(phase, ms_since(begin));
  }
}

// Nothing, if the value has not been computed.
std::optional<Tensor> ReplaySteps::read(const std::string& name) const {
  const bool whole_outputs = options_.until.empty() && options_.values.empty();
  if (!stops_early() && whole_outputs) return executor_.output(name);
  try {
    return whole_outputs ? executor_.output(name) : executor_.inspect(name).value;
  } catch (const ExecutionError&) {
    return std::nullopt;
  }
}

// The line of the step, and the values in the summary.
void ReplaySteps::tell(std::int64_t step, ReplaySummary* summary) {
  std::string line;
  std::vector<ScalarLog>& logs = summary->scalars;
  const bool is_whole = step < options_.steps || !stops_early();
  for (const NamedType& value : is_whole ? outputs_of(executor_.plan().graph) : shown_) {
    if (value.type.numel() != 1) continue;
    const std::optional<Tensor> tensor = is_whole ? executor_.output(value.name) : read(value.name);
    if (!tensor) continue;
    auto log = std::find_if(logs.begin(), logs.end(), [&](const ScalarLog& l) { return l.name == value.name; });
    if (log == logs.end()) log = logs.insert(logs.end(), ScalarLog{value.name, {}, {}});
    if (!log->steps.empty() && log->steps.back() == step) continue;  // two outputs of one name
    const TensorElements element(*tensor);
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", value.name, element.text(0));
    log->steps.push_back(step);
    log->values.push_back(static_cast<double>(element.number(0)));
  }
  if (!line.empty()) line = fmt::format("step {}: {}\n", step, line);
  std::sort(seen_.begin(), seen_.end(), [](const MonitoredValue& a, const MonitoredValue& b) {
    return std::tie(a.node, a.name) < std::tie(b.node, b.name);
  });
  for (MonitoredValue& seen : seen_) {
    seen.step = step;
    line += monitored_text(seen, readable(executor_.plan().graph, seen));
    summary->monitored.push_back(seen);
  }
  if (!is_whole && !options_.until.empty() && options_.values.empty()) line += stopped_text(step);
  if (options_.prints_lines && !line.empty()) answer(line);
}

// The text of the values behind which the step stopped, without a number that its own line has shown.
std::string ReplaySteps::stopped_text(std::int64_t step) const {
  const Graph& g = executor_.plan().graph;
  std::string text;
  for (const NamedType& value : shown_) {
    const std::optional<Tensor> tensor = read(value.name);
    if (!tensor || tensor->numel() == 1) continue;
    const NodeId node = last_node_;
    text += monitored_text(
        {step, node, value.name, node == kNone ? "input" : g.nodes[node].op->name, tensor->type(), statistics(*tensor)},
        value.name);
  }
  return text;
}

std::vector<NamedTensor> ReplaySteps::values() const {
  std::vector<NamedTensor> values;
  for (const NamedType& value : shown_)
    if (std::optional<Tensor> tensor = read(value.name)) values.push_back({value.name, std::move(*tensor)});
  return values;
}

}  // namespace tapedeck::tool
