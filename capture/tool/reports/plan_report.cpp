// The JSON of `plan`: the numbers of the plan, and one object for the topic of --explain.
#include <tapedeck/capture/tool/reports/explain_values.h>
#include <tapedeck/capture/tool/reports/json_parts.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/capture/explain/explain_memory.h>
#include <tapedeck/capture/plan/level_names.h>

namespace tapedeck::tool {

Json plan_json(const Plan& p) {
  Json j;
  j["schema"] = "tapedeck.plan/1";
  j["feasible"] = p.feasible;
  j["strategy"] = p.strategy;
  j["order"] = p.order;
  j["level"] = level_name(p.level);
  j["peak_bytes"] = p.peak_bytes;
  j["lower_bound_bytes"] = p.lower_bound_bytes;
  j["floor_bytes"] = p.floor_bytes;
  j["budget_bytes"] = p.budget_bytes < 0 ? Json(nullptr) : Json(p.budget_bytes);
  j["keep_all_peak_bytes"] = p.keep_all_peak_bytes;
  j["arena_bytes"] = p.arena_bytes;
  j["chunk_bytes"] = p.chunk_bytes > 0 ? Json(p.chunk_bytes) : Json(nullptr);
  j["chunks"] = p.chunks;
  j["external_bytes"] = p.external_bytes;
  j["alignment"] = p.alignment;
  j["nodes"] = p.nodes;
  j["recomputed_nodes"] = p.recomputed_nodes;
  j["recompute_cost_ratio"] = p.recompute_cost_ratio();
  j["cost_us"] = p.cost_us;
  j["cost_lower_bound_us"] = p.cost_lower_bound_us > 0 ? Json(p.cost_lower_bound_us) : Json(nullptr);
  j["bound_from"] = p.bound_from.empty() ? Json(nullptr) : Json(p.bound_from);
  j["costs"] = p.costs;
  j["measured_nodes"] = p.measured_nodes;
  j["segments"] = p.segments.size();
  j["solve_ms"] = p.solve_ms;
  if (!p.feasible) {
    j["infeasible_reason"] = p.infeasible_reason;
    j["infeasible"] = infeasible_json(InfeasiblePlanError("", p));
  }
  return j;
}

namespace {

Json rule_json(const Plan& p) {
  const SegmentRule& r = p.segment_rule;
  return {{"threads", p.threads},
          {"costs", p.costs},
          {"shape", r.shape},
          {"placement", r.placement},
          {"dispatch_us", r.dispatch_us},
          {"least_us", r.least_us},
          {"most_us", r.most_us},
          {"grain_us", r.grain_us},
          {"split_phases", r.split_phases},
          {"serial_us", r.serial_us},
          {"critical_path_us", r.critical_path_us},
          {"makespan_us", r.makespan_us},
          {"tight_makespan_us", r.tight_makespan_us},
          {"tight_peak_bytes", r.tight_peak_bytes}};
}

Json segments_json(const Plan& p) {
  Json list = Json::array();
  for (const Segment& s : p.segments) {
    Json intra = Json::array();
    for (NodeId n : s.nodes)
      if (p.intra_op.empty() || p.intra_op[n]) intra.push_back(n);
    list.push_back({{"cost_us", s.cost_us},
                    {"nodes", s.nodes},
                    {"successors", s.successors},
                    {"n_predecessors", s.n_predecessors},
                    {"end", segment_end_name(s.end)},
                    {"intra_op", intra}});
  }
  return list;
}

Json decisions_json(const Plan& p) {
  Json list = Json::array();
  for (const Decision& d : p.decisions)
    list.push_back({{"value", d.value},
                    {"bytes", d.bytes},
                    {"span", d.span},
                    {"cost_us", d.cost_us},
                    {"clones", d.clones},
                    {"live_peak_bytes", d.live_peak_bytes},
                    {"reason", d.reason}});
  return list;
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json tenant_json(const PeakTenant& t) {
  Json j = {{"name", t.name},
            {"type", text_or_null(t.type)},
            {"role", memory_role_name(t.role)},
            {"reason", t.reason},
            {"bytes", t.bytes},
            {"offset", t.offset},
            {"first", t.first},
            {"last", t.last},
            {"maker", t.maker},
            {"made_at", text_or_null(t.made_at)},
            {"module", text_or_null(t.module)},
            {"reader", text_or_null(t.reader)},
            {"read_at", text_or_null(t.read_at)},
            {"used_at_peak", t.used_at_peak},
            {"order_helps", t.order_helps},
            {"advice", text_or_null(t.advice)}};
  j["recompute"] = nullptr;
  if (t.recomputable)
    j["recompute"] = {
        {"nodes", t.rerun.size()}, {"before", t.rerun_before}, {"cost_us", t.recompute_us}, {"live_peak_bytes", t.peak_after}};
  return j;
}

Json peak_json(const PeakExplanation& e) {
  Json alive = Json::array(), binding = Json::array();
  for (const PeakTenant& t : e.alive) alive.push_back(tenant_json(t));
  for (const BindingNode& b : e.binding)
    binding.push_back(
        {{"node", b.node}, {"text", b.text}, {"site", text_or_null(b.site)}, {"own_bytes", b.own_bytes}, {"binds", b.binds}});
  return {{"node", e.node},
          {"text", e.text},
          {"site", text_or_null(e.site)},
          {"phase", e.phase},
          {"nodes_at_peak", e.nodes_at_peak},
          {"live_bytes", e.live_bytes},
          {"external_bytes", e.external_bytes},
          {"arena_live_bytes", e.arena_live_bytes},
          {"alive", alive},
          {"binding", binding},
          {"gap_bytes", e.gap_bytes},
          {"alignment_bytes", e.alignment_bytes},
          {"apart_bytes", e.apart_bytes},
          {"top", text_or_null(e.top)},
          {"gap_reason", text_or_null(e.gap_reason)}};
}

Json totals_json(const std::vector<MemoryTotal>& totals) {
  Json list = Json::array();
  for (const MemoryTotal& t : totals)
    list.push_back({{"name", t.name}, {"count", t.count}, {"bytes", t.bytes}, {"at_peak_bytes", t.peak_bytes}});
  return list;
}

Json rules_json(const std::vector<SharingBound>& bounds) {
  Json list = Json::array();
  for (const SharingBound& b : bounds)
    list.push_back({{"rules", b.rules},
                    {"lower_bound_bytes", b.lower_bound_bytes},
                    {"peak_bytes", b.peak_bytes},
                    {"tight_peak_bytes", b.tight_peak_bytes}});
  return list;
}

Json memory_json(const MemoryExplanation& e) {
  Json sharing = Json::array();
  for (const SharingUse& u : e.sharing) sharing.push_back({{"rule", u.rule}, {"count", u.count}, {"bytes", u.bytes}});
  return {{"order", e.order},
          {"gap_bytes", e.gap_bytes},
          {"alignment_bytes", e.alignment_bytes},
          {"apart_bytes", e.apart_bytes},
          {"threads", e.threads},
          {"unshared_bytes", e.unshared_bytes},
          {"arena_values", e.arena_values},
          {"arena_buffers", e.arena_buffers},
          {"roles", totals_json(e.roles)},
          {"reasons", totals_json(e.reasons)},
          {"chunks", totals_json(e.chunks)},
          {"unruled", totals_json(e.unruled)},
          {"sharing", sharing}};
}

Json wishes_json(const std::vector<WishOutcome>& outcomes, const Plan& plan) {
  Json list = Json::array();
  for (const WishOutcome& o : outcomes) {
    Json refusals = Json::array();
    for (const WishRefusal& r : o.refusals) refusals.push_back({{"value", r.value}, {"why", r.why}});
    Json j = {{"wish", o.wish.kind == WishKind::keep ? "keep" : "recompute"},
              {"pattern", o.wish.pattern},
              {"values", o.values},
              {"honoured", o.honoured},
              {"overruled", o.overruled},
              {"refused", o.refused},
              {"refusals", refusals}};
    for (const WithoutWish& without : o.without)
      j["cost"] = {{"peak_bytes", plan.peak_bytes - without.peak_bytes},
                   {"floor_bytes", plan.floor_bytes - without.floor_bytes},
                   {"us", plan.cost_us - without.cost_us},
                   {"feasible_without", without.feasible}};
    list.push_back(j);
  }
  return list;
}

Json entry_json(const ValueEntry& e) {
  return {{"name", e.name},
          {"type", e.type},
          {"choice", value_choice_name(e.choice)},
          {"bytes", e.bytes},
          {"runs", e.runs},
          {"us", e.us},
          {"again_us", e.again_us()},
          {"readers", e.readers},
          {"reason", reason_name(e.reason)},
          {"rule", e.rule}};
}

Json price_json(const ValuePrice& p, const Plan& plan) {
  if (!p.obstacle.empty()) return {{"obstacle", p.obstacle}};
  return {{"feasible", p.feasible},
          {"live_peak_bytes", p.live_peak_bytes},
          {"peak_bytes", p.peak_bytes},
          {"cost_us", p.cost_us},
          {"recomputed_nodes", p.recomputed_nodes},
          {"more_live_peak_bytes", p.live_peak_bytes - plan.lower_bound_bytes},
          {"more_us", p.cost_us - plan.cost_us}};
}

Json value_json(const ExplainedValue& value, const Plan& plan) {
  Json j = entry_json(value.entry);
  j["other_choice"] = price_json(value.alone, plan);
  if (value.alone.before != kNone) {
    j["other_choice"]["before"] = value.alone.before;
    j["other_choice"]["nodes"] = value.alone.nodes;
  }
  j["planned_anew"] = price_json(value.anew, plan);
  if (value.anew.obstacle.empty()) {
    j["planned_anew"]["wish"] = value.anew.wish.kind == WishKind::keep ? "keep" : "recompute";
    j["planned_anew"]["floor_bytes"] = value.anew.floor_bytes;
  }
  return j;
}

Json log_json(const std::vector<ValueEntry>& log) {
  Json list = Json::array();
  for (const ValueEntry& e : log) list.push_back(entry_json(e));
  return list;
}

Json report_json(const Plan& plan, const std::string& explain, const PlanBackground& background) {
  Json j = plan_json(plan);
  if (!background.wishes.empty() || explain == "wishes") j["wishes"] = wishes_json(background.wishes, plan);
  if (explain == "choices") j["decisions"] = decisions_json(plan);
  if (explain == "segments") {
    j["segment_rule"] = rule_json(plan);
    j["segment_list"] = segments_json(plan);
  }
  if (explain == "peak") j["peak"] = peak_json(explain_peak(plan, background.node_us));
  if (explain == "memory") {
    j["memory"] = memory_json(explain_memory(plan));
    j["memory"]["rules"] = rules_json(background.sharing);
  }
  return j;
}

}  // namespace

std::string plan_report(const Plan& plan, const std::string& explain, const PlanBackground& background) {
  return text_of(report_json(plan, explain, background));
}

std::string plan_report(const Plan& plan, const std::string& explain, const PlanBackground& background,
                        const ValueBackground& values) {
  Json j = report_json(plan, explain, background);
  if (explain == "choices") j["values"] = log_json(values.log);
  if (values.value) j["value"] = value_json(*values.value, plan);
  return text_of(j);
}

}  // namespace tapedeck::tool
