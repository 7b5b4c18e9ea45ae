// gradient: appends the backward to the graph of a file. The gradients become further outputs, named "grad." and the name of
// the value.
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/start_values.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/engine/gradient/graph_gradient.h>
#include <tapedeck/engine/text/suggest.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <unordered_map>

namespace tapedeck::tool {

namespace {

struct GradientCommandOptions {
  std::string file;
  std::vector<std::string> of, wrt, heads;  // names of values, each entry one or several with commas between
  std::string output;
  bool allow_unreached = false, json = false;
};

std::vector<Option> gradient_table(GradientCommandOptions& o) {
  return {
      file_argument(&o.file),
      {.name = "--of",
       .metavar = "VALUES",
       .to = &o.of,
       .help = "The values to differentiate: %loss, or several: %a,%b.",
       .required = true},
      {.name = "--wrt",
       .metavar = "VALUES",
       .to = &o.wrt,
       .help = "The values to differentiate with respect to: %w,%x.",
       .required = true},
      {.name = "--head",
       .metavar = "VALUES",
       .to = &o.heads,
       .help = "Values of the graph that are the gradients of the values of --of, one for each, in the same order.",
       .fallback = "ones"},
      {.name = "--allow-unreached",
       .to = &o.allow_unreached,
       .help = "A value of --of that depends on no value of --wrt adds nothing, instead of being an error."},
      {.name = "--output",
       .letter = 'o',
       .metavar = "FILE.graph",
       .to = &o.output,
       .help = "Write the graph here instead of to stdout.",
       .group = "Output"},
      json_option(&o.json),
  };
}

// "%w,%x" or "w" "x": names, with '%' or without.
std::vector<std::string> split_names(const std::vector<std::string>& given) {
  std::vector<std::string> names;
  for (const std::string& list : given) {
    std::size_t from = 0;
    for (std::size_t comma = 0; comma != std::string::npos; from = comma + 1) {
      comma = list.find(',', from);
      std::string name = list.substr(from, comma == std::string::npos ? comma : comma - from);
      if (!name.empty() && name[0] == '%') name.erase(0, 1);
      if (name.empty()) throw UsageError(fmt::format("'{}' holds an empty name; separate names by one comma: %a,%b", list));
      names.push_back(std::move(name));
    }
  }
  return names;
}

class Values {
 public:
  explicit Values(const Graph& graph) {
    for (ValueId v = 0; v < graph.value_count(); ++v) by_name_[graph.value_name(v)] = v;
  }
  std::vector<ValueId> find(const std::vector<std::string>& names) const {
    std::vector<ValueId> found;
    for (const std::string& name : names) {
      const auto it = by_name_.find(name);
      if (it == by_name_.end()) throw UsageError(fmt::format("the graph has no value %{}{}", name, suggestion(name)));
      found.push_back(it->second);
    }
    return found;
  }

 private:
  std::string suggestion(const std::string& name) const {
    std::vector<std::string_view> all;
    for (const auto& [known, v] : by_name_) all.push_back(known);
    std::sort(all.begin(), all.end());
    return did_you_mean(name, all);
  }
  std::unordered_map<std::string, ValueId> by_name_;
};

// Appends the gradients as outputs named after their wrt; a name that is taken gets a number.
void add_outputs(Graph* graph, const std::vector<std::string>& wrt, const std::vector<ValueId>& gradients) {
  graph->output_names.resize(graph->outputs.size());
  const auto taken = [&](const std::string& name) {
    return std::any_of(graph->output_names.begin(), graph->output_names.end(), [&](Name known) { return known == Name(name); });
  };
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    const std::string base = "grad." + wrt[i];
    std::string name = base;
    for (int k = 1; taken(name); ++k) name = fmt::format("{}.{}", base, k);
    graph->outputs.push_back(gradients[i]);
    graph->output_names.push_back(Name(name));
  }
}

int run_gradient(const GradientCommandOptions& options) {
  const StopAtInterrupt stop;
  check_outputs({options.file}, {{"-o", options.output, true}});
  const Graph graph = load_any(options.file, Check::structure).captured;
  const Values values(graph);
  const std::vector<std::string> wrt = split_names(options.wrt), heads = split_names(options.heads);
  const std::vector<ValueId> targets = values.find(split_names(options.of));
  GraphGradientOptions how;
  how.heads = values.find(heads);
  how.allow_unreached = options.allow_unreached;
  if (!how.heads.empty() && how.heads.size() != targets.size())
    throw UsageError(
        fmt::format("{} --head for {} --of: give one for each, in the same order, or none", how.heads.size(), targets.size()));
  GraphGradient made = tapedeck::gradient(graph, targets, values.find(wrt), how);
  add_outputs(&made.graph, wrt, made.gradients);
  tapedeck::verify(made.graph);
  const std::string text = tapedeck::print(made.graph);
  if (!options.output.empty()) write_text(options.output, text);
  const std::string result = options.json ? gradient_report(made.graph, graph.node_count(), wrt, made.gradients, text) : text;
  if (options.json || options.output.empty()) answer(result, answers_beside(options.output));
  return kOk;
}

[[maybe_unused]] const bool gradient_registered =
    register_command("gradient", CommandGroup::graphs, "Append the backward of a graph; the gradients become further outputs.",
                     gradient_table, run_gradient);

}  // namespace

}  // namespace tapedeck::tool
