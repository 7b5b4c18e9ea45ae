#include <tapedeck/engine/ops/dynamic.h>

#include <tapedeck/engine/dispatch.h>
#include <tapedeck/engine/dispatch_regions.h>
#include <tapedeck/engine/dynamic_count.h>
#include <tapedeck/engine/error.h>
#include <tapedeck/engine/infer.h>
#include <tapedeck/engine/site_note.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

namespace tapedeck {

namespace {

std::atomic<std::int64_t> most_bytes{0};

void note_bytes(std::int64_t bytes) {
  std::int64_t most = most_bytes.load(std::memory_order_relaxed);
  while (bytes > most && !most_bytes.compare_exchange_weak(most, bytes, std::memory_order_relaxed)) {
  }
}

// One run of a region: its nodes one by one through dispatch, values gone after their last reader.
class RegionRun {
 public:
  explicit RegionRun(const Graph& g) : g_(g), values_(g.values.size()), last_(g.values.size(), kNone) {
    for (NodeId n = 0; n < g.node_count(); ++n)
      for (ValueId v : g.inputs(g.nodes[static_cast<std::size_t>(n)])) last_[static_cast<std::size_t>(v)] = n;
    for (ValueId v : g.outputs) last_[static_cast<std::size_t>(v)] = g.node_count();
  }

  std::vector<Tensor> run(std::span<const Tensor> inputs) {
    std::copy(inputs.begin(), inputs.end(), values_.begin());
    for (NodeId n = 0; n < g_.node_count(); ++n) {
      run_node(g_.nodes[static_cast<std::size_t>(n)]);
      drop_after(n);
    }
    std::vector<Tensor> results;
    for (ValueId v : g_.outputs) results.push_back(values_[static_cast<std::size_t>(v)]);
    return results;
  }

 private:
  void run_node(const Node& node) {
    if (const Literal* literal = g_.literal(node)) {
      values_[static_cast<std::size_t>(node.first_output)] = literal->type.bytes() > 0 ? from_bytes(literal->type, literal->data.get()) : empty(literal->type);
      return;
    }
    std::vector<Tensor> operands, results;
    for (ValueId v : g_.inputs(node)) operands.push_back(values_[static_cast<std::size_t>(v)]);
    const Site site = site_of(node.origin);
    if (node.n_regions > 0) {
      results = apply_regions(*node.op, g_.regions_of(node), operands, g_.attributes(node), site);
    } else {
      std::vector<unsigned char> attrs;
      const void* from = g_.attributes(node);
      if (counts_elements(*node.op)) {
        const auto* bytes = static_cast<const unsigned char*>(from);
        attrs.assign(bytes, bytes + node.op->attrs->size);
        set_count(attrs.data(), read_count(operands.back()));
        from = attrs.data();
      }
      const std::vector<Type> declared = node.op->is(kDeclaredTypes) ? g_.output_types(node) : std::vector<Type>{};
      results = apply_all(*node.op, operands, from, site, declared);
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!node.op->is(kView)) bytes_ += results[i].bytes();
      values_[static_cast<std::size_t>(node.first_output) + i] = std::move(results[i]);
    }
    note_bytes(bytes_);
  }

  void drop_after(NodeId n) {
    const Node& node = g_.nodes[static_cast<std::size_t>(n)];
    const auto drop = [&](ValueId v) {
      Tensor& t = values_[static_cast<std::size_t>(v)];
      const NodeId maker = g_.values[static_cast<std::size_t>(v)].node;
      if (!t.defined()) return;
      if (maker != kNone && !g_.nodes[static_cast<std::size_t>(maker)].op->is(kView)) bytes_ -= t.bytes();
      t = Tensor();
    };
    for (ValueId v : g_.inputs(node))
      if (last_[static_cast<std::size_t>(v)] == n) drop(v);
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v)
      if (last_[static_cast<std::size_t>(v)] == kNone) drop(v);
  }

  const Graph& g_;
  std::vector<Tensor> values_;
  std::vector<NodeId> last_;   // by value: its last reader
  std::int64_t bytes_ = 0;
};

}  // namespace

std::int64_t dynamic_peak_bytes() { return most_bytes.load(); }
void reset_dynamic_peak() { most_bytes = 0; }

static void infer_dynamic(Infer& f) {
  const Graph& region = *f.regions[0];
  if (f.inputs.size() != static_cast<std::size_t>(region.n_inputs))
    f.fail(fmt::format("{} operands for a region with {} inputs", f.inputs.size(), region.n_inputs));
  for (std::size_t i = 0; i < f.inputs.size(); ++i)
    if (f.inputs[i] != region.values[i].type)
      f.fail(fmt::format("operand {} is {}, the region wants {}", i, to_string(f.inputs[i]), to_string(region.values[i].type)));
  f.outputs.clear();
  for (ValueId v : region.outputs) f.outputs.push_back(region.values[static_cast<std::size_t>(v)].type);
}

static std::vector<Tensor> run_dynamic(std::span<const Region> regions, std::span<const Tensor> inputs, const void*, std::span<const Type> outputs, Site site) {
  const Unrecorded unrecorded;
  std::vector<Tensor> results = RegionRun(*regions[0]).run(inputs);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i].type() != outputs[i])
      throw ExecutionError(error_text("dynamic", fmt::format("result {} came out as {}, the plan has room for {}", i, to_string(results[i].type()), to_string(outputs[i])), site));
  return results;
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/dynamic.h>
