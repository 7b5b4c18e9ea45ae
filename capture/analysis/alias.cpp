// Windows are found in two steps. First each view asks the rule of its op for offset and strides on the bytes of its operand.
// Then every reader is asked whether it takes these strides; a view that some reader does not take gets bytes of its own.
//     %t = transpose(%w)    offset 0, strides [1,10] on %w      readers: matmul takes them, so %t is a window
#include <tapedeck/capture/analysis/alias.h>

#include <algorithm>

namespace tapedeck {

namespace {

bool every_reader_takes(const Graph& graph, const Readers& readers, ValueId v, const Window& window) {
  if (window.dense) return true;
  for (NodeId n : readers.of(v))
    if (!takes_strides(graph, n, v, window.strides)) return false;
  return true;
}

// Whether an operand other than `input` lies on the same bytes. The same value twice is harmless if element i is read before it
// is written.
bool shared_with_other_operand(const Graph& graph, const Node& node, int input, const std::vector<Window>& windows) {
  const auto operands = graph.inputs(node);
  for (int i = 0; i < node.n_inputs; ++i) {
    if (i == input || windows[operands[i]].root != windows[operands[input]].root) continue;
    if (operands[i] != operands[input] || !node.op->is(kElementwise)) return true;
  }
  return false;
}

}  // namespace

bool takes_strides(const Graph& graph, NodeId n, ValueId v, const std::int64_t* strides) {
  const Node& reader = graph.nodes[n];
  if (reader.op->is(kElementwise | kAnyStrides | kView)) return true;  // whichever of perhaps very many operands v is
  const auto operands = graph.inputs(reader);
  for (int i = 0; i < reader.n_inputs; ++i)
    if (operands[i] == v && !takes_strides(*reader.op, i, graph.values[v].type.shape, strides)) return false;
  return true;
}

Window own_bytes_of(const Graph& graph, ValueId v) {
  Window own;
  own.root = own.viewed = v;
  dense_strides(graph.values[v].type.shape, own.strides);
  return own;
}

Window view_window(const Graph& graph, const Node& node, const Window& operand) {
  Window result;
  if (!node.op->is(kView) || !node.op->view || node.n_inputs != 1 || node.n_outputs != 1) return result;
  const Type& from = graph.values[graph.inputs(node)[0]].type;
  const Type& to = graph.values[node.first_output].type;
  if (from.dtype != to.dtype) return result;
  std::int64_t offset = 0;
  if (!node.op->view(from, operand.strides, graph.attributes(node), to, &offset, result.strides)) return result;
  result.root = operand.root;
  result.viewed = operand.viewed;
  result.offset = operand.offset + (to.numel() == 0 ? 0 : offset * static_cast<std::int64_t>(dtype_size(to.dtype)));
  result.dense = is_dense(to.shape, result.strides);
  if (result.dense)
    dense_strides(to.shape, result.strides);  // strides of dimensions of size 1 or 0 mean nothing; one spelling serves all
  if (to.numel() == 0) result.offset = 0;
  return result;
}

std::vector<char> values_with_own_bytes(const Graph& graph) {
  std::vector<char> own(graph.values.size(), 0);
  for (ValueId v : graph.outputs) own[v] = 1;
  for (const Update& u : graph.updates) own[u.value] = 1;
  return own;
}

std::vector<Window> find_windows(const Graph& graph, const Readers& readers, const std::vector<char>& own_bytes,
                                 const std::vector<Window>& parts) {
  std::vector<Window> windows;
  windows.reserve(graph.values.size());
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    if (!parts.empty() && parts[v].root != kNone) {
      windows.push_back(parts[v]);
      continue;
    }
    const NodeId n = graph.values[v].node;
    Window window;
    if (n != kNone && !own_bytes[v] && graph.nodes[n].n_inputs == 1)
      window = view_window(graph, graph.nodes[n], windows[graph.inputs(graph.nodes[n])[0]]);
    if (window.root == kNone || !every_reader_takes(graph, readers, v, window)) window = own_bytes_of(graph, v);
    windows.push_back(window);
  }
  return windows;
}

std::vector<Takeover> find_takeovers(const Graph& graph, NodeId n, const std::vector<Window>& windows) {
  std::vector<Takeover> result;
  const Node& node = graph.nodes[n];
  for (const InplacePair& pair : node.op->inplace) {
    if (pair.input < 0 || pair.input >= node.n_inputs || pair.output < 0 || pair.output >= node.n_outputs) continue;
    const Window& in = windows[graph.inputs(node)[pair.input]];
    const ValueId out = node.first_output + pair.output;
    const std::int64_t bytes = graph.values[out].type.bytes();
    const Type &from = graph.values[graph.inputs(node)[pair.input]].type, &to = graph.values[out].type;
    const bool covers = in.dense && in.offset == 0 && bytes > 0 && graph.values[in.root].type.bytes() == bytes &&
                        from.bytes() == bytes && from.numel() == to.numel();  // element for element
    if (!covers || windows[out].root != out) continue;
    if (!shared_with_other_operand(graph, node, pair.input, windows)) result.push_back({pair.input, pair.output});
  }
  return result;
}

}  // namespace tapedeck
