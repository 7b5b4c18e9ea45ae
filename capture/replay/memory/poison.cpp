// Poison keeps a map of the arena: ranges of bytes, each with the value or workspace that holds it, or held it last.
//
//     -kCanary          0                    4096                  end
//     | canary, dead    | %a, alive          | dead, last %b        | canary, dead |
//
// A result claims its bytes before its node runs. They are filled with the pattern, and the holding is marked as dead, when the
// last node that uses the value has run.
#include <tapedeck/capture/replay/memory/poison.h>

#include <tapedeck/capture/plan/byte_owners.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace tapedeck::replay {

namespace {

constexpr unsigned char kPattern = 0xFF;
constexpr std::int64_t kBeside = 256;  // bytes looked at on either side of a result
constexpr std::int64_t kUntouched = std::numeric_limits<std::int64_t>::min();

bool floating(DType d) { return d == DType::f32 || d == DType::f64 || d == DType::f16 || d == DType::bf16; }

bool is_pattern(const unsigned char* at, std::size_t bytes) {
  return bytes == 0 || (at[0] == kPattern && std::memcmp(at, at + 1, bytes - 1) == 0);
}

std::uint64_t bits_at(const unsigned char* at, std::int64_t size) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, static_cast<std::size_t>(size));
  return bits;
}

bool is_nan(std::uint64_t bits, DType d) {
  switch (d) {
    case DType::f64:
      return (bits & 0x7FFFFFFFFFFFFFFFu) > 0x7FF0000000000000u;
    case DType::f32:
      return (bits & 0x7FFFFFFFu) > 0x7F800000u;
    case DType::f16:
      return (bits & 0x7FFFu) > 0x7C00u;
    case DType::bf16:
      return (bits & 0x7FFFu) > 0x7F80u;
    default:
      return false;
  }
}

// The first element (counted in row-major order) whose bits are as asked; -1 if there is none.
template <class Asked>
std::int64_t find_element(const View& view, Asked asked) {
  const auto size = static_cast<std::int64_t>(dtype_size(view.dtype));
  std::int64_t index[kMaxRank] = {};
  const std::int64_t n = view.data ? view.numel() : 0;
  const bool dense = view.dense();
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t at = dense ? i : 0;
    for (int d = 0; d < view.rank && !dense; ++d) at += index[d] * view.strides[d];
    if (asked(bits_at(static_cast<const unsigned char*>(view.data) + at * size, size))) return i;
    for (int d = view.rank - 1; d >= 0 && !dense && ++index[d] == view.sizes[d]; --d) index[d] = 0;
  }
  return -1;
}

std::int64_t find_pattern(const View& view) {
  const std::uint64_t pattern = ~std::uint64_t{0} >> (64 - 8 * dtype_size(view.dtype));
  return find_element(view, [pattern](std::uint64_t bits) { return bits == pattern; });
}

// A NaN of the user may become any other NaN, and so the pattern.
bool reads_nan(const KernelCall& call) {
  for (std::int32_t k = 0; k < call.n_inputs; ++k) {
    const DType d = call.inputs[k].dtype;
    if (floating(d) && find_element(call.inputs[k], [d](std::uint64_t bits) { return is_nan(bits, d); }) >= 0) return true;
  }
  return false;
}

}  // namespace

Poison::Poison(const Plan& plan, const std::vector<bool>& called, int level)
    : plan_(plan),
      g_(plan.graph),
      chunks_(plan),
      level_(level),
      owner_(byte_owners(plan)),
      holder_of_(plan.values.size(), kNone),
      workspace_(plan.graph.nodes.size(), kNone),
      uses_(plan.graph.nodes.size()),
      writes_(plan.graph.nodes.size()),
      snapshots_(plan.graph.nodes.size()),
      joined_(plan.values.size()),
      overwrites_(plan.graph.nodes.size()),
      carries_(plan.graph.nodes.size()),
      end_(place_of(chunks_.count() - 1) + chunks_.bytes(chunks_.count() - 1) + kCanary) {
  for (ValueId v = 0; v < g_.value_count(); ++v) {
    if (plan.values[v].reason == Reason::part) joined_[owner_[v]] = 1;
    if (owner_[v] != v || plan.values[v].where != Where::arena || g_.values[v].type.bytes() == 0) continue;
    holder_of_[v] = static_cast<std::int32_t>(holders_.size());
    holders_.push_back({.value = v, .maker = g_.values[v].node});
  }
  for (NodeId n = 0; n < g_.node_count(); ++n) {
    const Node& node = g_.nodes[n];
    if (!called[n]) continue;
    const auto use = [&](ValueId v, bool reads) {
      if (const std::int32_t h = holder_of(v); h != kNone) {
        uses_[n].push_back(h);
        holders_[h].read |= reads;
      }
    };
    for (const ValueId v : g_.inputs(node)) use(v, true);
    for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) {
      use(v, false);
      overwrites_[n] |= plan.values[v].reason == Reason::in_place || plan.values[v].where == Where::state;
      if (holder_of(v) != kNone && plan.values[v].reason != Reason::alias && g_.values[v].type.bytes() > 0)
        writes_[n].push_back(bytes_of(owner_[v]));
    }
    std::sort(uses_[n].begin(), uses_[n].end());
    uses_[n].erase(std::unique(uses_[n].begin(), uses_[n].end()), uses_[n].end());
    if (const Scratch& s = plan.workspace[n]; s.bytes > 0) {
      workspace_[n] = static_cast<std::int32_t>(holders_.size());
      holders_.push_back({.maker = n, .read = true});
      uses_[n].push_back(workspace_[n]);
      writes_[n].push_back(workspace_of(n));
    }
    for (const std::int32_t h : uses_[n]) ++holders_[h].users;
  }
}

// ---- places ----

Poison::ByteRange Poison::range_of(std::int64_t offset, std::int64_t bytes) const {
  const std::int64_t first = offset + 2 * kCanary * chunks_.of(offset);
  return {first, first + bytes};
}

Poison::ByteRange Poison::bytes_of(ValueId v) const { return range_of(plan_.values[v].offset, g_.values[v].type.bytes()); }
Poison::ByteRange Poison::workspace_of(NodeId n) const { return range_of(plan_.workspace[n].offset, plan_.workspace[n].bytes); }

// Canaries belong to the chunk they surround.
std::int32_t Poison::chunk_at(std::int64_t place) const {
  std::int32_t low = 0, high = chunks_.count();
  while (high - low > 1) {
    const std::int32_t middle = (low + high) / 2;
    (place_of(middle) - kCanary <= place ? low : high) = middle;
  }
  return low;
}

unsigned char* Poison::at(std::int64_t place) const {
  const std::int32_t chunk = chunk_at(place);
  return blocks_[chunk] + (place - place_of(chunk));
}

// ---- in words ----

std::string Poison::name(std::int32_t holder) const {
  const Holder& h = holders_[holder];
  return h.value != kNone ? "%" + g_.value_name(h.value) : "the workspace of `" + g_.node_text(h.maker) + "`";
}

std::string Poison::about(const Holding& holding) const {
  if (holding.holder == kNone) return holding.dead ? "bytes of no value" : "";
  const Holder& h = holders_[holding.holder];
  const Name site = g_.nodes[h.maker].origin.site;
  return fmt::format("{}bytes of {}{}", holding.dead ? "dead " : "", name(holding.holder),
                     site.empty() ? "" : fmt::format(" (made at {})", site.view()));
}

std::string Poison::arena_text(std::int32_t chunk) const {
  return chunks_.count() == 1 ? "the arena" : fmt::format("chunk {} of the arena", chunk);
}

std::string Poison::byte_text(std::int64_t place) const {
  const std::int32_t chunk = chunk_at(place);
  return fmt::format("byte {} of {}", place - place_of(chunk), arena_text(chunk));
}

std::string Poison::bytes_text(const ByteRange& s) const {
  const std::int32_t chunk = chunk_at(s.first);
  return fmt::format("bytes {}..{} of {}", s.first - place_of(chunk), s.end - 1 - place_of(chunk), arena_text(chunk));
}

void Poison::complain(const std::string& what) const { throw ExecutionError(error_text("poison", what, {})); }

// ---- holdings ----

template <class F>
void Poison::each_holding(const ByteRange& s, F&& f) const {
  if (s.first >= s.end) return;
  for (auto it = std::prev(holdings_.upper_bound(s.first)); it != holdings_.end() && it->first < s.end; ++it)
    f(ByteRange{std::max(it->first, s.first), std::min(it->second.end, s.end)}, it->second);
}

// A holding begins at `at` from here on.
void Poison::split(std::int64_t at) {
  if (at >= end_) return;
  auto it = std::prev(holdings_.upper_bound(at));
  if (it->first == at) return;
  Holding second = it->second;
  it->second.end = at;
  holdings_.emplace(at, second);
}

void Poison::give(const ByteRange& s, std::int32_t holder, bool dead) {
  split(s.first);
  split(s.end);
  holdings_.erase(holdings_.lower_bound(s.first), holdings_.lower_bound(s.end));
  holdings_[s.first] = {s.end, holder, dead};
}

void Poison::fill(const ByteRange& s) const { std::memset(at(s.first), kPattern, static_cast<std::size_t>(s.end - s.first)); }

std::int64_t Poison::first_touched(const ByteRange& s) const {
  if (s.first >= s.end) return kUntouched;
  const unsigned char* const bytes = at(s.first);
  if (is_pattern(bytes, static_cast<std::size_t>(s.end - s.first))) return kUntouched;
  for (std::int64_t i = 0; i < s.end - s.first; ++i)
    if (bytes[i] != kPattern) return s.first + i;
  return kUntouched;
}

// ---- a step ----

void Poison::begin(const std::vector<void*>& blocks) {
  const std::lock_guard lock(mutex_);
  blocks_.clear();
  holdings_.clear();
  for (std::int32_t c = 0; c < chunks_.count(); ++c) {
    blocks_.push_back(static_cast<unsigned char*>(blocks[c]));
    const std::int64_t first = place_of(c) - kCanary, end = place_of(c) + chunks_.bytes(c) + kCanary;
    holdings_[first] = {end, kNone, true};
    if (blocks_.back()) fill({first, end});
  }
  for (Holder& h : holders_) h.left = h.users, h.writers = 0, h.idle = false;
}

void Poison::before(NodeId n, const KernelCall& call) {
  if (overwrites_[n]) carries_[n] = reads_nan(call);
  const std::lock_guard lock(mutex_);
  check_operands(n);
  const Node& node = g_.nodes[n];
  for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v) {
    const Placement& p = plan_.values[v];
    if (p.reason == Reason::alias || g_.values[v].type.bytes() == 0) continue;
    if (const std::int32_t h = holder_of(v); h != kNone)
      claim(n, v, bytes_of(owner_[v]), h);
    else if (const View& out = call.outputs[v - node.first_output];
             p.where == Where::output && owner_[v] == v && !joined_[v] && out.data)
      std::memset(out.data, kPattern, static_cast<std::size_t>(g_.values[v].type.bytes()));
  }
  if (const std::int32_t h = workspace_[n]; h != kNone) claim(n, kNone, workspace_of(n), h);
  take_snapshots(n);
}

void Poison::check_operands(NodeId n) const {
  for (const ValueId v : g_.inputs(g_.nodes[n])) {
    const std::int32_t wanted = holder_of(v);
    if (wanted == kNone || g_.values[v].type.bytes() == 0) continue;
    each_holding(bytes_of(owner_[v]), [&](const ByteRange& s, const Holding& holding) {
      if (holding.dead || holding.holder != wanted)
        complain(fmt::format("reads %{}, but {} are {} by now", g_.value_name(v), bytes_text(s), about(holding)));
    });
  }
}

// The result gets its bytes: dead bytes, the bytes of the operand that it takes over, or, for a joined value, the bytes that
// its operands in place have written.
void Poison::claim(NodeId n, ValueId v, const ByteRange& s, std::int32_t holder) {
  const bool in_place = v != kNone && plan_.values[v].reason == Reason::in_place;
  const std::int32_t heir_of = in_place ? holder_of(plan_.values[v].other) : kNone;
  check_dead(n, s, false);
  std::vector<ByteRange> stale;
  each_holding(s, [&](const ByteRange& range, const Holding& holding) {
    if (holding.dead || holding.holder == holder || holding.holder == heir_of) return;
    if (!holders_[holding.holder].idle)
      complain(fmt::format("puts {} on {}, which are {}, still to be read", name(holder), bytes_text(range), about(holding)));
    stale.push_back(range);
  });
  for (const ByteRange& range : stale) fill(range);
  give(s, holder, false);
  ++holders_[holder].version;
  ++holders_[holder].writers;
}

void Poison::check_dead(NodeId n, const ByteRange& s, bool just_now) const {
  each_holding({std::max(s.first, -kCanary), std::min(s.end, end_)}, [&](const ByteRange& range, const Holding& holding) {
    const std::int64_t touched = holding.dead ? first_touched(range) : kUntouched;
    if (touched == kUntouched) return;
    const std::int32_t chunk = chunk_at(touched);
    const bool beyond = touched < place_of(chunk) || touched >= place_of(chunk) + chunks_.bytes(chunk);
    const std::string what =
        beyond ? fmt::format("which is beyond {}", chunks_.count() > 1 ? "the chunk" : "the arena") : about(holding);
    complain(
        just_now
            ? fmt::format("writes outside its results: {}, {}", byte_text(touched), what)
            : fmt::format("finds {}, {}, changed before it is written by `{}`: some node since then wrote outside its results "
                          "(TAPEDECK_POISON=2 finds which)",
                          byte_text(touched), what, g_.node_text(n)));
  });
}

// Live bytes beside the results, of values that no node is writing.
void Poison::take_snapshots(NodeId n) {
  std::vector<Snapshot>& list = snapshots_[n];
  list.clear();
  const auto take = [&](const ByteRange& s) {
    each_holding({std::max(s.first, -kCanary), std::min(s.end, end_)}, [&](const ByteRange& range, const Holding& holding) {
      if (holding.dead || holders_[holding.holder].writers > 0) return;
      const unsigned char* const bytes = at(range.first);
      list.push_back({range.first, holding.holder, holders_[holding.holder].version,
                      std::vector<unsigned char>(bytes, bytes + (range.end - range.first))});
    });
  };
  for (const ByteRange& s : writes_[n]) {
    take({s.first - kBeside, s.first});
    take({s.end, s.end + kBeside});
  }
}

void Poison::check_snapshots(NodeId n) const {
  for (const Snapshot& shot : snapshots_[n])
    each_holding({shot.first, shot.first + static_cast<std::int64_t>(shot.bytes.size())}, [&](const ByteRange& range,
                                                                                              const Holding& holding) {
      if (holding.dead || holding.holder != shot.holder || holders_[holding.holder].version != shot.version) return;
      const unsigned char* const now = at(range.first);
      for (std::int64_t i = 0; i < range.end - range.first; ++i)
        if (now[i] != shot.bytes[range.first - shot.first + i])
          complain(fmt::format("writes outside its results: {}, {}, alive", byte_text(range.first + i), about(holding)));
    });
}

void Poison::check_results(NodeId n, const KernelCall& call) const {
  const Node& node = g_.nodes[n];
  if (carries_[n]) return;
  for (std::int32_t i = 0; i < call.n_outputs; ++i) {
    const View& out = call.outputs[i];
    if (!floating(out.dtype)) continue;
    const std::int64_t at = find_pattern(out);
    if (at < 0) continue;
    if (!overwrites_[n] && reads_nan(call)) return;
    complain(fmt::format(
        "leaves the pattern of dead bytes in element {} of %{}: it was never written, or computed from bytes that are nobody's",
        at, g_.value_name(node.first_output + i)));
  }
}

void Poison::after(NodeId n, const KernelCall& call) {
  check_results(n, call);  // its own bytes and the bytes of its operands: no other node writes them now
  const std::lock_guard lock(mutex_);
  for (const ByteRange& s : writes_[n]) {
    check_dead(n, {s.first - kBeside, s.first}, true);
    check_dead(n, {s.end, s.end + kBeside}, true);
  }
  if (level_ >= 2) check_dead(n, {-kCanary, end_}, true);
  check_snapshots(n);
  snapshots_[n].clear();
  const Node& node = g_.nodes[n];
  for (ValueId v = node.first_output; v < node.first_output + node.n_outputs; ++v)
    if (const std::int32_t h = holder_of(v);
        h != kNone && plan_.values[v].reason != Reason::alias && g_.values[v].type.bytes() > 0)
      --holders_[h].writers;
  if (workspace_[n] != kNone) --holders_[workspace_[n]].writers;
  for (const std::int32_t h : uses_[n])
    if (--holders_[h].left == 0) release(h);
}

// All nodes that use it have run.
void Poison::release(std::int32_t holder) {
  Holder& h = holders_[holder];
  if (!h.read) return void(h.idle = true);
  std::vector<ByteRange> held;
  const ByteRange all = h.value != kNone ? bytes_of(h.value) : workspace_of(h.maker);
  each_holding(all, [&](const ByteRange& range, const Holding& holding) {
    if (!holding.dead && holding.holder == holder) held.push_back(range);
  });
  for (const ByteRange& range : held) {
    fill(range);
    give(range, holder, true);
  }
}

std::string Poison::all_dead_untouched() {
  const std::lock_guard lock(mutex_);
  for (const auto& [first, holding] : holdings_) {
    const std::int64_t touched = holding.dead ? first_touched({first, holding.end}) : kUntouched;
    if (touched == kUntouched) continue;
    return fmt::format(
        "[poison] {}, {}, is not as it was left: some node wrote outside its results (TAPEDECK_POISON=2 finds which)",
        byte_text(touched), about(holding));
  }
  return "";
}

bool Poison::is_dead(ValueId v) const {
  const std::lock_guard lock(mutex_);
  const std::int32_t h = holder_of(v);
  if (h == kNone || g_.values[v].type.bytes() == 0) return false;
  bool dead = false;
  each_holding(bytes_of(owner_[v]),
               [&](const ByteRange&, const Holding& holding) { dead |= holding.dead && holding.holder == h; });
  return dead;
}

}  // namespace tapedeck::replay
