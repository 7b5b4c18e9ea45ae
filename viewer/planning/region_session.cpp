#include <tapedeck/viewer/planning/region_session.h>

#include <tapedeck/viewer/plan/plan_unit.h>
#include <tapedeck/viewer/plan/release_later.h>
#include <tapedeck/viewer/saved/saved_place.h>
#include <tapedeck/viewer/words/index.h>

#include <utility>

namespace tapedeck::viewer {

namespace {

// As much of the path as the plan has; null if it has nothing of it.
std::shared_ptr<const ShownRegion> make_shown_region(std::shared_ptr<const PlanModel> step, const RegionPath& path) {
  auto shown = std::make_unique<ShownRegion>();
  shown->place = place_inside(step, path);
  if (shown->place.path.empty()) return nullptr;
  shown->place.model->complete();
  shown->facts = regions_of(*shown->place.around, shown->place.node);
  shown->workspace =
      workspace_parts(*shown->place.around, shown->place.node, shown->place.path.back().region, unit_of(step->plan()));
  shown->step = std::move(step);
  return released_later(std::unique_ptr<const ShownRegion>(std::move(shown)));
}

}  // namespace

RegionSession::RegionSession(Session& step, Observer& panel, std::function<void()> wake) : step_(step), task_(std::move(wake)) {
  inside_.attach(&panel);
}

void RegionSession::go(RegionPath path) {
  restored_.reset();
  if (path == path_) return;
  path_ = std::move(path);
  asked_ = 0;
  task_.cancel();
  step_.hover(kNone);
  if (path_.empty()) release_later(std::exchange(region_, nullptr));
  update();
}

void RegionSession::enter(NodeId n) {
  const PlanModel* const model = session().model();
  if (model == nullptr || n < 0 || n >= model->nodes() || model->graph().nodes[at(n)].n_regions == 0) return;
  RegionPath path = path_;
  path.push_back(step_into(*model, n, first_shown_region(model->graph().nodes[at(n)])));
  go(std::move(path));
}

bool RegionSession::enter_selection() {
  const PlanModel* const model = session().model();
  const NodeId n = session().selection().node;
  if (model == nullptr || !settled()) return false;
  if (n != kNone && model->graph().nodes[at(n)].n_regions > 0) return enter(n), true;
  if (region() == nullptr) return false;
  const RegionPlace& place = region()->place;
  const int regions = place.around->graph().nodes[at(place.node)].n_regions;
  if (regions > 1) show_region((path_.back().region + 1) % regions);
  return regions > 1;
}

void RegionSession::show_region(int region) {
  RegionPath path = path_;
  path.back().region = region;
  go(std::move(path));
}

bool RegionSession::leave(std::size_t depth) {
  if (depth >= path_.size()) return false;
  go(RegionPath(path_.begin(), path_.begin() + static_cast<std::ptrdiff_t>(depth)));
  return true;
}

bool RegionSession::settled() const {
  return path_.empty() || step_.model() == nullptr ||
         (region_ && region_->step == step_.shared_model() && region_->place.path == path_);
}

// A region under way is waited for: while plans come faster than regions, the newest plan is taken up next.
void RegionSession::update() {
  if (std::optional<Result> result = task_.take()) take(std::move(*result));
  inside_.set_time_unit(step_.time_unit());
  // A plan that lacks the region led back to the step; a later plan may have it.
  if (restored_ && path_.empty() && step_.model() != nullptr && asked_ != step_.model()->serial()) path_ = restored_->path;
  if (settled() || task_.busy() || asked_ == step_.model()->serial()) return;
  asked_ = step_.model()->serial();
  task_.start([step = step_.shared_model(), path = path_](const std::atomic<bool>&) {
    return Result{make_shown_region(step, path), {}};
  });
}

void RegionSession::take(Result result) {
  const bool is_same_place = region_ && result.region && region_->place.path == result.region->place.path;
  release_later(std::exchange(region_, std::move(result.region)));
  if (!region_) return path_.clear();  // another plan, which does not have the region any more
  path_ = region_->place.path;
  if (!is_same_place) inside_.show(nullptr);
  inside_.show(region_->place.model);
  show_restored();
}

SavedRegion RegionSession::saved() const {
  if (restored_) return *restored_;
  return region() != nullptr ? SavedRegion{path_, place_of(inside_)} : SavedRegion{path_, {}};
}

void RegionSession::restore(SavedRegion region) {
  if (region.path.empty()) return;
  go(region.path);
  restored_ = std::move(region);
}

void RegionSession::show_restored() {
  if (!restored_ || restored_->path != path_) return;
  const SavedRegion region = *std::exchange(restored_, std::nullopt);
  show_place(region.place, &inside_);
}

void RegionSession::finish() {
  while (!settled()) {
    update();
    std::optional<Result> result = task_.wait();
    if (!result) return;
    take(std::move(*result));
  }
}

void RegionSession::forget() {
  task_.cancel();
  path_.clear();
  restored_.reset();
  asked_ = 0;
  release_later(std::exchange(region_, nullptr));
  inside_.show(nullptr);
}

}  // namespace tapedeck::viewer
