// The search. It tries one kind of edit after the other, on large pieces before small ones, and keeps a candidate that
// verifies, is smaller and is still interesting. It ends after a whole round in which no edit was kept, or early at
// max_checks or on cancel.
#include <tapedeck/capture/reduce/reduce.h>

#include <tapedeck/capture/reduce/reduce_edits.h>
#include <tapedeck/engine/ir/error.h>

#include <algorithm>
#include <set>

namespace tapedeck {

namespace {

class Reducer {
 public:
  Reducer(const Graph& graph, const Interesting& interesting, const ReduceOptions& options)
      : interesting_(interesting), options_(options), best_(graph), size_(measure(graph)) {}

  Graph run() {
    verify(best_);
    if (!ask(best_)) throw UsageError("the graph is not interesting to begin with: nothing to reduce");
    start_trimming();
    for (bool smaller = true; smaller && !done();) {
      smaller = drop_results();
      smaller |= drop_nodes();
      smaller |= pass_nodes_by();
      smaller |= simplify_regions();
      smaller |= simplify_operands();
      smaller |= simplify_state();
      if (options_.sizes) smaller |= shrink_sizes();
    }
    return std::move(best_);
  }

 private:
  // From here on candidates lose dead nodes and unread inputs, unless the fault only shows with dead nodes in place.
  void start_trimming() {
    Graph small = trimmed(best_);
    if (!ask(small)) return;
    trims_ = true;
    best_ = std::move(small);
    size_ = measure(best_);
  }

  bool done() const { return checks_ >= options_.max_checks || (options_.cancel && *options_.cancel); }

  bool ask(const Graph& g) {
    ++checks_;
    const bool yes = interesting_(g);
    if (options_.progress) options_.progress({checks_, size_[0], size_[3]});
    return yes;
  }

  // Takes the candidate for the best so far if it is valid, smaller and interesting.
  bool keep(Graph candidate) {
    if (done()) return false;
    try {
      if (trims_) candidate = trimmed(candidate);
      const Measure size = measure(candidate);
      if (size >= size_) return false;
      verify(candidate);
      if (!ask(candidate)) return false;
      size_ = size;
    } catch (const InvalidGraphError&) {
      return false;
    }
    best_ = std::move(candidate);
    return true;
  }
  bool keep(std::optional<Graph> candidate) { return candidate && keep(std::move(*candidate)); }

  // Tries to do without pieces of `count()` things: halves, quarters, ... single ones, from the last to the first. `drop(first,
  // end)` tries one piece and says whether it went; what is counted may have shrunk then.
  template <class Count, class Drop>
  bool drop_pieces(Count count, Drop drop) {
    bool any = false;
    for (std::int64_t piece = count(); piece >= 1 && !done(); piece = piece == 1 ? 0 : (piece + 1) / 2)
      for (std::int64_t end = count(); end > 0 && !done();) {
        const std::int64_t first = std::max<std::int64_t>(0, end - piece);
        if (drop(first, end)) any = true;
        end = std::min(first, static_cast<std::int64_t>(count()));
      }
    return any;
  }

  static std::vector<char> piece(std::size_t n, std::int64_t first, std::int64_t end) {
    std::vector<char> marks(n, 0);
    for (std::int64_t i = first; i < std::min<std::int64_t>(end, static_cast<std::int64_t>(n)); ++i) marks[i] = 1;
    return marks;
  }

  bool drop_results() {
    const auto outputs = [&] { return static_cast<std::int64_t>(best_.outputs.size()); };
    const auto updates = [&] { return static_cast<std::int64_t>(best_.updates.size()); };
    bool any = drop_pieces(outputs, [&](std::int64_t first, std::int64_t end) {
      return keep(without_results(best_, piece(best_.outputs.size(), first, end), piece(best_.updates.size(), 0, 0)));
    });
    any |= drop_pieces(updates, [&](std::int64_t first, std::int64_t end) {
      return keep(without_results(best_, piece(best_.outputs.size(), 0, 0), piece(best_.updates.size(), first, end)));
    });
    return any;
  }

  bool drop_nodes() {
    const auto nodes = [&] { return static_cast<std::int64_t>(best_.node_count()); };
    return drop_pieces(nodes, [&](std::int64_t first, std::int64_t end) {
      const std::vector<char> gone = piece(best_.nodes.size(), first, end);
      return keep(without_nodes(best_, gone, StandIn::operand, false)) ||
             keep(without_nodes(best_, gone, StandIn::input, false));
    });
  }

  // What needs the whole graph typed anew, node by node.
  bool pass_nodes_by() {
    bool any = false;
    for (NodeId n = best_.node_count() - 1; n >= 0 && !done(); --n) {
      if (n >= best_.node_count()) continue;
      bool went = keep(with_operands_returned(best_, n));
      for (std::int32_t i = 0; !went && i < best_.nodes[n].n_inputs && !done(); ++i)
        went = keep(with_operand_passed_on(best_, n, i));
      any |= went;
    }
    return any;
  }

  // A region inlined, or smaller inside: by a reducer of its own, to which the whole graph is interesting or not.
  bool simplify_regions() {
    bool any = false;
    for (NodeId n = best_.node_count() - 1; n >= 0 && !done(); --n)
      for (std::int32_t r = 0; n < best_.node_count() && r < best_.nodes[n].n_regions; ++r) {
        if (keep(with_region_inlined(best_, n, r))) {
          any = true;
          break;
        }
        any |= reduce_region(n, r);
      }
    return any;
  }

  bool reduce_region(NodeId n, std::int32_t r) {
    const auto region = [&]() -> const Graph& { return *best_.regions_of(best_.nodes[n])[r]; };
    const auto nodes = [&] { return static_cast<std::int64_t>(region().node_count()); };
    const NodeId outside = best_.node_count();
    return drop_pieces(nodes, [&](std::int64_t first, std::int64_t end) {
      if (best_.node_count() != outside) return false;  // trimming moved the node: the next round finds it again
      const std::vector<char> gone = piece(region().nodes.size(), first, end);
      for (StandIn how : {StandIn::operand, StandIn::input}) {
        const std::optional<Graph> smaller = without_nodes(region(), gone, how, true);
        if (smaller && keep(with_region(best_, n, r, *smaller))) return true;
      }
      return false;
    });
  }

  bool simplify_operands() {
    bool any = false;
    for (NodeId n = best_.node_count() - 1; n >= 0 && !done(); --n) {
      for (std::int32_t i = 0; n < best_.node_count() && i < best_.nodes[n].n_inputs && !done(); ++i) {
        if (keep(without_operand(best_, n, i)) || keep(with_first_operand(best_, n, i))) any = true;
      }
    }
    return any;
  }

  bool simplify_state() {
    bool any = false;
    for (std::int32_t s = best_.n_state - 1; s >= 0 && !done(); --s)
      if (s < best_.n_state) any |= keep(state_as_input(best_, s));
    return any;
  }

  bool shrink_sizes() {
    bool any = false;
    std::set<std::int64_t, std::greater<>> sizes;
    for (const Value& v : best_.values)
      for (std::int64_t s : v.type.shape) sizes.insert(s);
    for (std::int64_t from : sizes)
      for (std::int64_t to : {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, from / 2}) {
        if (to >= from || to < 1 || done()) continue;
        if (!keep(with_size(best_, from, to))) continue;
        any = true;
        break;
      }
    return any;
  }

  const Interesting& interesting_;
  const ReduceOptions& options_;
  Graph best_;
  Measure size_;
  std::int64_t checks_ = 0;
  bool trims_ = false;
};

}  // namespace

Graph reduce(const Graph& graph, const Interesting& interesting, const ReduceOptions& options) {
  return Reducer(graph, interesting, options).run();
}

}  // namespace tapedeck
