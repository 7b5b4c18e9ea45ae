// The text of a graph after each step from the capture to the plan, with what the step won and what it changed.
#pragma once

#include <tapedeck/capture/passes/pass_runner.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/viewer/graph/graph_text.h>
#include <tapedeck/viewer/graph/text_diff.h>
#include <tapedeck/viewer/words/format.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck::viewer {

// A step. A step that changes nothing shares the text of the step before, and has no difference.
struct StepText {
  PassRecord record;  // nodes, live bytes and milliseconds
  std::string doc;    // a sentence about the step
  std::shared_ptr<const GraphText> before, after;
  std::shared_ptr<const TextDiff> diff;  // null: nothing changed
};

using StepTexts = std::vector<StepText>;

// The steps that prepare() takes with a captured graph, the graph as it was recorded first. Of the options, level and sharing
// count. Throws as watch_pass_steps().
std::shared_ptr<const StepTexts> pass_texts(const Graph& captured, const PlanOptions& options, const std::atomic<bool>* cancel);
// The same steps and the last one, to the graph of the plan. `passes`: of the graph that was planned.
std::shared_ptr<const StepTexts> with_plan(const StepTexts& passes, const Plan& plan);

// The gain of a step as text: "-12", "+3", "" for nothing; bytes "-3.20 MiB", in one unit for all steps.
std::string won_nodes(const PassRecord& record);
std::string won_bytes(const PassRecord& record, const ByteUnit& unit);
// "12 lines removed (-), 3 changed (~)": for people, with the signs that changed lines have.
std::string change_text(const StepText& step);
// The steps as CSV: step, nodes and live bytes before and after, lines removed, added, changed and moved.
std::string steps_csv(const StepTexts& steps);

}  // namespace tapedeck::viewer
