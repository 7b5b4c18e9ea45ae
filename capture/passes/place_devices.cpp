// Device placement: every node runs where the user's map says, and a copy stands wherever a value crosses between devices.
//     %a = exp(%x); %b = tanh(%a)        with a map that puts tanh on cpu:1
// becomes
//     %a = exp(%x); %2 = to_device(%a) {device="cpu:1", from="cpu"}; %b = tanh(%2); %4 = to_device(%b) {device="cpu",
//     from="cpu:1"}
// A node without a wish runs where the node that it repeats runs (clones), or where its forward twin runs (backward). Any
// other node runs where the first of its operands is that has a place by then, or on the fallback device if none has one. A
// node without operands runs where its result is first read. A value crosses to a device once, for all its readers there.
// Results are returned on the fallback device, except that an input or a state is returned where it is. The new value of a
// state goes where the state is. The graph shows where each value is (value_devices.h). The plan lays all logical devices of
// one memory into one arena. Does nothing without a map. Cost: O(nodes and operands).
#include <tapedeck/capture/passes/passes.h>
#include <tapedeck/capture/passes/registry.h>
#include <tapedeck/capture/passes/value_devices.h>
#include <tapedeck/engine/ops/device.h>

#include <map>
#include <unordered_map>

namespace tapedeck {

namespace {

class Placer {
 public:
  Placer(const Graph& graph, const DeviceMap& map)
      : from_(graph), map_(map), device_(graph.nodes.size()), rewriter_(graph), to_(rewriter_.graph()) {}

  Graph run() {
    for (ValueId v = 0; v < from_.value_count(); ++v) by_name_.emplace(from_.values[v].name.id(), v);
    home_.resize(static_cast<std::size_t>(from_.n_inputs + from_.n_state));
    for (ValueId v = 0; v < from_.n_inputs + from_.n_state; ++v)
      home_[v] = or_fallback(map_.of_value ? map_.of_value(from_, v) : std::string());
    for (NodeId n = 0; n < from_.node_count(); ++n) device_[n] = choose(n);
    settle_sources();
    for (NodeId n = 0; n < from_.node_count(); ++n) append(n);
    return finish();
  }

 private:
  Name or_fallback(const std::string& wish) const { return wish.empty() ? Name(map_.fallback) : Name(wish); }
  Name place_of(ValueId v) const { return from_.values[v].node == kNone ? home_[v] : device_[from_.values[v].node]; }

  Name choose(NodeId n) const {
    const Node& node = from_.nodes[n];
    if (node.op->attrs == &attr_schema<ToDeviceAttrs>())
      return static_cast<const ToDeviceAttrs*>(from_.attributes(node))->device;
    const std::string wish = map_.of_node ? map_.of_node(from_, n) : std::string();
    if (!wish.empty()) return wish;
    for (Name note : {node.origin.of, node.origin.twin}) {
      const auto named = note.empty() ? by_name_.end() : by_name_.find(note.id());
      if (named != by_name_.end() && from_.values[named->second].node != kNone && from_.values[named->second].node < n)
        return device_[from_.values[named->second].node];
    }
    for (ValueId v : from_.inputs(node))
      if (!place_of(v).empty()) return place_of(v);
    return node.n_inputs == 0 ? Name() : Name(map_.fallback);
  }

  // A node without operands and without a wish runs where its result is first read.
  void settle_sources() {
    for (NodeId n = 0; n < from_.node_count(); ++n)
      for (ValueId v : from_.inputs(from_.nodes[n]))
        if (const NodeId maker = from_.values[v].node; maker != kNone && device_[maker].empty()) device_[maker] = device_[n];
    for (Name& device : device_)
      if (device.empty()) device = map_.fallback;
  }

  // Value v of the old graph on a device, in the new graph; it is copied there if it is on another device.
  ValueId on(ValueId v, Name device, const Origin& reader) {
    if (place_of(v) == device) return rewriter_.at(v);
    ValueId& copy = copies_.try_emplace({v, device.id()}, kNone).first->second;
    if (copy != kNone) return copy;
    Origin origin;
    origin.phase = reader.phase;
    origin.path = reader.path;
    origin.site = reader.site;
    const ToDeviceAttrs attrs{device, place_of(v)};
    const ValueId operand[] = {rewriter_.at(v)};
    const Type type[] = {from_.values[v].type};
    return copy = to_.nodes[to_.add_node(ops::to_device, operand, &attrs, type, origin)].first_output;
  }

  void append(NodeId n) {
    const Node& node = from_.nodes[n];
    const bool moves = node.op->attrs == &attr_schema<ToDeviceAttrs>();
    const Name here = moves ? static_cast<const ToDeviceAttrs*>(from_.attributes(node))->from : device_[n];
    std::vector<std::pair<ValueId, ValueId>>
        before;  // operands that are read in another place, and the values that they were mapped to
    for (ValueId v : from_.inputs(node)) {
      const ValueId there = on(v, here, node.origin);
      if (there == rewriter_.at(v)) continue;
      before.emplace_back(v, rewriter_.at(v));
      rewriter_.replace(v, there);
    }
    rewriter_.copy(n);
    for (auto at = before.rbegin(); at != before.rend(); ++at) rewriter_.replace(at->first, at->second);
  }

  Graph finish() {
    std::vector<ValueId> outputs, updates;
    Origin last;
    for (ValueId v : from_.outputs)
      outputs.push_back(from_.values[v].node == kNone ? rewriter_.at(v) : on(v, map_.fallback, last));
    last.phase = Phase::update;
    for (const Update& u : from_.updates) updates.push_back(on(u.value, home_[u.state], last));
    Graph result = rewriter_.finish();
    result.outputs = std::move(outputs);
    for (std::size_t i = 0; i < updates.size(); ++i) result.updates[i].value = updates[i];
    return result;
  }

  const Graph& from_;
  const DeviceMap& map_;
  std::vector<Name> device_;  // by node
  std::vector<Name> home_;    // of inputs and state
  std::unordered_map<const void*, ValueId> by_name_;
  std::map<std::pair<ValueId, const void*>, ValueId> copies_;  // used for lookups alone
  Rewriter rewriter_;
  Graph& to_;
};

}  // namespace

Graph place_devices(Graph graph, const PassOptions& options) {
  if (!options.devices.of_node && !options.devices.of_value) return graph;
  return Placer(graph, options.devices).run();
}

namespace {
DeviceMap sample_map() {
  DeviceMap map;
  map.of_node = [](const Graph& g, NodeId n) { return g.nodes[n].op->name == std::string_view("tanh") ? "cpu:1" : ""; };
  return map;
}

const bool place_devices_pass = register_pass({
    .name = "place_devices",
    .aliases = {"devices"},
    .doc = "copies values to the devices that the user's map gives nodes",
    .before = "graph g(%x: f32[4]) {\n  %a: f32[4] = exp(%x)\n  %b: f32[4] = tanh(%a)\n  return %b\n}\n",
    .after = "graph g(%x: f32[4]) {\n  %a: f32[4] = exp(%x)\n  %2: f32[4] = to_device(%a) {device=\"cpu:1\", from=\"cpu\"}\n"
             "  %b: f32[4] = tanh(%2)\n  %4: f32[4] = to_device(%b) {device=\"cpu\", from=\"cpu:1\"}\n  return b=%4\n}\n",
    .run = place_devices,
    .asked_for = true,
    .in_regions = false,
    .sample = {.devices = sample_map()},
});
}  // namespace

}  // namespace tapedeck
