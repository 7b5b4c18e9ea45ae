// An opened file: a .tape file or the text of a graph, with the plan of the file if it has one.
#pragma once

#include <tapedeck/capture/file/file_costs.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/plan/plan_options.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck::viewer {

// An opened file.
struct Document {
  std::string path;
  std::string name;  // the file's own name, without folders
  std::shared_ptr<const Graph> captured;
  std::optional<Plan> plan;
  // The options of further plans, all but the budget: the options of the plan in the file, if there is one, and the costs that
  // the tool takes for this file. So equal budgets give equal numbers in the tool and here.
  PlanOptions options;
  CostSource costs = CostSource::best;  // that were asked for
  std::vector<std::string> notes;       // about the costs and the options, for people
  std::map<std::string, std::string> metadata;

  std::string title() const;  // "digits.tape · train_step"
};

// Opens a file. A name that ends in .graph means graph text; any other name means a .tape file. Header, graph and plan are
// verified; tensor data is not read. Throws FileError, ParseError, InvalidGraphError; UsageError for a source of costs that the
// file does not have.
Document open_document(const std::string& path, CostSource costs = CostSource::best);

// The file name of a path.
std::string base_name(const std::string& path);

}  // namespace tapedeck::viewer
