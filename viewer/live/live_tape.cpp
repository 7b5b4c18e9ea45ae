#include <tapedeck/viewer/live/live_tape.h>

#include <tapedeck/viewer/words/format.h>

#include <tapedeck/capture/formats/atomic_write.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tapedeck::viewer {

namespace {

constexpr std::size_t kBlock = 64;             // points
constexpr std::uint32_t kTypesFrom = 1 << 16;  // texts of result types have numbers behind those of the program
constexpr std::size_t kMostTypeTexts = 1 << 16;
constexpr std::size_t kMostCaptures = 1000, kMostSteps = 1 << 20;

void widen(LivePoint* to, const LivePoint& by) {
  to->lowest = to->highest < 0 ? by.lowest : std::min(to->lowest, by.lowest);
  to->highest = std::max(to->highest, by.highest);
}

// Numbers of a file may be anything; their sum stays far from the largest number.
void add_bounded(std::int64_t* sum, std::int64_t number) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  *sum = std::min(*sum + std::min(number, kMost), kMost);
}

// "block.0.fc1" -> "block.0"
std::string first_levels(const std::string& path) {
  const std::size_t first = path.find('.');
  if (first == std::string::npos) return path;
  return path.substr(0, path.find('.', first + 1));
}

}  // namespace

void LiveTape::add(const live::Record& record) {
  std::visit([this](const auto& r) { add_one(r); }, record);
}

void LiveTape::add_one(const live::TextRecord& r) {
  if (texts_.size() <= r.id) texts_.resize(r.id + 1);
  texts_[r.id] = r.text;
}

std::uint32_t LiveTape::id_of_types(const live::OpRecord& r) {
  std::string text;
  for (int i = 0; i < r.n_types; ++i) text += (i > 0 ? ", " : "") + to_string(r.types[i]);
  if (r.n_results > r.n_types) text += fmt::format(", and {} more", r.n_results - r.n_types);
  const auto known = types_.find(text);
  if (known != types_.end()) return known->second;
  if (types_.size() >= kMostTypeTexts) return 0;
  const auto id = kTypesFrom + static_cast<std::uint32_t>(types_.size());
  texts_.resize(id + 1);
  texts_[id] = text;
  types_.emplace(std::move(text), id);
  return id;
}

void LiveTape::add_one(const live::OpRecord& r) {
  if (r.index < next_index_) return;  // twice, or a number that somebody made up
  next_index_ = r.index + 1;
  live_ = r.live;
  ops_.push_back(
      {r.index, r.time_ns, r.live, r.bytes, r.op, r.path, r.file, id_of_types(r), r.thread, r.line, r.phase, r.flags});
  if (ops_.size() > kMostRows) ops_.erase(ops_.begin(), ops_.begin() + kMostRows / 2);
  if (by_path_.size() <= r.path) by_path_.resize(r.path + 1);
  ++by_path_[r.path].calls;
  if ((r.flags & live::OpRecord::kView) == 0) add_bounded(&by_path_[r.path].bytes, r.bytes);
  add_point(r.index, r.live, r.live);
  sample(r.time_ns);
}

void LiveTape::add_one(const live::StepRecord& r) {
  step_ = std::max(step_, r.step);
  live_ = r.live;
  if (steps_.size() >= kMostSteps) steps_.erase(steps_.begin(), steps_.begin() + kMostSteps / 2);
  if (steps_.empty() || r.index >= steps_.back().index) steps_.push_back({r.index, r.step});
  sample(r.time_ns);
}

void LiveTape::add_one(const live::DroppedRecord& r) {
  if (r.count > live::kMostCalls - next_index_) return;
  dropped_ += static_cast<std::int64_t>(r.count);
  add_point(next_index_, r.highest_live, r.highest_live);
  next_index_ += r.count;
}

void LiveTape::add_one(const live::ReplayRecord& r) {
  ++replays_;
  live_ = r.live;
  replay_peak_ = std::max(replay_peak_, r.peak);
  sample(r.time_ns);
}

void LiveTape::add_one(const live::CapturedRecord& r) {
  if (captures_.size() < kMostCaptures) captures_.push_back({r.file, r.message});
}

void LiveTape::add_one(const live::EndedRecord&) { ended_ = true; }

// The beginning of a chunk tells the past again, which only a late viewer needs.
void LiveTape::add_one(const live::PastRecord& r) {
  if (r.index < next_index_ || r.count == 0 || r.count > live::kMostCalls - r.index) return;
  add_point(r.index, r.lowest, r.highest);
  next_index_ = r.index + r.count;
  step_ = std::max(step_, r.steps);
}

// ---- the curve ----

void LiveTape::append(const LivePoint& point) {
  if (points_.size() % kBlock == 0) blocks_.push_back({point.index, -1, -1});
  points_.push_back(point);
  widen(&blocks_.back(), point);
}

void LiveTape::add_point(std::uint64_t index, std::int64_t lowest, std::int64_t highest) {
  const LivePoint point{index, lowest, highest};
  append(point);
  if (highest > peak_.highest) peak_ = point;
  if (points_.size() >= kMostPoints) halve_points();
}

void LiveTape::halve_points() {
  std::vector<LivePoint> all;
  all.swap(points_);
  blocks_.clear();
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
    LivePoint pair = all[i];
    widen(&pair, all[i + 1]);
    append(pair);
  }
}

// The last point that begins at or before the index.
std::size_t LiveTape::point_at(double index) const {
  const auto after = std::upper_bound(points_.begin(), points_.end(), index,
                                      [](double at, const LivePoint& p) { return at < static_cast<double>(p.index); });
  return after == points_.begin() ? 0 : static_cast<std::size_t>(after - points_.begin()) - 1;
}

LivePoint LiveTape::extremes_of_points(std::size_t first, std::size_t last) const {
  LivePoint found{points_[first].index, -1, -1};
  while (first <= last) {
    if (first % kBlock == 0 && first + kBlock - 1 <= last) {
      widen(&found, blocks_[first / kBlock]);
      first += kBlock;
    } else {
      widen(&found, points_[first++]);
    }
  }
  return found;
}

LivePoint LiveTape::extremes(double from, double to) const {
  const LivePoint none{0, -1, -1};
  if (points_.empty() || to <= static_cast<double>(points_[0].index) || from >= static_cast<double>(next_index_)) return none;
  const std::size_t first = point_at(from);
  std::size_t last = point_at(to);
  if (last > first && static_cast<double>(points_[last].index) >= to) --last;
  return extremes_of_points(first, last);
}

// ---- rates ----

void LiveTape::sample(std::int64_t time_ns) {
  constexpr std::int64_t kEvery = 100'000'000, kWindow = 2'000'000'000;
  if (!samples_.empty() && time_ns - samples_.back().time_ns < kEvery) return;
  samples_.push_back({time_ns, static_cast<std::int64_t>(next_index_), static_cast<std::int64_t>(step_) + replays_});
  while (samples_.size() > 2 && time_ns - samples_.front().time_ns > kWindow) samples_.pop_front();
}

double LiveTape::rate(std::int64_t Sample::*of) const {
  if (samples_.size() < 2) return 0;
  const Sample &first = samples_.front(), &last = samples_.back();
  const double seconds = static_cast<double>(std::max<std::int64_t>(last.time_ns - first.time_ns, 1)) / 1e9;
  return std::clamp(static_cast<double>(last.*of - first.*of) / seconds, 0.0, 1e12);
}

// ---- modules ----

std::vector<LiveModule> LiveTape::modules() const {
  std::map<std::string, LiveModule> by_name;
  for (std::size_t id = 0; id < by_path_.size(); ++id) {
    if (by_path_[id].calls == 0) continue;
    const std::string name = first_levels(text(static_cast<std::uint32_t>(id)));
    LiveModule& module = by_name[name];
    module.name = name;
    module.calls += by_path_[id].calls;
    module.bytes += by_path_[id].bytes;
  }
  std::vector<LiveModule> all;
  for (const auto& [name, module] : by_name) all.push_back(module);
  std::stable_sort(all.begin(), all.end(), [](const LiveModule& a, const LiveModule& b) { return a.bytes > b.bytes; });
  return all;
}

// ---- texts ----

std::string site_text(const LiveTape& tape, const LiveOp& op) {
  const std::string& file = tape.text(op.file);
  if (file.empty() || op.line == 0) return "";
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), op.line);
}

void write_live_csv(const LiveTape& tape, const std::string& path) {
  AtomicWriter file(path);
  file.write("call,us,op,module,results,bytes,live_bytes,phase,thread,file,line\n");
  for (const LiveOp& op : tape.ops())
    file.write(fmt::format("{},{:.1f},{},{},{},{},{},{},{},{},{}\n", op.index, static_cast<double>(op.time_ns) / 1e3,
                           csv_field(tape.text(op.op)), csv_field(tape.text(op.path)), csv_field(tape.text(op.types)), op.bytes,
                           op.live, phase_name(op.phase), op.thread, csv_field(tape.text(op.file)), op.line));
  file.commit();
}

}  // namespace tapedeck::viewer
