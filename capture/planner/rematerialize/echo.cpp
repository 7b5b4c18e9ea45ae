// Echo (ISCA 2020): cheap values of the forward part are computed again for backward where that frees more bytes than it newly
// keeps. In four steps, each near linear:
//   1. The mirrored nodes: backward reads a result of the node, or a mirrored node that does; it is not costly (costly_nodes.h)
//      and may run twice. One walk from the last node to the first, in which every node is looked at once.
//   2. Groups of mirrored nodes whose results are no dearer to store than what they are made from are stored
//      (frontier_groups.h). So tanh(%p + %q) is stored, and not %p and %q for it.
//   3. Mirrored nodes that read each other, or share an operand stored for them alone, are one piece: one choice.
//   4. The pieces are chosen in the order of bytes for microseconds. A piece that raises the peak is taken back, and tried once
//      more at the end; so the peak is never above that of keeping all, and each point has a lower one than the point before.
//
//     %z = conv2d(%x, %w); %n = relu(%z); %y = conv2d(%n, %v); ... backward reads %z and %n
// becomes
//     ... ; %9 = relu(%z) [of=%n]; and backward reads %z and %9
//
// Clones read stored values and other clones. Random nodes are pure here, and are mirrored like others; effects never are.
#include <tapedeck/capture/planner/rematerialize/costly_nodes.h>
#include <tapedeck/capture/planner/rematerialize/forward_part.h>
#include <tapedeck/capture/planner/rematerialize/frontier_groups.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tapedeck {

namespace {

constexpr std::int64_t kEchoPointSteps =
    1000;  // each point lowers the peak by at least 1/1000 of the peak with everything kept

// Mirrored nodes that are chosen together.
struct Piece {
  std::vector<NodeId> nodes;
  std::int64_t freed = 0;  // bytes that backward reads
  std::int64_t kept = 0;   // bytes stored for these nodes alone
  double cost = 0;
  double worth() const { return static_cast<double>(freed - kept) / (cost + 1e-9); }
};

class EchoChooser {
 public:
  EchoChooser(const Facts& facts, const Watch& watch)
      : facts_(facts),
        graph_(*facts.graph),
        watch_(watch),
        runs_(facts),
        later_readers_(first_later_readers(facts)),
        mirrored_(graph_.nodes.size(), 0) {}

  Choices choose() {
    choices_.points.push_back(runs_.point_after(0));
    mark_mirrored();
    watch_.check();
    store_groups_without_gain(facts_, later_readers_, &mirrored_);
    stages_ = stages_of_one_more_run(facts_, mirrored_);
    std::vector<Piece> pieces = find_pieces();
    for (int round = 0; round < 2; ++round) pieces = choose_pieces(std::move(pieces));
    return finish();
  }

 private:
  void mark_mirrored() {
    const std::vector<char> costly = costly_nodes(facts_);
    for (NodeId n = 0; n < graph_.node_count(); ++n) mirrored_[n] = may_run_again(facts_, n) && !costly[n];
    cut_long_chains(facts_, &mirrored_);
    const std::vector<NodeId> stages = stages_of_one_more_run(facts_, mirrored_);
    for (NodeId n = 0; n < graph_.node_count(); ++n) mirrored_[n] = stages[n] != kNone;
  }

  // ---- pieces ----

  NodeId find(NodeId n) {
    while (piece_of_[n] != n) n = piece_of_[n] = piece_of_[piece_of_[n]];
    return n;
  }

  bool is_stored_for_clones(ValueId root) const {
    return facts_.in_arena(root) && stages_[graph_.values[root].node] == kNone && later_readers_[root] == Facts::kNever;
  }

  std::vector<Piece> find_pieces() {
    piece_of_.resize(graph_.nodes.size());
    std::iota(piece_of_.begin(), piece_of_.end(), 0);
    std::vector<NodeId> reader(graph_.values.size(), kNone);
    for (NodeId n = 0; n < graph_.node_count(); ++n) {
      if (stages_[n] == kNone) continue;
      for (ValueId root : facts_.reads(n)) {
        if (!facts_.in_arena(root)) continue;
        const NodeId maker = graph_.values[root].node;
        if (stages_[maker] != kNone) piece_of_[find(n)] = find(maker);
        if (is_stored_for_clones(root)) piece_of_[find(n)] = find(reader[root] == kNone ? n : reader[root]);
        reader[root] = n;
      }
    }
    return sum_up_pieces();
  }

  std::vector<Piece> sum_up_pieces() {
    std::vector<Piece> by_node(graph_.nodes.size());
    std::vector<char> counted(graph_.values.size(), 0);
    for (NodeId n = 0; n < graph_.node_count(); ++n) {
      if (stages_[n] == kNone) continue;
      Piece& piece = by_node[find(n)];
      piece.nodes.push_back(n);
      piece.cost += facts_.cost[n];
      for (ValueId v : facts_.makes(n))
        if (facts_.in_arena(v) && later_readers_[v] != Facts::kNever) piece.freed += facts_.bytes[v];
      for (ValueId root : facts_.reads(n))
        if (is_stored_for_clones(root) && !std::exchange(counted[root], 1)) piece.kept += facts_.bytes[root];
    }
    std::vector<Piece> pieces;
    for (Piece& piece : by_node)
      if (piece.freed > piece.kept) pieces.push_back(std::move(piece));
    std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.worth() > b.worth(); });
    return pieces;
  }

  // ---- choices ----

  // Returns the pieces that were taken back.
  std::vector<Piece> choose_pieces(std::vector<Piece> pieces) {
    std::vector<Piece> left;
    for (Piece& piece : pieces) {
      watch_.check();
      if (!choose_piece(piece)) left.push_back(std::move(piece));
    }
    return left;
  }

  bool choose_piece(const Piece& piece) {
    const std::size_t before = runs_.journal().size();
    const std::int64_t peak = runs_.live_peak();
    std::set<RepeatedRun> runs;
    for (NodeId n : piece.nodes) runs.insert({stages_[n], n});
    runs_.add(runs);
    if (runs_.live_peak() > peak) {
      runs_.take_back(before);
      return false;
    }
    note_decision(piece, before);
    if (choices_.points.back().live_peak - runs_.live_peak() > choices_.points.front().live_peak / kEchoPointSteps)
      choices_.points.push_back(runs_.point_after(choices_.decisions.size()));
    return true;
  }

  void note_decision(const Piece& piece, std::size_t before) {
    Decision d = runs_.decision_since(before);
    const auto is_freed = [&](NodeId n) {
      const auto makes = facts_.makes(n);
      return std::any_of(makes.begin(), makes.end(), [&](ValueId v) { return later_readers_[v] != Facts::kNever; });
    };
    const NodeId named = *std::find_if(piece.nodes.begin(), piece.nodes.end(), is_freed);
    d.value = named_result(facts_, named);
    d.bytes = piece.freed;
    d.span = stages_[named] - named - 1;
    d.reason = fmt::format("{} cheap nodes run again in backward, which frees {} bytes and newly keeps {}, from `{}` on",
                           piece.nodes.size(), piece.freed, piece.kept, graph_.node_text(stages_[piece.nodes.back()]));
    choices_.decisions.push_back(std::move(d));
  }

  // The choices after the last point did not lower the peak, so the plan leaves them out.
  Choices finish() {
    if (runs_.live_peak() < choices_.points.back().live_peak)
      choices_.points.push_back(runs_.point_after(choices_.decisions.size()));
    runs_.take_back(choices_.points.back().journal);
    choices_.decisions.resize(choices_.points.back().decisions);
    choices_.journal = runs_.journal();
    return std::move(choices_);
  }

  const Facts& facts_;
  const Graph& graph_;
  const Watch& watch_;
  RepeatedRuns runs_;
  std::vector<NodeId> later_readers_;  // by root
  std::vector<char> mirrored_;         // by node
  std::vector<NodeId> stages_;         // by node: where a mirrored node runs again
  std::vector<NodeId> piece_of_;       // by node: towards the node that stands for its piece
  Choices choices_;
};

const Strategy echo_strategy = register_strategy({
    .name = "echo",
    .doc = "recomputes cheap values of forward where this frees more bytes than it newly keeps, and never raises the peak",
    .choose = [](const Facts& facts, const Watch& watch) { return EchoChooser(facts, watch).choose(); },
    .in_auto = InAuto::finished,
});

}  // namespace

}  // namespace tapedeck
