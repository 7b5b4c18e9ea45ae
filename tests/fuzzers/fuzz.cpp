#include <tapedeck/tests/fuzzers/fuzz.h>

#include <tapedeck/capture/cost/node_costs.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/kernels/attrs/control.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <vector>

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  // Settings are read once, so they must stand before the first input.
  setenv("TAPEDECK_CALIBRATION", "off", 1);
  setenv("TAPEDECK_POISON", "2", 1);
  return 0;
}

namespace tapedeck::fuzz {

namespace {

constexpr std::int64_t kMostRuns = 2000;  // of nodes, those of the passes of a loop counted each time
constexpr std::int64_t kMostBytes = std::int64_t{4} << 20;
constexpr double kMostUs = 5000;  // by the built-in estimates, which are for code without sanitizers

struct Load {
  std::int64_t runs = 0;
  std::int64_t bytes = 0;
  bool bounded = true;
  void add_runs(std::int64_t n) { runs = std::min(runs + n, kMostRuns + 1); }
  void add_bytes(std::int64_t n) { bytes = std::min(bytes + std::min(n, kMostBytes + 1), kMostBytes + 1); }
  bool fits() const { return bounded && runs <= kMostRuns && bytes <= kMostBytes; }
};

// The passes of a node's regions: 1 for a branch, -1 if only a run can tell.
std::int64_t passes(const Graph& graph, const Node& node) {
  std::int64_t carried = 0, scanned = 0, trips = 1;
  if (node.op == &ops::while_loop || node.op == &ops::scan) {
    const auto& attrs = *static_cast<const LoopAttrs*>(graph.attributes(node));
    carried = attrs.carried, scanned = attrs.scanned, trips = attrs.trips;
  } else if (node.op == &ops::loop_grad) {
    const auto& attrs = *static_cast<const LoopGradAttrs*>(graph.attributes(node));
    carried = attrs.carried + 1, scanned = attrs.scanned, trips = attrs.trips;
  }
  return scanned > 0 ? graph.values[graph.inputs(node)[carried]].type.shape[0] : trips;
}

// REQUIRES: the graph verifies, so that its regions nest at most kMaxNesting deep.
void add_load(const Graph& graph, std::int64_t times, Load* load) {
  load->add_runs(times * graph.node_count());
  for (const Value& value : graph.values) load->add_bytes(value.type.bytes());
  for (const Node& node : graph.nodes) {
    if (!load->fits()) return;
    if (node.n_regions == 0) {
      load->add_bytes(kernel_workspace(graph, node));
      continue;
    }
    const std::int64_t trips = passes(graph, node);
    if (trips < 0 || trips > kMostRuns) load->bounded = false;
    for (const Region& region : graph.regions_of(node))
      if (load->fits()) add_load(*region, times * std::max<std::int64_t>(trips, 1), load);
  }
}

std::vector<Tensor> stand_ins(const Graph& graph, ValueId first, std::int32_t count) {
  std::vector<Tensor> values;
  for (ValueId v = first; v < first + count; ++v) values.push_back(default_value(graph.values[v].type, 1, graph.value_name(v)));
  return values;
}

std::optional<EagerResult> eager_result(const Graph& graph, const std::vector<Tensor>& inputs,
                                        const std::vector<Tensor>& state) {
  try {
    return run_eagerly(graph, inputs, state);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void compare(const Executor& executor, const EagerResult& eager) {
  const std::vector<Tensor> outputs = executor.outputs();
  if (outputs.size() != eager.outputs.size()) find("the replay has another number of results than eager code");
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (!bit_equal(outputs[i], eager.outputs[i]))
      find("result " + std::to_string(i) + " of the replay differs from eager code");
  const std::vector<std::string> names = executor.state_names();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!bit_equal(executor.state(names[i]), eager.state[i]))
      find("state " + names[i] + " of the replay differs from eager code");
}

}  // namespace

MemoryFile::MemoryFile(std::string_view bytes) {
  descriptor_ = memfd_create("fuzz", 0);
  if (descriptor_ < 0) find("memfd_create failed");
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = write(descriptor_, bytes.data() + done, bytes.size() - done);
    if (written <= 0) find("a file in memory cannot be written");
    done += static_cast<std::size_t>(written);
  }
  path_ = "/proc/self/fd/" + std::to_string(descriptor_);
}

MemoryFile::~MemoryFile() { close(descriptor_); }

bool can_run(const Graph& graph) {
  Load load;
  add_load(graph, 1, &load);
  if (!load.fits()) return false;
  const std::vector<double> costs = node_costs(graph);
  return std::accumulate(costs.begin(), costs.end(), 0.0) <= kMostUs;
}

void replay_and_compare(const Plan& plan, const Graph& graph) {
  const std::vector<Tensor> inputs = stand_ins(graph, 0, graph.n_inputs);
  const std::vector<Tensor> state = stand_ins(graph, graph.n_inputs, graph.n_state);
  const std::optional<EagerResult> eager = eager_result(graph, inputs, state);
  try {
    Executor executor(plan);
    for (std::size_t i = 0; i < inputs.size(); ++i) executor.set_input(static_cast<int>(i), inputs[i]);
    const std::vector<std::string> names = executor.state_names();
    for (std::size_t i = 0; i < state.size(); ++i) executor.set_state(names[i], state[i]);
    executor.run();
    if (eager) compare(executor, *eager);
  } catch (const Error& error) {
    if (eager) find(std::string("the replay fails where eager code does not: ") + error.what());
  }
}

void find(const std::string& what) {
  std::fprintf(stderr, "find: %s\n", what.c_str());
  std::abort();
}

void expect_text_of(const Graph& graph) {
  const std::string printed = print(graph);
  try {
    if (print(parse(printed)) != printed) find("an imported graph prints as another text once it was parsed");
  } catch (const Error& error) {
    find(std::string("an imported graph prints as text that does not parse: ") + error.what());
  }
}

void expect_only_errors(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error&) {
  }
}

}  // namespace tapedeck::fuzz
