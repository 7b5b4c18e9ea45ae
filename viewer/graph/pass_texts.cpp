#include <tapedeck/viewer/graph/pass_texts.h>

#include <tapedeck/capture/planner/pass_steps.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/words/format.h>

#include <fmt/format.h>

namespace tapedeck::viewer {

namespace {

void add_step(PassRecord record, const Graph& graph, StepTexts* steps) {
  StepText step;
  step.record = std::move(record);
  step.doc = step_doc(step.record.name);
  std::string text = print(graph);
  if (!steps->empty()) step.before = steps->back().after;
  if (step.before && step.before->text() == text) {
    step.after = step.before;
  } else {
    step.after = std::make_shared<const GraphText>(std::move(text));
    const Numbers numbers = step.record.name == "name_values" ? Numbers::become_names : Numbers::shift;
    if (step.before) step.diff = std::make_shared<const TextDiff>(diff_texts(*step.before, *step.after, numbers));
  }
  steps->push_back(std::move(step));
}

std::string signed_text(std::int64_t change, const std::string& size) {
  return change == 0 ? "" : (change < 0 ? "-" : "+") + size;
}

}  // namespace

std::shared_ptr<const StepTexts> pass_texts(const Graph& captured, const PlanOptions& options,
                                            const std::atomic<bool>* cancel) {
  auto steps = std::make_shared<StepTexts>();
  watch_pass_steps(captured, options.level, options.sharing, cancel,
                   [&](const PassStep& step) { add_step(step.record, step.graph, steps.get()); });
  return steps;
}

std::shared_ptr<const StepTexts> with_plan(const StepTexts& passes, const Plan& plan) {
  auto steps = std::make_shared<StepTexts>(passes);
  add_step(planned_step(passes.back().record, plan), plan.graph, steps.get());
  return steps;
}

std::string won_nodes(const PassRecord& record) {
  const std::int64_t change = record.nodes_after - record.nodes_before;
  return signed_text(change, grouped(change < 0 ? -change : change));
}

std::string won_bytes(const PassRecord& record, const ByteUnit& unit) {
  const std::int64_t change = record.bytes_after - record.bytes_before;
  return signed_text(change, unit.readable_text(change < 0 ? -change : change));
}

std::string change_text(const StepText& step) {
  if (!step.before) return grouped(step.record.nodes_after) + " nodes";
  if (!step.diff) return "nothing changed";
  std::string text;
  const auto add = [&](std::int32_t lines, const char* what) {
    if (lines > 0)
      text += (text.empty() ? "" : ", ") + grouped(lines) + (text.empty() ? (lines == 1 ? " line " : " lines ") : " ") + what;
  };
  add(step.diff->removed, "removed (-)");
  add(step.diff->added, "added (+)");
  add(step.diff->changed, "changed (~)");
  add(step.diff->moved, "moved (< >)");
  return text;
}

std::string steps_csv(const StepTexts& steps) {
  std::string csv = "step,nodes_before,nodes_after,live_bytes_before,live_bytes_after,removed,added,changed,moved\n";
  for (const StepText& step : steps) {
    const PassRecord& r = step.record;
    const TextDiff none, &diff = step.diff ? *step.diff : none;
    csv += fmt::format("{},{},{},{},{},{},{},{},{}\n", r.name, r.nodes_before, r.nodes_after, r.bytes_before, r.bytes_after,
                       diff.removed, diff.added, diff.changed, diff.moved);
  }
  return csv;
}

}  // namespace tapedeck::viewer
