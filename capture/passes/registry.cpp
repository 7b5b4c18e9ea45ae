// The registry of passes, and the way of a pass into regions: innermost regions first, and each shared region once.
//     main { while { cond { a | b } } }        order: a, b, the body of while, main
// A region whose text does not change stays the same object, so that clones go on sharing it.
#include <tapedeck/capture/passes/registry.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/suggest.h>
#include <tapedeck/engine/text/text.h>

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <unordered_map>

namespace tapedeck {

namespace {

std::deque<Pass>& registry() {
  static std::deque<Pass> passes;  // addresses are stable
  return passes;
}

bool has_name(const Pass& pass, const std::string& name) {
  return pass.name == name || std::find(pass.aliases.begin(), pass.aliases.end(), name) != pass.aliases.end();
}

}  // namespace

bool register_pass(Pass pass) {
  std::vector<const char*> names = pass.aliases;
  names.push_back(pass.name);
  for (const char* name : names)
    if (find_pass(name)) throw UsageError(fmt::format("two passes are named '{}'", name));
  registry().push_back(std::move(pass));
  return true;
}

std::vector<const Pass*> all_passes() {
  std::vector<const Pass*> passes;
  for (const Pass& pass : registry()) passes.push_back(&pass);
  std::sort(passes.begin(), passes.end(), [](const Pass* a, const Pass* b) { return std::string_view(a->name) < b->name; });
  return passes;
}

const Pass* find_pass(const std::string& name) {
  for (const Pass& pass : registry())
    if (has_name(pass, name)) return &pass;
  return nullptr;
}

const Pass& pass_named(const std::string& name) {
  if (const Pass* pass = find_pass(name)) return *pass;
  std::vector<std::string_view> names;
  for (const Pass* pass : all_passes()) {
    names.push_back(pass->name);
    names.insert(names.end(), pass->aliases.begin(), pass->aliases.end());
  }
  const std::string near = did_you_mean(name, names);
  throw UsageError(fmt::format("unknown pass '{}'{} There are: {}", name, near.empty() ? "." : near, [] {
    std::string list;
    for (const Pass* pass : all_passes()) list += (list.empty() ? "" : ", ") + std::string(pass->name);
    return list;
  }()));
}

// ---- regions ----

namespace {

// Regions that are done. A region that several nodes share is rewritten once. `before` keeps its address from being used again.
struct Rewritten {
  Region before, after;
};
using Done = std::unordered_map<const Graph*, Rewritten>;

Graph run_inside_out(const Pass& pass, Graph graph, const PassOptions& options, Done& done);

Region rewritten(const Pass& pass, const Region& region, const PassOptions& options, Done& done) {
  if (const auto known = done.find(region.get()); known != done.end()) return known->second.after;
  Graph inner = run_inside_out(pass, *region, options, done);
  const bool same = print(inner) == print(*region);
  const Region after = same ? region : std::make_shared<const Graph>(std::move(inner));
  done[region.get()] = {region, after};
  return after;
}

Graph run_inside_out(const Pass& pass, Graph graph, const PassOptions& options, Done& done) {
  for (const Node& node : graph.nodes) {
    if (node.op->is(kSampleTypes)) continue;  // a fact about the types need not hold in another run
    if (node.op->is(kTiled)) continue;        // a kernel, made of nodes that were passed already
    for (std::int32_t r = 0; r < node.n_regions; ++r) {
      Region& region = graph.regions[node.first_region + r];
      region = rewritten(pass, region, options, done);
    }
  }
  return pass.run(std::move(graph), options);
}

}  // namespace

Graph run_pass(const Pass& pass, Graph graph, const PassOptions& options) {
  if (!pass.in_regions) return pass.run(std::move(graph), options);
  Done done;
  return run_inside_out(pass, std::move(graph), options, done);
}

}  // namespace tapedeck
