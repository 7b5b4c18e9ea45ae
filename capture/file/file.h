// The .tape file: a valid safetensors file that holds a captured graph, and beside it weights, state, sample inputs and a plan.
// Layout: capture/file/FORMAT.md.
#pragma once

#include <tapedeck/capture/cost/profile.h>
#include <tapedeck/capture/formats/tensor_files.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace tapedeck TAPEDECK_API {

struct TapeFile {
  Graph captured;
  std::optional<Plan> plan;
  std::map<std::string, Tensor> state;          // by state name; may lack some (abstract captures)
  std::map<std::string, Tensor> inputs;         // sample inputs by name; may lack some
  std::optional<Profile> profile;               // the times of its nodes in replays
  std::map<std::string, std::string> metadata;  // model, batch, optimizer, tool version: as the writer gave them
};

enum class Check : std::uint8_t { structure, all };  // structure: header, graph and plan checksums; all: tensor data as well

// Throws FileError (missing, truncated, oversized, foreign, wrong checksum, newer version) or ParseError; never crashes on any
// bytes.
TapeFile load_tape(const std::string& path, Check check = Check::all);

// Writes beside `path`, syncs, then renames: a full disk leaves the old file as it was and no debris. Throws FileError.
void save_tape(const std::string& path, const TapeFile& file);

// A .graph file: text only. Throws FileError, ParseError.
Graph load_graph(const std::string& path);

// A Plan without its graph as JSON text, and back. `parse_plan` checks every index and size against `graph`, then check_plan().
// Older text, without the plans of regions, is read too: the planner makes them.
std::string plan_to_json(const Plan& plan);
Plan parse_plan(const std::string& json, Graph planned_graph);

}  // namespace TAPEDECK_API
