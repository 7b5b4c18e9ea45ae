// A call belongs to the first recording of its types that would run the same program now. If there is none, the new recording
// keeps the reason: the difference to the last recording of these types, or to the last one at all.
#include <tapedeck/capture/step/recording_cache.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

namespace {

constexpr std::size_t kMostRecordings = 64;
constexpr int kMostForNewDraws = 16;

// Why the recording does not serve a call with inputs of its types; empty if it does.
std::string other_reason(const Recording& r, const Surroundings& now, const std::vector<Tensor>& inputs) {
  const Captured* known = r.known();
  const std::string other = now.difference(r.surroundings, known && draws(*known));
  if (!other.empty() || !known) return other;
  const std::string drawn = r.draws.misfit();
  return drawn.empty() ? misfit(*known, inputs) : drawn;
}

// Why the recording does not serve a call with these inputs; empty if it does.
std::string why_not(const Recording& r, const Surroundings& now, const std::vector<Tensor>& inputs) {
  if (same_types(r.types, inputs)) return other_reason(r, now, inputs);
  return fmt::format("input types changed to ({}) from ({})", types_text(types_of(inputs)), types_text(r.types));
}

// Whether the recording would serve the call if the thread had drawn another number of times.
bool differs_in_draws(const Recording& r, const Surroundings& now, const std::vector<Tensor>& inputs) {
  const Captured* known = r.known();
  return known && same_types(r.types, inputs) && now.difference(r.surroundings, draws(*known)).empty() &&
         !r.draws.misfit().empty() && misfit(*known, inputs).empty();
}

}  // namespace

std::vector<Type> types_of(const std::vector<Tensor>& tensors) {
  std::vector<Type> types;
  for (const Tensor& t : tensors) types.push_back(t.type());
  return types;
}

std::string types_text(const std::vector<Type>& types) {
  std::string text;
  for (const Type& t : types) text += (text.empty() ? "" : ", ") + to_string(t);
  return text;
}

bool same_types(const std::vector<Type>& types, const std::vector<Tensor>& tensors) {
  return std::equal(types.begin(), types.end(), tensors.begin(), tensors.end(),
                    [](const Type& type, const Tensor& t) { return type == t.type(); });
}

Recording* RecordingCache::known(const Surroundings& now, const std::vector<Tensor>& inputs) const {
  for (const auto& r : all_)
    if (same_types(r->types, inputs) && other_reason(*r, now, inputs).empty()) return r.get();
  return nullptr;
}

Recording* RecordingCache::find(const std::vector<Tensor>& inputs) {
  const Surroundings now = Surroundings::now();
  if (Recording* r = known(now, inputs)) {
    if (r->executor) for_new_draws_ = 0;
    return r;
  }
  if (std::any_of(all_.begin(), all_.end(), [&](const auto& r) { return differs_in_draws(*r, now, inputs); }) &&
      ++for_new_draws_ > kMostForNewDraws)
    return nullptr;
  const std::vector<Type> types = types_of(inputs);
  std::string reason = all_.empty() ? "first call" : why_not(*all_.back(), now, inputs);
  for (auto& r : all_)
    if (r->types == types) reason = why_not(*r, now, inputs);
  if (all_.size() >= kMostRecordings) all_.erase(all_.begin());
  auto r = std::make_unique<Recording>();
  r->types = types;
  r->surroundings = now;
  r->reasons.push_back(reason);
  all_.push_back(std::move(r));
  return all_.back().get();
}

void RecordingCache::note_handles() {
  for (const auto& r : all_)
    if (r->captured) r->watchlist.note_handles(*r->captured);
}

void RecordingCache::keep_suspicions() {
  for (const auto& r : all_)
    if (r->captured) r->watchlist.keep_suspicion(*r->captured);
}

std::vector<Recording*> RecordingCache::without_doubts() {
  std::vector<Recording*> sure;
  for (const auto& r : all_)
    if (r->captured && r->watchlist.suspicion(*r->captured).empty()) sure.push_back(r.get());
  return sure;
}

std::vector<Explanation> RecordingCache::explanations() const {
  std::vector<Explanation> explanations;
  for (const auto& r : all_) {
    const Captured* known = r->known();
    explanations.push_back(
        {types_text(r->types), r->reasons, known ? &known->report : nullptr, r->executor ? &r->executor->plan() : nullptr});
  }
  return explanations;
}

}  // namespace tapedeck
