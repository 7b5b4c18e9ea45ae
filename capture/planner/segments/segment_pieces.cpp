// Growing is bottom-up clustering of a task graph in the manner of Sarkar ("Partitioning and Scheduling Parallel Programs for
// Execution on Multiprocessors", 1987) and of linear clustering (Kim and Browne, 1988), with the circles ruled out by
// construction:
//  - a piece that no other reads can take any node: nothing leads out of it, so nothing leads back into it;
//  - a node whose operands all come from one piece can join that piece at any time: no edge arises;
//  - pieces as deep in the graph as each other have no path between them;
//  - a piece joins the only one it waits for, or the only one that waits for it: another path between the two would have to use
//  that
//    same edge.
// Two such contractions of different pieces do not disturb each other, so a whole round of them is made at once.
#include <tapedeck/capture/planner/segments/segment_pieces.h>

#include <tapedeck/capture/analysis/phases.h>
#include <tapedeck/capture/analysis/traits.h>

#include <algorithm>
#include <functional>
#include <queue>

namespace tapedeck {

bool stands_alone(const Graph& graph, const Node& node) {
  return node.op->is(kOwnSegment) || (traits_within(graph, node) & kEffect) != 0;
}

namespace {

// By node, where phases are kept apart; else all are one.
std::vector<Phase> phases_to_split(const Graph& graph, const PieceRule& rule) {
  return rule.split_phases ? run_phases(graph) : std::vector<Phase>(graph.nodes.size(), Phase::forward);
}

}  // namespace

std::vector<SegmentPiece> walk_pieces(const Graph& graph, const std::vector<double>& node_cost, const PieceRule& rule) {
  const std::vector<Phase> phases = phases_to_split(graph, rule);
  std::vector<SegmentPiece> pieces;
  for (NodeId n = 0; n < graph.node_count(); ++n) {
    const Node& node = graph.nodes[n];
    const bool alone = stands_alone(graph, node);
    bool open = pieces.empty();
    if (!open) {
      SegmentPiece& last = pieces.back();
      open = true;
      if (alone || last.alone)
        last.end = SegmentEnd::alone;
      else if (last.cost_us >= rule.most_us)
        last.end = SegmentEnd::full;
      else if (phases[n] != last.phase)
        last.end = SegmentEnd::phase;
      else
        open = false;
    }
    if (open) {
      pieces.emplace_back();
      pieces.back().phase = phases[n];
      pieces.back().alone = alone;
    }
    pieces.back().nodes.push_back(n);
    pieces.back().cost_us += node_cost[n];
  }
  if (!pieces.empty() && pieces.back().alone) pieces.back().end = SegmentEnd::alone;
  return pieces;
}

namespace {

// Which pieces wait for which, each once, in no particular order.
struct PieceGraph {
  std::vector<std::vector<std::int32_t>> before, after;
};

PieceGraph connect(const Precedence& precedence, const std::vector<SegmentPiece>& pieces) {
  std::vector<std::int32_t> piece_of(static_cast<std::size_t>(precedence.node_count()), kNone);
  for (std::size_t p = 0; p < pieces.size(); ++p)
    for (NodeId n : pieces[p].nodes) piece_of[n] = static_cast<std::int32_t>(p);
  PieceGraph graph;
  graph.before.resize(pieces.size());
  graph.after.resize(pieces.size());
  std::vector<std::int32_t> seen_by(pieces.size(), kNone);
  for (std::int32_t p = 0; p < static_cast<std::int32_t>(pieces.size()); ++p)
    for (NodeId n : pieces[p].nodes)
      for (NodeId b : precedence.before(n)) {
        const std::int32_t q = piece_of[b];
        if (q == p || seen_by[q] == p) continue;
        seen_by[q] = p;
        graph.before[p].push_back(q);
        graph.after[q].push_back(p);
      }
  return graph;
}

// ---- growing ----

// Pieces under construction, node by node in the order of the graph.
class Builder {
 public:
  Builder(const Graph& graph, const std::vector<double>& node_cost, const Precedence& precedence, const PieceRule& rule)
      : graph_(graph),
        cost_(node_cost),
        precedence_(precedence),
        rule_(rule),
        phases_(phases_to_split(graph, rule)),
        piece_of_(graph.nodes.size(), kNone) {}

 protected:
  struct Times {  // by piece, in the run that the builder has in mind
    double start = 0, finish = 0;
    bool read = false;  // by another piece
  };

  void find_sources(NodeId n) {
    sources_.clear();
    for (NodeId b : precedence_.before(n)) sources_.push_back(piece_of_[b]);
    std::sort(sources_.begin(), sources_.end());
    sources_.erase(std::unique(sources_.begin(), sources_.end()), sources_.end());
  }

  double finish_of_sources(std::int32_t but = kNone) const {
    double latest = 0;
    for (std::int32_t p : sources_)
      if (p != but) latest = std::max(latest, times_[p].finish);
    return latest;
  }

  std::int32_t last_source() const {
    std::int32_t last = kNone;
    for (std::int32_t p : sources_)
      if (last == kNone || times_[p].finish > times_[last].finish) last = p;
    return last;
  }

  bool fits(NodeId n, const SegmentPiece& piece) const { return cost_[n] == 0 || piece.cost_us + cost_[n] <= rule_.most_us; }
  bool same_phase(NodeId n, const SegmentPiece& piece) const { return phases_[n] == piece.phase; }

  // A node that piece `p` could have held, had it been allowed to, opens another.
  void say_why(NodeId n, std::int32_t p) {
    if (p == kNone || pieces_[p].end != SegmentEnd::last) return;
    SegmentPiece& piece = pieces_[p];
    piece.end = stands_alone(graph_, graph_.nodes[n]) ? SegmentEnd::alone
                : !same_phase(n, piece)               ? SegmentEnd::phase
                : !fits(n, piece)                     ? SegmentEnd::full
                : times_[p].read                      ? SegmentEnd::read
                                                      : SegmentEnd::waits;
  }

  std::int32_t open(NodeId n, double start) {
    SegmentPiece piece;
    piece.phase = phases_[n];
    piece.alone = stands_alone(graph_, graph_.nodes[n]);
    if (piece.alone) piece.end = SegmentEnd::alone;
    pieces_.push_back(std::move(piece));
    times_.push_back({start, start, false});
    return static_cast<std::int32_t>(pieces_.size()) - 1;
  }

  void add(NodeId n, std::int32_t piece) {
    pieces_[piece].nodes.push_back(n);
    pieces_[piece].cost_us += cost_[n];
    times_[piece].finish += cost_[n];
    piece_of_[n] = piece;
    for (std::int32_t p : sources_) times_[p].read |= p != piece;
    adopt_constants(n, piece);
  }

  std::vector<SegmentPiece> take() {
    place_constants();
    for (SegmentPiece& p : pieces_) std::sort(p.nodes.begin(), p.nodes.end());
    return std::move(pieces_);
  }

  // A constant runs nothing; it stands where it is first read.
  void adopt_constants(NodeId n, std::int32_t piece) {
    if (pieces_[piece].alone) return;
    for (ValueId v : graph_.inputs(graph_.nodes[n])) {
      const NodeId maker = graph_.values[v].node;
      if (maker == kNone || piece_of_[maker] != kNone || !same_phase(maker, pieces_[piece])) continue;
      pieces_[piece].nodes.push_back(maker);
      piece_of_[maker] = piece;
    }
  }

  void place_constants() {
    std::int32_t rest = kNone;
    for (NodeId n = 0; n < graph_.node_count(); ++n) {
      if (piece_of_[n] != kNone) continue;
      if (rest == kNone || !same_phase(n, pieces_[rest])) rest = open(n, 0);
      pieces_[rest].nodes.push_back(n);
      piece_of_[n] = rest;
    }
  }

  const Graph& graph_;
  const std::vector<double>& cost_;
  const Precedence& precedence_;
  const PieceRule& rule_;
  const std::vector<Phase> phases_;     // by node
  std::vector<std::int32_t> piece_of_;  // by node
  std::vector<SegmentPiece> pieces_;
  std::vector<Times> times_;
  std::vector<std::int32_t> sources_;  // of the node at hand: the pieces it reads from
};

// Makes pieces as if each had a thread of its own: a piece begins as soon as the pieces that it reads from have ended.
class Grower : Builder {
 public:
  using Builder::Builder;

  std::vector<SegmentPiece> grow() {
    for (NodeId n = 0; n < graph_.node_count(); ++n)
      if (!graph_.literal(graph_.nodes[n])) place(n);
    return take();
  }

 private:
  void place(NodeId n) {
    find_sources(n);
    std::int32_t chosen = kNone;
    if (!stands_alone(graph_, graph_.nodes[n]))
      for (std::int32_t p : sources_)
        if (may_join(n, p) && (chosen == kNone || times_[p].finish > times_[chosen].finish)) chosen = p;
    if (chosen == kNone) {
      say_why(n, last_source());
      chosen = open(n, finish_of_sources());
    }
    add(n, chosen);
  }

  bool may_join(NodeId n, std::int32_t p) const {
    const SegmentPiece& piece = pieces_[p];
    if (piece.alone || !same_phase(n, piece) || !fits(n, piece)) return false;
    if (times_[p].read) return sources_.size() == 1 && (cost_[n] == 0 || piece.cost_us < rule_.least_us);
    return finish_of_sources(p) <= times_[p].start;
  }
};

// As many lanes as threads, each with one open piece. A node goes to the lane where it starts first, and to another than the
// one that made what it reads only if that is worth a piece of its own.
class LaneGrower : Builder {
 public:
  LaneGrower(const Graph& graph, const std::vector<double>& node_cost, const Precedence& precedence, const PieceRule& rule,
             std::int32_t lanes)
      : Builder(graph, node_cost, precedence, rule), lanes_(static_cast<std::size_t>(lanes)) {}

  std::vector<SegmentPiece> grow() {
    for (NodeId n = 0; n < graph_.node_count(); ++n)
      if (!graph_.literal(graph_.nodes[n])) place(n);
    return take();
  }

 private:
  struct Lane {
    double finish = 0;
    std::int32_t piece = kNone;
  };

  void place(NodeId n) {
    find_sources(n);
    Lane& lane = lanes_[choose_lane()];
    if (lane.piece == kNone || !may_join(n, lane.piece)) {
      say_why(n, lane.piece);
      lane.piece = open(n, std::max(lane.finish, finish_of_sources()));
      lane_of_.push_back(static_cast<std::int32_t>(&lane - lanes_.data()));
    }
    add(n, lane.piece);
    lane.finish = times_[lane.piece].finish;
  }

  std::size_t choose_lane() const {
    const std::int32_t last = last_source();
    const double ready = finish_of_sources();
    std::size_t best = last == kNone ? 0 : static_cast<std::size_t>(lane_of_[last]);
    double best_start = std::max(lanes_[best].finish, ready) - (last == kNone ? 0 : rule_.most_us);
    for (std::size_t l = 0; l < lanes_.size(); ++l)
      if (const double start = std::max(lanes_[l].finish, ready); start < best_start) best = l, best_start = start;
    return best;
  }

  bool may_join(NodeId n, std::int32_t p) const {
    const SegmentPiece& piece = pieces_[p];
    if (piece.alone || stands_alone(graph_, graph_.nodes[n]) || !same_phase(n, piece) || !fits(n, piece)) return false;
    return !times_[p].read && finish_of_sources(p) <= times_[p].start;
  }

  std::vector<Lane> lanes_;
  std::vector<std::int32_t> lane_of_;  // by piece
};

// ---- putting small pieces together ----

class Merger {
 public:
  Merger(const Precedence& precedence, const PieceRule& rule, std::vector<SegmentPiece> pieces)
      : precedence_(precedence), rule_(rule), pieces_(std::move(pieces)), most_(std::max(rule.most_us, 2 * rule.least_us)) {}

  std::vector<SegmentPiece> merge() {
    for (int round = 0; round < kMostRounds; ++round)
      if (!merge_neighbours() && !merge_levels()) break;
    return std::move(pieces_);
  }

 private:
  static constexpr int kMostRounds = 40;  // each but the last halves some run of small pieces

  bool small(const SegmentPiece& p) const { return p.cost_us < rule_.least_us; }
  bool fit(const SegmentPiece& a, const SegmentPiece& b) const {
    return !a.alone && !b.alone && a.cost_us + b.cost_us <= most_ && (!rule_.split_phases || a.phase == b.phase);
  }

  bool merge_neighbours() {
    const PieceGraph graph = connect(precedence_, pieces_);
    start_round();
    for (std::int32_t p = 0; p < static_cast<std::int32_t>(pieces_.size()); ++p)
      for (std::int32_t q : graph.before[p]) {
        const bool only_source = graph.before[p].size() == 1, only_reader = graph.after[q].size() == 1;
        const bool wanted = only_source && only_reader ? true
                            : only_source              ? small(pieces_[p])
                                                       : only_reader && small(pieces_[q]);
        if (wanted && join(q, p)) break;
      }
    return finish_round();
  }

  bool merge_levels() {
    const PieceGraph graph = connect(precedence_, pieces_);
    const std::vector<std::int32_t> level = find_levels(graph);
    std::vector<std::int32_t> order;
    for (std::int32_t p = 0; p < static_cast<std::int32_t>(pieces_.size()); ++p)
      if (small(pieces_[p]) && !pieces_[p].alone) order.push_back(p);
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return level[a] != level[b] ? level[a] < level[b] : pieces_[a].nodes[0] < pieces_[b].nodes[0];
    });
    start_round();
    for (std::size_t i = 0; i + 1 < order.size();) {
      const bool joined = level[order[i]] == level[order[i + 1]] && join(order[i], order[i + 1]);
      i += joined ? 2 : 1;
    }
    return finish_round();
  }

  static std::vector<std::int32_t> find_levels(const PieceGraph& graph) {
    std::vector<std::int32_t> level(graph.before.size(), 0), waits, ready;
    for (std::size_t p = 0; p < graph.before.size(); ++p) {
      waits.push_back(static_cast<std::int32_t>(graph.before[p].size()));
      if (waits[p] == 0) ready.push_back(static_cast<std::int32_t>(p));
    }
    for (std::size_t i = 0; i < ready.size(); ++i)
      for (std::int32_t next : graph.after[ready[i]]) {
        level[next] = std::max(level[next], level[ready[i]] + 1);
        if (--waits[next] == 0) ready.push_back(next);
      }
    return level;
  }

  void start_round() {
    joined_.assign(pieces_.size(), 0);
    changed_ = false;
  }

  // Moves piece b into a. Each piece takes part once a round.
  bool join(std::int32_t a, std::int32_t b) {
    if (joined_[a] || joined_[b] || !fit(pieces_[a], pieces_[b])) return false;
    SegmentPiece &to = pieces_[a], &from = pieces_[b];
    to.end = small(to) || small(from) ? SegmentEnd::merged : from.end;
    to.cost_us += from.cost_us;
    const auto middle = static_cast<std::ptrdiff_t>(to.nodes.size());
    to.nodes.insert(to.nodes.end(), from.nodes.begin(), from.nodes.end());
    std::inplace_merge(to.nodes.begin(), to.nodes.begin() + middle, to.nodes.end());
    from.nodes.clear();
    joined_[a] = joined_[b] = 1;
    return changed_ = true;
  }

  bool finish_round() {
    if (changed_) std::erase_if(pieces_, [](const SegmentPiece& p) { return p.nodes.empty(); });
    return changed_;
  }

  const Precedence& precedence_;
  const PieceRule& rule_;
  std::vector<SegmentPiece> pieces_;
  const double most_;
  std::vector<char> joined_;
  bool changed_ = false;
};

}  // namespace

std::vector<SegmentPiece> grow_pieces(const Graph& graph, const std::vector<double>& node_cost, const Precedence& precedence,
                                      const PieceRule& rule) {
  return Merger(precedence, rule, Grower(graph, node_cost, precedence, rule).grow()).merge();
}

std::vector<SegmentPiece> lane_pieces(const Graph& graph, const std::vector<double>& node_cost, const Precedence& precedence,
                                      const PieceRule& rule, std::int32_t lanes) {
  return Merger(precedence, rule, LaneGrower(graph, node_cost, precedence, rule, lanes).grow()).merge();
}

std::optional<std::vector<Segment>> make_segments(const Precedence& precedence, const std::vector<SegmentPiece>& pieces) {
  const PieceGraph graph = connect(precedence, pieces);
  using Entry = std::pair<NodeId, std::int32_t>;  // first node, piece
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<std::int32_t> waits, number(pieces.size(), kNone);
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    waits.push_back(static_cast<std::int32_t>(graph.before[p].size()));
    if (waits[p] == 0) ready.push({pieces[p].nodes[0], static_cast<std::int32_t>(p)});
  }
  std::vector<std::int32_t> order;
  for (; !ready.empty();) {
    const std::int32_t p = ready.top().second;
    ready.pop();
    number[p] = static_cast<std::int32_t>(order.size());
    order.push_back(p);
    for (std::int32_t next : graph.after[p])
      if (--waits[next] == 0) ready.push({pieces[next].nodes[0], next});
  }
  if (order.size() != pieces.size()) return std::nullopt;

  std::vector<Segment> segments;
  for (std::int32_t p : order) {
    Segment s;
    s.nodes = pieces[p].nodes;
    s.cost_us = pieces[p].cost_us;
    s.end = pieces[p].end;
    s.n_predecessors = static_cast<std::int32_t>(graph.before[p].size());
    for (std::int32_t next : graph.after[p]) s.successors.push_back(number[next]);
    std::sort(s.successors.begin(), s.successors.end());
    segments.push_back(std::move(s));
  }
  return segments;
}

}  // namespace tapedeck
