// Follows the trace line by line: which storage a name stands for, how many names a storage has, and which value its bytes are.
// The nodes are gathered first, because constants that come in the middle of a trace are inputs of the graph and so stand
// before all nodes. At the end the graph is built.
#include <tapedeck/capture/import/simrd.h>

#include <tapedeck/capture/import/foreign_values.h>
#include <tapedeck/capture/import/simrd_lines.h>
#include <tapedeck/engine/ir/unique_names.h>

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tapedeck {

namespace {

// Bytes at one time: a constant, or what one node wrote.
struct TraceValue {
  std::int64_t bytes = 0;
  std::int32_t node = kNone;  // kNone: a constant
  std::string name;
};

struct TraceNode {
  std::vector<std::int32_t> operands, results;  // values
  double nanoseconds = 0;
  bool backward = false;
  std::string op;
};

struct Storage {
  std::int32_t constant = kNone;  // the value that it began with, if that is a constant
  std::int32_t value = kNone;     // the value that it holds
  std::int64_t names = 0;         // that stand for it
  double nanoseconds = 0;         // of views of a constant, for the next reader
};

struct TraceName {
  std::int32_t storage = kNone;
  std::uint32_t line = 0;  // that defined it, or released it
  bool is_released = false;
};

class TraceReader {
 public:
  TraceReader(std::string_view text, const std::string& file, ImportedResults results)
      : lines_(text, file), file_(file), how_(results) {}

  ImportedTrace read() {
    for (TraceLine line; lines_.next(&line);) take(line);
    if (nodes_.empty()) refuse(file_, lines_.number(), "the trace calls no op");
    for (const Storage& storage : storages_)
      if (storage.names > 0) trace_.held_end_bytes += bytes_of(storage);
    build();
    return std::move(trace_);
  }

 private:
  [[noreturn]] void fail(const TraceLine& at, const std::string& reason) const { refuse(file_, at.number, reason); }

  void take(const TraceLine& line) {
    switch (line.event) {
      case TraceEvent::constant:
        return take_constant(line);
      case TraceEvent::call:
        return take_call(line);
      case TraceEvent::mutate:
        return take_mutation(line);
      case TraceEvent::copy:
        return define(line, line.name, storage_named(line, line.source));
      case TraceEvent::copy_from:
        return take_copy_from(line);
      case TraceEvent::release:
        return release(line);
      case TraceEvent::annotate:
        return take_annotation(line);
      case TraceEvent::memory:
        fail(line, "MEMORY stands behind no CONSTANT or CALL");
      case TraceEvent::alias:
        fail(line, "ALIAS stands behind no result of a CALL");
    }
  }

  // ---- names ----

  std::int32_t storage_named(const TraceLine& at, const std::string& name) const {
    const auto found = names_.find(name);
    if (found == names_.end()) fail(at, fmt::format("the name {} is not defined", shown(std::string_view(name))));
    if (found->second.is_released)
      fail(at, fmt::format("the name {} was released on line {}", shown(std::string_view(name)), found->second.line));
    return found->second.storage;
  }

  void define(const TraceLine& at, const std::string& name, std::int32_t storage) {
    const auto [entry, is_new] = names_.try_emplace(name, TraceName{storage, at.number, false});
    if (!is_new)
      fail(at, fmt::format("the name {} was {} on line {} already", shown(std::string_view(name)),
                           entry->second.is_released ? "released" : "defined", entry->second.line));
    hold(storage);
  }

  void hold(std::int32_t storage) {
    Storage& held = storages_[static_cast<std::size_t>(storage)];
    if (held.names++ == 0) held_bytes_ += bytes_of(held);
  }

  void let_go(std::int32_t storage) {
    Storage& held = storages_[static_cast<std::size_t>(storage)];
    if (--held.names == 0) held_bytes_ -= bytes_of(held);
  }

  void release(const TraceLine& line) {
    const auto found = names_.find(line.name);
    if (found == names_.end()) return;  // defined before the trace began
    let_go(storage_named(line, line.name));
    found->second.is_released = true;
    found->second.line = line.number;
  }

  void take_copy_from(const TraceLine& line) {
    const std::int32_t from = storage_named(line, line.source), before = storage_named(line, line.name);
    hold(from);
    let_go(before);
    names_[line.name].storage = from;
  }

  // ---- values ----

  std::int64_t bytes_of(const Storage& storage) const { return values_[static_cast<std::size_t>(storage.value)].bytes; }

  std::int32_t add_value(const TraceLine& at, std::int64_t bytes, std::int32_t node, const std::string& name) {
    total_bytes_ += bytes;
    if (total_bytes_ > kMostGraphBytes) fail(at, "all values up to here hold more than 2^60 bytes");
    values_.push_back({bytes, node, name});
    return static_cast<std::int32_t>(values_.size()) - 1;
  }

  std::int32_t add_storage(std::int32_t value, bool is_constant) {
    storages_.push_back({is_constant ? value : kNone, value, 0, 0});
    return static_cast<std::int32_t>(storages_.size()) - 1;
  }

  void note_peak() { trace_.held_peak_bytes = std::max(trace_.held_peak_bytes, held_bytes_); }

  // The line that must follow `at`, about `name`.
  TraceLine line_of(const TraceLine& at, TraceEvent event, const char* word, const std::string& name) {
    TraceLine line;
    if (!lines_.next(&line))
      refuse(file_, lines_.number(),
             fmt::format("the trace ends before the {} of {} of line {}", word, shown(std::string_view(name)), at.number));
    if (line.event != event || line.name != name)
      fail(line, fmt::format("{} of {} should stand here, for line {}", word, shown(std::string_view(name)), at.number));
    return line;
  }

  void take_constant(const TraceLine& line) {
    const TraceLine memory = line_of(line, TraceEvent::memory, "MEMORY", line.name);
    const std::int32_t value = add_value(line, memory.number_of, kNone, line.name);
    define(line, line.name, add_storage(value, true));
    trace_.constant_bytes += memory.number_of;
    note_peak();
  }

  // ---- calls ----

  std::vector<std::int32_t> storages_of(const TraceLine& line) const {
    std::vector<std::int32_t> storages;
    for (const std::string& name : line.args) storages.push_back(storage_named(line, name));
    return storages;
  }

  void take_call(const TraceLine& line) {
    const std::vector<std::int32_t> args = storages_of(line);
    std::vector<std::int64_t> bytes, aliases;
    for (const std::string& name : line.results) {
      bytes.push_back(line_of(line, TraceEvent::memory, "MEMORY", name).number_of);
      const TraceLine alias = line_of(line, TraceEvent::alias, "ALIAS", name);
      if (alias.number_of >= static_cast<std::int64_t>(args.size()))
        fail(alias,
             fmt::format("ALIAS: {} is the number of no argument; line {} has {}", alias.number_of, line.number, args.size()));
      aliases.push_back(alias.number_of);
    }
    ++trace_.calls;
    const bool only_views = !aliases.empty() && *std::min_element(aliases.begin(), aliases.end()) >= 0;
    if (only_views)
      charge_view(line, args[static_cast<std::size_t>(aliases[0])]);
    else
      add_node(line, args);
    for (std::size_t i = 0; i < aliases.size(); ++i)
      define(line, line.results[i],
             aliases[i] >= 0 ? args[static_cast<std::size_t>(aliases[i])]
                             : add_storage(add_result(line, bytes[i], line.results[i]), false));
    note_peak();
  }

  void charge_view(const TraceLine& line, std::int32_t viewed) {
    ++trace_.views;
    trace_.microseconds += line.nanoseconds / 1000;
    note_backward(line.name);
    Storage& storage = storages_[static_cast<std::size_t>(viewed)];
    const std::int32_t maker = values_[static_cast<std::size_t>(storage.value)].node;
    (maker == kNone ? storage.nanoseconds : nodes_[static_cast<std::size_t>(maker)].nanoseconds) += line.nanoseconds;
  }

  void note_backward(const std::string& op) { is_backward_ = is_backward_ || op.find("backward") != op.npos; }

  void add_node(const TraceLine& line, const std::vector<std::int32_t>& args) {
    note_backward(line.name);
    trace_.microseconds += line.nanoseconds / 1000;
    TraceNode node{{}, {}, line.nanoseconds, is_backward_, line.name};
    for (const std::int32_t arg : args) {
      Storage& storage = storages_[static_cast<std::size_t>(arg)];
      node.nanoseconds += std::exchange(storage.nanoseconds, 0);
      node.operands.push_back(storage.value);
    }
    std::sort(node.operands.begin(), node.operands.end());
    node.operands.erase(std::unique(node.operands.begin(), node.operands.end()), node.operands.end());
    nodes_.push_back(std::move(node));
  }

  // A result of the last node.
  std::int32_t add_result(const TraceLine& line, std::int64_t bytes, const std::string& name) {
    const std::int32_t value = add_value(line, bytes, static_cast<std::int32_t>(nodes_.size()) - 1, name);
    nodes_.back().results.push_back(value);
    return value;
  }

  void take_mutation(const TraceLine& line) {
    const std::vector<std::int32_t> args = storages_of(line);
    ++trace_.mutations;
    add_node(line, args);
    std::vector<std::int32_t> written;
    for (const std::int64_t place : line.mutated) written.push_back(args[static_cast<std::size_t>(place)]);
    std::sort(written.begin(), written.end());
    written.erase(std::unique(written.begin(), written.end()), written.end());
    for (const std::int32_t at : written) {
      const TraceValue before = values_[static_cast<std::size_t>(storages_[static_cast<std::size_t>(at)].value)];
      const std::int32_t value = add_result(line, before.bytes, before.name);
      storages_[static_cast<std::size_t>(at)].value = value;
    }
  }

  void take_annotation(const TraceLine& line) {
    if (line.name == "BACKWARD") is_backward_ = true;
    if (line.name != "START" || std::exchange(has_started_, true)) return;
    names_.clear();  // what came before belongs to no step
    storages_.clear();
    values_.clear();
    nodes_.clear();
    trace_ = {};
    held_bytes_ = total_bytes_ = 0;
    is_backward_ = false;
  }

  // ---- the graph ----

  void build() {
    Graph& graph = trace_.graph;
    graph.name = name_from_path(file_);
    in_graph_.assign(values_.size(), kNone);
    add_constants(false);
    add_constants(true);
    for (const TraceNode& node : nodes_) add_to_graph(node);
    for (const Storage& storage : storages_) add_result_of_trace(storage);
    set_results(&graph, results_, how_, unique_.unique("end"));
    verify(graph);
  }

  static bool is_updated(const Storage& storage) {
    return storage.names > 0 && storage.constant != kNone && storage.value != storage.constant;
  }

  // First the inputs, then the state.
  void add_constants(bool as_state) {
    for (const Storage& storage : storages_) {
      if (storage.constant == kNone || is_updated(storage) != as_state) continue;
      const TraceValue& value = values_[static_cast<std::size_t>(storage.constant)];
      const Type type{DType::u8, {value.bytes}};
      const Name name = unique_.unique(value.name.empty() ? "constant" : value.name);
      in_graph_[static_cast<std::size_t>(storage.constant)] =
          as_state ? trace_.graph.add_state(name, type, Role::parameter) : trace_.graph.add_input(name, type);
    }
  }

  void add_to_graph(const TraceNode& node) {
    std::vector<ValueId> operands;
    for (const std::int32_t value : node.operands) operands.push_back(in_graph_[static_cast<std::size_t>(value)]);
    std::vector<std::int64_t> bytes;
    for (const std::int32_t value : node.results) bytes.push_back(values_[static_cast<std::size_t>(value)].bytes);
    Origin origin;
    origin.phase = node.backward ? Phase::backward : Phase::forward;
    origin.path = node.op;
    ValueId made = trace_.graph.value_count();
    add_opaque(&trace_.graph, operands, bytes, node.nanoseconds / 1000, origin);
    for (const std::int32_t value : node.results) {
      const std::string& name = values_[static_cast<std::size_t>(value)].name;
      trace_.graph.values[static_cast<std::size_t>(made)].name = unique_.unique(name.empty() ? "value" : name);
      in_graph_[static_cast<std::size_t>(value)] = made++;
    }
  }

  void add_result_of_trace(const Storage& storage) {
    const ValueId value = in_graph_[static_cast<std::size_t>(storage.value)];
    if (is_updated(storage))
      trace_.graph.updates.push_back({in_graph_[static_cast<std::size_t>(storage.constant)], value});
    else if (storage.names > 0 && storage.constant == kNone)
      results_.push_back(value);
  }

  TraceLines lines_;
  const std::string& file_;
  ImportedResults how_;
  ImportedTrace trace_;
  std::unordered_map<std::string, TraceName> names_;
  std::vector<Storage> storages_;
  std::vector<TraceValue> values_;
  std::vector<TraceNode> nodes_;
  std::vector<ValueId> in_graph_;  // by trace value
  std::vector<ValueId> results_;
  UniqueNames unique_;
  std::int64_t held_bytes_ = 0, total_bytes_ = 0;
  bool is_backward_ = false, has_started_ = false;
};

}  // namespace

ImportedTrace import_simrd(std::string_view text, const std::string& file, ImportedResults results) {
  return TraceReader(text, file, results).read();
}

}  // namespace tapedeck
