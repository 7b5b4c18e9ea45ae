// The report of a pool, as data, as a table and as JSON. The members are counted one by one; a buffer that a family shares
// counts once. Everything is sorted, so that the report does not depend on the order of joining.
#include <tapedeck/capture/replay/replay_pool.h>

#include <tapedeck/capture/formats/json.h>
#include <tapedeck/capture/replay/memory/shared_memory.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace tapedeck {

ReplayPool::ReplayPool() : memory_(std::make_shared<replay::Memory>()) {}
ReplayPool::~ReplayPool() = default;

std::int64_t ReplayPool::observed_peak_bytes() const { return memory_->count.stats().peak_bytes; }

namespace {

void add_member(PoolReport* report, const replay::Member& member, std::set<const Buffer*>* counted) {
  PoolReport::Member row;
  row.name = member.name.str();
  row.chunks = member.chunks;
  row.arena_bytes = std::accumulate(row.chunks.begin(), row.chunks.end(), std::int64_t{0});
  row.peak_bytes = member.peak_bytes;
  for (const auto& buffer : member.own_buffers())
    if (buffer && counted->insert(buffer.get()).second) row.own_bytes += buffer->bytes();
  for (const auto& value : member.state) row.state_bytes += value->type.bytes();
  report->separate_bytes += row.peak_bytes;
  report->own_bytes += row.own_bytes;
  if (row.chunks.size() > report->blocks.size()) report->blocks.resize(row.chunks.size(), 0);
  for (std::size_t i = 0; i < row.chunks.size(); ++i) report->blocks[i] = std::max(report->blocks[i], row.chunks[i]);
  report->members.push_back(std::move(row));
}

// Members that agree in everything that is shown may stand in any order.
void sort(PoolReport* report) {
  for (PoolReport::Member& m : report->members)
    for (std::size_t i = 0; i < m.chunks.size(); ++i) m.sets_arena |= m.chunks[i] == report->blocks[i];
  std::sort(report->members.begin(), report->members.end(), [](const auto& a, const auto& b) {
    return std::tie(b.arena_bytes, a.name, b.peak_bytes, a.own_bytes, a.chunks) <
           std::tie(a.arena_bytes, b.name, a.peak_bytes, b.own_bytes, b.chunks);
  });
  for (PoolReport::State& s : report->state) std::sort(s.members.begin(), s.members.end());
  std::sort(report->state.begin(), report->state.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.name, to_string(a.type), a.members) < std::tuple(b.name, to_string(b.type), b.members);
  });
}

// One line for each set of members: the state that they share.
std::map<std::string, std::string> shared_by(const PoolReport& report) {
  std::map<std::string, std::string> lines;
  for (const PoolReport::State& s : report.state) {
    if (s.members.size() < 2) continue;
    std::string& line = lines[fmt::format("{}", fmt::join(s.members, ", "))];
    line += fmt::format("{}{}: {}", line.empty() ? "" : ", ", s.name, to_string(s.type));
  }
  return lines;
}

}  // namespace

PoolReport ReplayPool::report() const {
  PoolReport report;
  std::set<const Buffer*> counted;
  std::map<const replay::StateValue*, std::size_t> at;  // looked up only
  memory_->each_member([&](const replay::Member& member) {
    add_member(&report, member, &counted);
    for (const auto& value : member.state) {
      const auto [known, fresh] = at.emplace(value.get(), report.state.size());
      if (fresh) {
        report.state.push_back({value->name.str(), value->type, {}});
        report.state_bytes += value->type.bytes();
      }
      report.state[known->second].members.push_back(member.name.str());
    }
  });
  report.arena_bytes = std::accumulate(report.blocks.begin(), report.blocks.end(), std::int64_t{0});
  report.planned_peak_bytes = report.arena_bytes + report.state_bytes + report.own_bytes;
  sort(&report);
  return report;
}

std::string ReplayPool::explain() const {
  const PoolReport r = report();
  std::size_t width = 6;
  for (const PoolReport::Member& m : r.members) width = std::max(width, m.name.size());
  std::string text = fmt::format("{:{}} {:>14} {:>14} {:>14} {:>14}\n", "member", width, "arena", "state", "own", "alone");
  for (const PoolReport::Member& m : r.members)
    text += fmt::format("{:{}} {:>14} {:>14} {:>14} {:>14}{}\n", m.name, width, m.arena_bytes, m.state_bytes, m.own_bytes,
                        m.peak_bytes, m.sets_arena ? "  sets the arena" : "");
  text += fmt::format("{:{}} {:>14} {:>14} {:>14} {:>14}\n", "pool", width, r.arena_bytes, r.state_bytes, r.own_bytes,
                      r.planned_peak_bytes);
  if (r.blocks.size() > 1)
    text += fmt::format("the arena is {} blocks: {} bytes\n", r.blocks.size(), fmt::join(r.blocks, ", "));
  for (const auto& [members, values] : shared_by(r)) text += fmt::format("shared by {}: {}\n", members, values);
  text += fmt::format("saved: {} of {} bytes against executors of their own; observed peak {} bytes\n", r.saved_bytes(),
                      r.separate_bytes, observed_peak_bytes());
  return text;
}

std::string ReplayPool::explain_json() const {
  const PoolReport r = report();
  JsonWriter json;
  json.open('{');
  json.key("schema").value("tapedeck.pool/1");
  json.key("planned_peak_bytes").value(r.planned_peak_bytes).key("observed_peak_bytes").value(observed_peak_bytes());
  json.key("separate_bytes").value(r.separate_bytes).key("saved_bytes").value(r.saved_bytes());
  json.key("arena_bytes").value(r.arena_bytes).key("state_bytes").value(r.state_bytes).key("own_bytes").value(r.own_bytes);
  json.key("blocks").open('[');
  for (const std::int64_t bytes : r.blocks) json.value(bytes);
  json.close(']');
  json.line().key("members").open('[');
  for (const PoolReport::Member& m : r.members) {
    json.line().open('{');
    json.key("name").value(m.name).key("arena_bytes").value(m.arena_bytes).key("state_bytes").value(m.state_bytes);
    json.key("own_bytes").value(m.own_bytes).key("peak_bytes").value(m.peak_bytes).key("sets_arena").value(m.sets_arena);
    json.close('}');
  }
  json.close(']');
  json.line().key("state").open('[');
  for (const PoolReport::State& s : r.state) {
    json.line().open('{');
    json.key("name").value(s.name).key("type").value(to_string(s.type)).key("members").open('[');
    for (const std::string& member : s.members) json.value(member);
    json.close(']');
    json.close('}');
  }
  json.close(']');
  json.close('}');
  return json.take() + "\n";
}

}  // namespace tapedeck
