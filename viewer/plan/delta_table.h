// The table of what differs between two plans: a row for each matched value, those that changed first.
#pragma once

#include <tapedeck/viewer/plan/matched_plans.h>
#include <tapedeck/viewer/words/table.h>

#include <array>
#include <memory>

namespace tapedeck::viewer {

const TableLayout& delta_layout();

// Row i is values()[i]. Its ids name the value of the right plan, or of the left one where the right one lacks it. O(values).
Table make_delta_table(const MatchedPlans& plans);

// All that a comparison of two plans shows, both ways round: [0] with the first plan on the left, [1] with the second one.
struct Comparison {
  std::array<std::shared_ptr<const MatchedPlans>, 2> plans;
  std::array<std::shared_ptr<const Table>, 2> tables;
};
// Takes a second for plans of 200,000 values, so windows call it in the background. Any thread may.
Comparison compare(const ComparedPlan& first, const ComparedPlan& second);

}  // namespace tapedeck::viewer
