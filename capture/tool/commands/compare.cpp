// compare: what differs between two files, in their graphs, their plans and their numbers.
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/start_values.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/compare_report.h>

#include <set>

namespace tapedeck::tool {

namespace {

struct CompareOptions {
  std::string a, b;
  Tolerance tolerance;
  std::int64_t limit = 20;  // lines of a list; 0: all
  bool json = false;
};

std::vector<Option> compare_table(CompareOptions& o) {
  return {
      {.name = "FILE", .to = &o.a, .help = "A, a .tape file or a graph as text (.graph).", .required = true},
      {.name = "OTHER_FILE", .to = &o.b, .help = "B, which is compared with it.", .required = true},
      tolerance_option("--rtol", &o.tolerance.relative,
                       "Numbers of A may differ from those of B by this times those of B, added to --atol."),
      tolerance_option("--atol", &o.tolerance.absolute, "Numbers may differ by this, added to --rtol."),
      {.name = "--limit",
       .metavar = "N",
       .to = &o.limit,
       .help = "Print at most this many entries of each list; 0 prints all. --json has all.",
       .group = "Output",
       .least = 0,
       .most = 1e9},
      json_option(&o.json),
  };
}

// Values that neither file has are no difference. "input x" and "state w" are their names.
void compare_values(const std::string& kind, const std::map<std::string, Tensor>& a, const std::map<std::string, Tensor>& b,
                    const Tolerance& tolerance, NumberComparison* found) {
  for (const auto& [name, tensor] : a) {
    const auto it = b.find(name);
    if (it == b.end()) {
      found->only_a.push_back(kind + name);
      continue;
    }
    ++found->compared;
    const TensorDifference difference = compare_tensors(tensor, it->second, tolerance);
    if (!difference.equal()) found->differences.emplace_back(kind + name, difference);
  }
  for (const auto& [name, tensor] : b)
    if (a.count(name) == 0) found->only_b.push_back(kind + name);
}

FileComparison compare(const CompareOptions& options) {
  TapeFile a, b;
  {
    Progress progress("loading");
    a = load_any(options.a, Check::all);
    b = load_any(options.b, Check::all);
  }
  Progress progress("comparing");
  FileComparison found;
  found.a = options.a;
  found.b = options.b;
  found.graph = compare_graphs(a.captured, b.captured);
  found.planned_a = a.plan.has_value();
  found.planned_b = b.plan.has_value();
  if (a.plan && b.plan) found.plan = compare_plans(*a.plan, *b.plan);
  compare_values("input ", a.inputs, b.inputs, options.tolerance, &found.numbers);
  compare_values("state ", a.state, b.state, options.tolerance, &found.numbers);
  std::set<std::string> keys;
  for (const auto& [key, value] : a.metadata) keys.insert(key);
  for (const auto& [key, value] : b.metadata) keys.insert(key);
  for (const std::string& key : keys)
    if (a.metadata[key] != b.metadata[key]) found.metadata.push_back({key, a.metadata[key], b.metadata[key]});
  return found;
}

int run_compare(const CompareOptions& options) {
  const StopAtInterrupt stop;
  const FileComparison found = compare(options);
  answer(options.json ? compare_report(found) : compare_text(found, options.limit));
  return found.equal() ? kOk : kDiffers;
}

[[maybe_unused]] const bool compare_registered = register_command(
    "compare", CommandGroup::record, "Say what differs between two files: graphs, plans and numbers.", compare_table,
    run_compare,
    "Nodes are matched by name, then by structure; other names alone are no difference, and neither is metadata. Exit code 1 "
    "if\n"
    "something differs.");

}  // namespace

}  // namespace tapedeck::tool
