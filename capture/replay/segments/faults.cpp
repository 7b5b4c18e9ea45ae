#include <tapedeck/capture/replay/segments/faults.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/site_note.h>

#include <fmt/format.h>

#include <new>

namespace tapedeck::replay {

namespace {

// "[op] what, at the node (file:line) end", with the call of the node as the place.
ExecutionError error_of(const Graph& graph, NodeId n, const std::string& what, const std::string& end) {
  const Node& node = graph.nodes[n];
  const std::string message = fmt::format("{}, at {}", what, graph.node_text(n));
  const std::string place = node.origin.site.empty() ? "" : fmt::format(" ({})", node.origin.site.view());
  return {fmt::format("[{}] {}{}{}", node.op->name, message, place, end),
          error_text(node.op->name, message + end, site_of(node.origin))};
}

}  // namespace

void throw_fault(const Graph& graph, const Fault& fault, const std::string& end) {
  if (!fault.thrown) throw error_of(graph, fault.node, fault.reported, end);
  try {
    std::rethrow_exception(fault.thrown);
  } catch (const Cancelled& e) {
    throw Cancelled(e.what() + end);
  } catch (const std::bad_alloc&) {
    std::throw_with_nested(error_of(graph, fault.node, "out of memory", end));
  } catch (const std::exception& e) {
    std::throw_with_nested(error_of(graph, fault.node, e.what(), end));
  } catch (...) {
    std::throw_with_nested(error_of(graph, fault.node, "something was thrown that is no std::exception", end));
  }
}

}  // namespace tapedeck::replay
