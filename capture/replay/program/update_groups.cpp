#include <tapedeck/capture/replay/program/update_groups.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace tapedeck::replay {

namespace {

struct Bytes {
  BufferId buffer = kNone;
  std::int64_t begin = 0, end = 0;
};

// The bytes from the first to the last element of a view.
Bytes bytes_of(const View& v, const Address& at) {
  Bytes bytes{at.buffer, at.offset, at.offset};
  if (v.numel() == 0) return bytes;
  const auto item = static_cast<std::int64_t>(dtype_size(v.dtype));
  for (int d = 0; d < v.rank; ++d) {
    const std::int64_t way = (v.sizes[d] - 1) * v.strides[d] * item;
    (way < 0 ? bytes.begin : bytes.end) += way;
  }
  bytes.end += item;
  return bytes;
}

struct Touched {
  std::vector<Bytes> reads, writes;
};

// A set of bytes, as ranges that neither overlap nor touch.
class ByteSet {
 public:
  void add(const Bytes& b) {
    if (b.begin >= b.end) return;
    std::int64_t begin = b.begin, end = b.end;
    auto at = first_behind(b.buffer, b.begin - 1);
    while (at != ends_.end() && at->first.first == b.buffer && at->first.second <= b.end) {
      begin = std::min(begin, at->first.second);
      end = std::max(end, at->second);
      at = ends_.erase(at);
    }
    ends_[{b.buffer, begin}] = end;
  }

  bool overlaps(const Bytes& b) const {
    if (b.begin >= b.end) return false;
    const auto at = first_behind(b.buffer, b.begin);
    return at != ends_.end() && at->first.first == b.buffer && at->first.second < b.end;
  }
  bool overlaps(const std::vector<Bytes>& all) const {
    return std::any_of(all.begin(), all.end(), [&](const Bytes& b) { return overlaps(b); });
  }

 private:
  using Ends = std::map<std::pair<BufferId, std::int64_t>, std::int64_t>;  // by buffer and beginning

  // The first range that ends behind `byte`.
  Ends::const_iterator first_behind(BufferId buffer, std::int64_t byte) const {
    auto at = ends_.upper_bound({buffer, byte});
    if (at == ends_.begin()) return at;
    const auto before = std::prev(at);
    return before->first.first == buffer && before->second > byte ? before : at;
  }

  Ends ends_;
};

struct UpdateGroup {
  std::vector<std::int32_t> members;  // instructions, ascending
  ByteSet reads, writes;

  bool conflicts(const Touched& t) const {
    return writes.overlaps(t.reads) || writes.overlaps(t.writes) || reads.overlaps(t.writes);
  }
  void add(std::int32_t i, const Touched& t) {
    members.push_back(i);
    for (const Bytes& b : t.reads) reads.add(b);
    for (const Bytes& b : t.writes) writes.add(b);
  }
};

}  // namespace

class UpdateGroups {
 public:
  UpdateGroups(const Graph& g, Program& program) : g_(g), program_(program) {}

  // Fills groups_. Groups that may still grow are few, so that a step of very many kinds of updates costs no more than others.
  void find() {
    constexpr std::size_t kMostOpen = 8;
    for (std::int32_t i = 0; i < count(); ++i) {
      const Touched t = touched(i);
      const bool on_host = program_.instructions[i].why_on_host != nullptr;
      close_if([&](const UpdateGroup& group) { return on_host || group.conflicts(t); });
      if (!can_join(i)) continue;
      const auto same = [&](const UpdateGroup& group) { return fits(group.members.front(), i); };
      auto at = std::find_if(open_.begin(), open_.end(), same);
      if (at == open_.end()) {
        if (open_.size() == kMostOpen) close_if([&](const UpdateGroup& group) { return &group == &open_.front(); });
        at = open_.emplace(open_.end());
      }
      at->add(i, t);
    }
    close_if([](const UpdateGroup&) { return true; });
  }

  // Writes the instructions anew: a group stands in the place of its last member.
  void apply() {
    if (groups_.empty()) return;
    std::vector<std::int32_t> group_of(static_cast<std::size_t>(count()), kNone);
    for (std::size_t k = 0; k < groups_.size(); ++k)
      for (const std::int32_t i : groups_[k].members) group_of[i] = static_cast<std::int32_t>(k);
    std::vector<std::int32_t> place(static_cast<std::size_t>(count()) + 1);  // by old instruction; of one that moves: the next
    for (std::int32_t i = 0; i < count(); ++i) {
      place[i] = static_cast<std::int32_t>(instructions_.size());
      if (group_of[i] == kNone)
        keep(i);
      else if (groups_[group_of[i]].members.back() == i)
        join(groups_[group_of[i]].members);
    }
    place.back() = static_cast<std::int32_t>(instructions_.size());
    for (IndexRange& s : program_.segments) s = {place[s.first], place[s.end]};
    for (std::int32_t& i : program_.state_writers) i = place[group_of[i] == kNone ? i : groups_[group_of[i]].members.back()];
    std::sort(program_.state_writers.begin(), program_.state_writers.end());
    program_.state_writers.erase(std::unique(program_.state_writers.begin(), program_.state_writers.end()),
                                 program_.state_writers.end());
    program_.instructions = std::move(instructions_);
    program_.views_ = std::move(views_);
    program_.addresses_ = std::move(addresses_);
    program_.pending_ = std::move(pending_);
  }

 private:
  std::int32_t count() const { return static_cast<std::int32_t>(program_.instructions.size()); }
  const View& view(std::int32_t i, std::int32_t k) const { return program_.views_[program_.pending_[i].first_view + k]; }
  std::int32_t view_count(std::int32_t i) const {
    const KernelCall& call = program_.instructions[i].call;
    return call.n_inputs + call.n_outputs;
  }

  Touched touched(std::int32_t i) const {
    const KernelCall& call = program_.instructions[i].call;
    Touched t;
    for (std::int32_t k = 0; k < view_count(i); ++k) {
      const Address& at = program_.addresses_[program_.pending_[i].first_view + k];
      (k < call.n_inputs ? t.reads : t.writes).push_back(bytes_of(view(i, k), at));
    }
    const Address& workspace = program_.pending_[i].workspace;
    const auto bytes = static_cast<std::int64_t>(call.workspace_bytes);
    t.writes.push_back({workspace.buffer, workspace.offset, workspace.offset + bytes});
    return t;
  }

  bool can_join(std::int32_t i) const {
    const Instruction& instruction = program_.instructions[i];
    if (!instruction.entry || !instruction.entry->has_group || instruction.call.workspace_bytes > 0) return false;
    for (std::int32_t k = 0; k < view_count(i); ++k)
      if (!view(i, k).dense()) return false;
    return true;
  }

  // Whether two updates are of one op, with equal attributes and dtypes.
  bool fits(std::int32_t i, std::int32_t j) const {
    const Instruction &a = program_.instructions[i], &b = program_.instructions[j];
    if (a.entry != b.entry || a.call.n_inputs != b.call.n_inputs || a.call.n_outputs != b.call.n_outputs) return false;
    for (std::int32_t k = 0; k < view_count(i); ++k)
      if (view(i, k).dtype != view(j, k).dtype) return false;
    return same_attributes(g_, g_.nodes[a.node], g_, g_.nodes[b.node]);
  }

  template <class Ends>
  void close_if(const Ends& ends) {
    std::vector<UpdateGroup> open;
    for (UpdateGroup& group : open_) {
      if (!ends(group))
        open.push_back(std::move(group));
      else if (group.members.size() > 1)
        groups_.push_back(std::move(group));
    }
    open_ = std::move(open);
  }

  void keep(std::int32_t i) {
    Program::Pending pending = program_.pending_[i];
    pending.first_view = static_cast<std::int32_t>(views_.size());
    copy_views(i, 0, view_count(i));
    pending_.push_back(pending);
    instructions_.push_back(program_.instructions[i]);
  }

  // One instruction with the operands of all members, and behind them the results of all.
  void join(const std::vector<std::int32_t>& members) {
    Instruction joined = program_.instructions[members.front()];
    const std::int32_t inputs = joined.call.n_inputs, outputs = joined.call.n_outputs;
    const auto n = static_cast<std::int32_t>(members.size());
    joined.kernel = joined.entry->group;
    joined.joined = n;
    joined.call.n_inputs = n * inputs;
    joined.call.n_outputs = n * outputs;
    pending_.push_back({static_cast<std::int32_t>(views_.size()), {}});
    for (const std::int32_t i : members) copy_views(i, 0, inputs);
    for (const std::int32_t i : members) copy_views(i, inputs, inputs + outputs);
    instructions_.push_back(joined);
  }

  void copy_views(std::int32_t i, std::int32_t first, std::int32_t end) {
    for (std::int32_t k = first; k < end; ++k) {
      views_.push_back(view(i, k));
      addresses_.push_back(program_.addresses_[program_.pending_[i].first_view + k]);
    }
  }

  const Graph& g_;
  Program& program_;
  std::vector<UpdateGroup> open_, groups_;
  // The new program.
  std::vector<Instruction> instructions_;
  std::vector<View> views_;
  std::vector<Address> addresses_;
  std::vector<Program::Pending> pending_;
};

void join_updates(const Graph& g, Program& program) {
  UpdateGroups groups(g, program);
  groups.find();
  groups.apply();
}

}  // namespace tapedeck::replay
