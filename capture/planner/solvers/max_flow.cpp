#include <tapedeck/capture/planner/solvers/max_flow.h>

#include <tapedeck/kernels/checked_math.h>

#include <algorithm>

namespace tapedeck {

void MaxFlow::add_edge(std::int32_t from, std::int32_t to, std::int64_t capacity) {
  edges_of_[from].push_back(static_cast<std::int32_t>(edges_.size()));
  edges_.push_back({to, capacity});
  edges_of_[to].push_back(static_cast<std::int32_t>(edges_.size()));
  edges_.push_back({from, 0});
}

std::int64_t MaxFlow::find(std::int32_t source, std::int32_t sink, std::int64_t most_work, const Watch& watch) {
  most_work_ = most_work;
  std::int64_t flow = 0;
  while (find_levels(source, sink)) {
    watch.check();
    flow = limited_sum({flow, push_all(source, sink)});
    if (work_ > most_work_) return kGivenUp;
  }
  return flow;
}

// Levels: edges that have room, counted from the source.
bool MaxFlow::find_levels(std::int32_t source, std::int32_t sink) {
  level_.assign(edges_of_.size(), -1);
  level_[source] = 0;
  std::vector<std::int32_t> queue{source};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (std::int32_t e : edges_of_[queue[i]]) {
      ++work_;
      const Edge& edge = edges_[e];
      if (edge.room == 0 || level_[edge.to] >= 0) continue;
      level_[edge.to] = level_[queue[i]] + 1;
      queue.push_back(edge.to);
    }
  }
  return level_[sink] >= 0;
}

// Pushes along paths that rise by one level at each edge, until none is left.
std::int64_t MaxFlow::push_all(std::int32_t source, std::int32_t sink) {
  next_.assign(edges_of_.size(), 0);
  path_.clear();
  at_ = source;
  std::int64_t flow = 0;
  while (work_ <= most_work_) {
    if (at_ == sink)
      flow += push_path();
    else if (!step_forward()) {
      if (path_.empty()) return flow;
      at_ = edges_[path_.back() ^ 1].to;  // a dead end: go back and try the next edge
      ++next_[at_];
      path_.pop_back();
    }
  }
  return flow;
}

bool MaxFlow::step_forward() {
  const auto& edges = edges_of_[at_];
  for (std::size_t& i = next_[at_]; i < edges.size(); ++i) {
    ++work_;
    const Edge& edge = edges_[edges[i]];
    if (edge.room == 0 || level_[edge.to] != level_[at_] + 1) continue;
    path_.push_back(edges[i]);
    at_ = edge.to;
    return true;
  }
  return false;
}

// Pushes what the path has room for, and goes back to the start of the first edge that is full now.
std::int64_t MaxFlow::push_path() {
  std::int64_t room = kUnbounded;
  for (std::int32_t e : path_) room = std::min(room, edges_[e].room);
  std::size_t first_full = path_.size();
  for (std::size_t i = path_.size(); i-- > 0;) {
    edges_[path_[i]].room -= room;
    edges_[path_[i] ^ 1].room += room;
    if (edges_[path_[i]].room == 0) first_full = i;
  }
  work_ += static_cast<std::int64_t>(path_.size());
  at_ = edges_[path_[first_full] ^ 1].to;
  path_.resize(first_full);
  return room;
}

std::vector<char> MaxFlow::side_of_sink(std::int32_t sink) const {
  std::vector<char> reaches(edges_of_.size(), 0);
  reaches[sink] = 1;
  std::vector<std::int32_t> queue{sink};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (std::int32_t e : edges_of_[queue[i]]) {
      const std::int32_t from = edges_[e].to;  // edge e ^ 1 leads from there to here
      if (reaches[from] || edges_[e ^ 1].room == 0) continue;
      reaches[from] = 1;
      queue.push_back(from);
    }
  }
  return reaches;
}

}  // namespace tapedeck
