#include <tapedeck/viewer/plan/byte_chains.h>
#include <tapedeck/viewer/words/index.h>

#include <algorithm>

namespace tapedeck::viewer {

namespace {

// The first of the chain. The number of steps is limited, in case a faulty plan has a cycle.
ValueId first_of(const Plan& plan, ValueId v) {
  for (std::size_t steps = 0; steps < plan.values.size(); ++steps) {
    const ValueId source = source_of_bytes(plan, v);
    if (source == kNone) break;
    v = source;
  }
  return v;
}

// All that lie in the bytes of a value, directly or through others, and the value itself; at most `most`, in case a faulty plan
// has a cycle.
std::vector<ValueId> members_of(const SharedBytes& shared, ValueId first, std::size_t most) {
  std::vector<ValueId> members = {first};
  for (std::size_t i = 0; i < members.size(); ++i)
    for (const ValueId v : shared.inside(members[i])) {
      if (v == first || members.size() == most) return members;
      members.push_back(v);
    }
  return members;
}

std::string sentence_of(const PlanModel& model, ValueId v, ValueId from) {
  const std::string name = model.name_of(v);
  if (from == kNone) return name + " has these bytes first";
  const std::string other = model.name_of(from);
  switch (model.plan().values[at(v)].reason) {
    case Reason::in_place:
      return name + " is computed in the bytes of " + other + ", which nobody reads any more";
    case Reason::part:
      return name + " is written into its place in the bytes of " + other + ", which joins it with others";
    case Reason::update:
      return name + " becomes the new value of " + other + ", and lies in its buffer";
    default:
      return name + " is a window on the bytes of " + other;
  }
}

}  // namespace

std::vector<ByteChainLink> byte_chain(const PlanModel& model, ValueId v) {
  const Plan& plan = model.plan();
  if (v < 0 || at(v) >= plan.values.size()) return {};
  const ValueId first = first_of(plan, v);
  std::vector<ValueId> members = members_of(model.shared_bytes(), first, plan.values.size());
  if (members.size() < 2) return {};
  // Values are numbered in the order in which they are made, but for a join, whose parts come before it.
  std::sort(members.begin(), members.end());
  std::stable_sort(members.begin(), members.end(), [&](ValueId a, ValueId b) {
    return std::max(plan.values[at(a)].birth, kNone) < std::max(plan.values[at(b)].birth, kNone);
  });
  std::vector<ByteChainLink> chain;
  for (const ValueId member : members) {
    const ValueId from = source_of_bytes(plan, member);
    chain.push_back({member, from, sentence_of(model, member, from)});
  }
  return chain;
}

PlanRect place_in_plan(const PlanModel& model, ValueId v) {
  const std::vector<PlanRect> rects = model.rects_of(v);
  if (rects.empty()) return {};
  PlanRect place = rects.front();
  if (place.value == v) return place;
  const Plan& plan = model.plan();
  const Placement &p = plan.values[at(v)], &owner = plan.values[at(place.value)];
  const std::int64_t end = place.address + place.bytes;
  place.address = std::clamp(place.address + p.offset - owner.offset, place.address, end);
  // A window with strides reaches over more bytes than it has; it is drawn to the end of the value.
  place.bytes = p.dense ? std::min(plan.graph.values[at(v)].type.bytes(), end - place.address) : end - place.address;
  place.value = v;
  place.begin = std::clamp(std::max<NodeId>(p.birth, 0), place.begin, place.end - 1);
  place.end = std::clamp<NodeId>(p.death == kNone ? place.end : p.death + 1, place.begin + 1, place.end);
  return place;
}

}  // namespace tapedeck::viewer
