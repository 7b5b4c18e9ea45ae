#include <tapedeck/capture/onnx/interpreter.h>

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/strides.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <new>
#include <optional>

namespace tapedeck::onnx {

namespace {

constexpr std::int64_t kMostKnownBytes = 16 << 20;   // of the results of a node that is computed at import
constexpr std::int64_t kMostKnownInAll = 512 << 20;  // of all of them

bool lists(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

std::int64_t tensor_bytes(const Tensors& tensors) {
  std::int64_t bytes = 0;
  for (const Tensor& t : tensors)
    if (t.defined()) bytes += t.bytes();
  return bytes;
}

// A model that Tapedeck wrote says in which phase of a step a node is.
Phase phase_of(const Node& node, Phase otherwise) {
  const auto it = node.metadata.find("tapedeck.phase");
  if (it == node.metadata.end()) return otherwise;
  for (const Phase phase : {Phase::backward, Phase::update})
    if (it->second == phase_name(phase)) return phase;
  return otherwise;
}

}  // namespace

const Operand* Scope::find(const std::string& name) const {
  for (const Scope* s = this; s != nullptr; s = s->outer)
    if (const auto it = s->values.find(name); it != s->values.end()) return &it->second;
  return nullptr;
}

const Operand& Interpreter::value(const Scope& scope, const std::string& name) const {
  const Operand* found = scope.find(name);
  if (found == nullptr) throw ParseError(fmt::format("{}: no node computes the value '{}'", state_.path, name));
  return *found;
}

void Interpreter::fail(const Node& node, const std::string& message) const {
  throw ParseError(fmt::format("{}: {}: {}", state_.path, describe(node), message));
}

std::int64_t Interpreter::opset_of(const Node& node) const {
  if (node.opset != 0 && node.domain.empty()) return node.opset;
  const auto it = model_.opsets.find(node.domain);
  return it == model_.opsets.end() ? 0 : it->second;
}

namespace {

// The place that a line such as `File "model.py", line 12, in forward` names; no file: the text names none.
Site site_of_line(std::string_view text) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  const std::size_t file = text.find(kFile), line = text.find(kLine);
  if (file == std::string_view::npos || line == std::string_view::npos || file + kFile.size() >= line) return {};
  int number = 0;
  const char* digits = text.data() + line + kLine.size();
  if (std::from_chars(digits, text.data() + text.size(), number).ec != std::errc()) return {};
  return {Name(text.substr(file + kFile.size(), line - file - kFile.size())).view().data(), number};
}

// The innermost line of a stack trace that is not one of PyTorch itself.
Site site_of_trace(std::string_view trace) {
  Site found;
  for (std::size_t at = 0; at < trace.size();) {
    const std::size_t end = std::min(trace.find('\n', at), trace.size());
    const std::string_view line = trace.substr(at, end - at);
    if (line.find("/torch/") == std::string_view::npos)
      if (const Site site = site_of_line(line); site.line > 0) found = site;
    at = end + 1;
  }
  return found;
}

}  // namespace

// Without a stack trace: the file of the model, and the number of the node in it.
Site Interpreter::site_of(const Node& node, std::int64_t number) const {
  if (const auto it = node.metadata.find("pkg.torch.onnx.stack_trace"); it != node.metadata.end())
    if (const Site site = site_of_trace(it->second); site.line > 0) return site;
  const std::size_t slash = state_.path.rfind('/');
  return {Name(slash == std::string::npos ? state_.path : state_.path.substr(slash + 1)).view().data(),
          static_cast<int>(number)};
}

void Interpreter::check_attributes(const Node& node, const OnnxOp& op) const {
  for (const auto& [name, a] : node.attributes)
    if (!lists(op.attributes, name)) fail(node, fmt::format("the attribute '{}' is not known", name));
}

// The entry of the table that reads this node.
const OnnxOp& Interpreter::op_of(const Node& node) const {
  if (!node.domain.empty() && node.domain != kMlDomain)
    fail(node, fmt::format("the domain '{}' is not supported", node.domain));
  const OnnxOp* op = find_op(node.domain, node.op);
  if (op == nullptr) {
    const char* reason = why_unsupported(node.domain, node.op);
    fail(node, reason == nullptr ? "ONNX has no such op" : fmt::format("this op is not supported: {}", reason));
  }
  const std::int64_t opset = opset_of(node);
  if (opset < op->since) fail(node, fmt::format("the op came with opset {}, and the model is of opset {}", op->since, opset));
  if (op->until != 0 && opset >= op->until)
    fail(node,
         fmt::format("opset {} changed this op, and the model is of opset {}: export it at an older one", op->until, opset));
  return *op;
}

void Interpreter::run(Scope& scope, Pass pass) {
  pass_ = pass;
  std::int64_t number = 0;
  for (const Node& node : scope.graph->nodes) run_node(scope, node, ++number);
}

const Operand* Interpreter::operand(const Scope& scope, const Node& node, std::size_t i) const {
  if (i >= node.inputs.size() || node.inputs[i].empty()) return nullptr;
  const Operand* found = scope.find(node.inputs[i]);
  if (found == nullptr)
    fail(node, fmt::format("it reads '{}', which is no input and no result of a node before it", node.inputs[i]));
  return found;
}

void Interpreter::run_node(Scope& scope, const Node& node, std::int64_t number) {
  const auto is_known = [&](const std::string& output) { return output.empty() || scope.known.count(output) > 0; };
  if (pass_ == Pass::record && !node.outputs.empty() && std::all_of(node.outputs.begin(), node.outputs.end(), is_known)) {
    for (const std::string& output : node.outputs)
      if (!output.empty()) scope.values[output] = scope.known[output];
    return;
  }
  const Site site = site_of(node, number);
  const std::string path = module_path(node);
  const Scoped<Phase> phase(thread_state().phase, phase_of(node, thread_state().phase));
  std::optional<PathScope> in_module;
  if (!path.empty()) in_module.emplace(path);
  try {
    if (run_control(scope, node, site)) return;
    const OnnxOp& op = op_of(node);
    check_attributes(node, op);
    std::vector<Operand> operands;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Operand* o = operand(scope, node, i);
      operands.push_back(o == nullptr ? Operand() : *o);
    }
    NodeCall call(state_, *scope.graph, node, opset_of(node), std::move(operands), site);
    give(scope, node, results_of(node, op, call));
  } catch (const ParseError&) {
    throw;
  } catch (const FileError&) {
    throw;
  } catch (const Error& e) {
    fail(node, e.what());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    fail(node, e.what());
  }
}

// A node whose operands are all known is computed, if its results are small. The results of Shape and Size are known in any
// case.
Tensors Interpreter::results_of(const Node& node, const OnnxOp& op, NodeCall& call) const {
  if (pass_ == Pass::record) return op.import(call);
  bool known = !op.draws;
  for (std::size_t i = 0; i < call.count(); ++i) known = known && (!call.has(i) || call.is_known(i));
  Tensors results;
  {
    // NonZero needs the elements to know how many there are, and has an index of each dimension for each of them.
    const bool by_value = known && node.op == "NonZero" && call.has(0) && 8 * 8 * call[0].numel() <= kMostKnownBytes;
    const AbstractMode types(!by_value);
    results = op.import(call);
  }
  const std::int64_t bytes = tensor_bytes(results);
  if (known && bytes <= kMostKnownBytes && state_.known_bytes + bytes <= kMostKnownInAll) {
    state_.known_bytes += bytes;
    const AbstractMode concrete(false);
    results = op.import(call);
  } else {
    // A view of a tensor with elements has elements, even where only types are computed. Those of a transposed or expanded
    // tensor would have to be copied, so they are left unknown, as other results that are too large.
    for (Tensor& t : results)
      if (t.defined() && !t.abstract() && !is_dense(t.shape(), t.strides())) t = abstract_tensor(t.type());
  }
  return results;
}

void Interpreter::give(Scope& scope, const Node& node, const Tensors& results) {
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= results.size() || !results[i].defined()) fail(node, fmt::format("the result {} is not supported", i));
    const bool known = !results[i].abstract() && pass_ == Pass::find_known;
    const Operand result = known ? known_operand(results[i]) : Operand{results[i]};
    if (known) scope.known[node.outputs[i]] = result;
    if (!scope.values.emplace(node.outputs[i], result).second)
      fail(node, fmt::format("the value '{}' is computed twice", node.outputs[i]));
  }
}

}  // namespace tapedeck::onnx
