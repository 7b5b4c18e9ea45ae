#include <tapedeck/capture/tool/files/costs.h>

#include <tapedeck/capture/tool/files/terminal.h>

#include <tapedeck/capture/file/file_costs.h>

#include <utility>

namespace tapedeck::tool {

std::shared_ptr<const CostModel> choose_costs(const std::string& choice, const TapeFile& file) {
  CostSource source = CostSource::best;
  parse_cost_source(choice, &source);
  FileCosts costs = costs_of_file(source, file.profile);
  for (const std::string& text : costs.notes) note(text);
  return std::move(costs.model);
}

}  // namespace tapedeck::tool
