// The source of the microseconds in plans of the tool: the source that --costs names, else the best one there is.
#pragma once

#include <tapedeck/capture/cost/cost_model.h>
#include <tapedeck/capture/file/file.h>

#include <memory>
#include <string>

namespace tapedeck::tool {

// costs_of_file() (capture/file/file_costs.h) by the word of --costs; empty: the best source. Prints the notes to stderr.
// Throws UsageError for a source that does not exist.
std::shared_ptr<const CostModel> choose_costs(const std::string& choice, const TapeFile& file);

}  // namespace tapedeck::tool
