#include <tapedeck/capture/replay/faults.h>

#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <new>

namespace tapedeck::replay {

namespace {

std::string text_of(const Graph& graph, NodeId n, const std::string& what) {
  const Node& node = graph.nodes[n];
  const std::string site = node.origin.site.empty() ? "" : fmt::format(" ({})", node.origin.site.view());
  return fmt::format("[{}] {}, at {}{}", node.op->name, what, graph.node_text(n), site);
}

}  // namespace

void throw_fault(const Graph& graph, const Fault& fault, const std::string& end) {
  if (!fault.thrown) throw ExecutionError(text_of(graph, fault.node, fault.reported) + end);
  try {
    std::rethrow_exception(fault.thrown);
  } catch (const Cancelled& e) {
    throw Cancelled(e.what() + end);
  } catch (const std::bad_alloc&) {
    std::throw_with_nested(ExecutionError(text_of(graph, fault.node, "out of memory") + end));
  } catch (const std::exception& e) {
    std::throw_with_nested(ExecutionError(text_of(graph, fault.node, e.what()) + end));
  } catch (...) {
    std::throw_with_nested(ExecutionError(text_of(graph, fault.node, "something was thrown that is no std::exception") + end));
  }
}

}  // namespace tapedeck::replay
