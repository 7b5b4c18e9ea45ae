// models, ops, settings and devices: lists of what this build contains. Without --json a list has one line for each entry.
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/cuda/runtime.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

namespace tapedeck::tool {

namespace {

std::int64_t parameters(const Graph& g) {
  std::int64_t count = 0;
  for (const Value& v : g.values)
    if (v.role == Role::parameter) count += v.type.numel();
  return count;
}

double forward_flops(const Graph& g) {
  double flops = 0;
  for (const Node& n : g.nodes)
    if (n.origin.phase == Phase::forward && n.op->cost)
      flops += n.op->cost(g.input_types(n), g.output_types(n), g.attributes(n)).flops;
  return flops;
}

std::vector<std::pair<std::string, std::string>> default_values(const Model& model) {
  const ModelOptions d = with_defaults(model, {});
  const std::pair<const char*, std::string> all[] = {{"batch", std::to_string(d.batch)}, {"image", std::to_string(d.image)},
                                                     {"seq", std::to_string(d.seq)},     {"layers", std::to_string(d.layers)},
                                                     {"width", std::to_string(d.width)}, {"dtype", d.dtype}};
  std::vector<std::pair<std::string, std::string>> taken;
  for (const std::string& option : model.options)
    for (const auto& [name, value] : all)
      if (option == name) taken.emplace_back(name, value);
  return taken;
}

// By recording one step on a single example, types only.
ModelSummary summary_of(const Model& model) {
  ModelOptions one;
  one.abstract = true;
  if (std::find(model.options.begin(), model.options.end(), "batch") != model.options.end()) one.batch = 1;
  const Graph graph = record_model(model, one).graph;
  return {model, default_values(model), parameters(graph), graph.node_count(), forward_flops(graph)};
}

struct ListOptions {
  bool json = false;
};

std::vector<Option> table(ListOptions& o) { return {json_option(&o.json)}; }

int list_models(const ListOptions& options) {
  const StopAtInterrupt stop;
  if (options.json) {
    std::vector<ModelSummary> summaries;
    for (const Model& m : all_models()) summaries.push_back(summary_of(m));
    answer(models_report(summaries));
  } else {
    for (const Model& m : all_models()) answer(m.name + "\n");
  }
  return kOk;
}

int list_ops(const ListOptions& options) {
  const std::vector<const Op*> ops = all_ops();
  if (options.json) {
    answer(ops_report(ops));
    return kOk;
  }
  std::size_t width = 0;
  for (const Op* op : ops) width = std::max(width, std::strlen(op->name));
  for (const Op* op : ops) answer(fmt::format("{:<{}}  {}\n", op->name, width, op->doc));
  return kOk;
}

int list_settings(const ListOptions& options) {
  const std::vector<SettingDoc>& docs = setting_docs();
  if (options.json) {
    answer(settings_report(docs));
    return kOk;
  }
  for (const SettingDoc& s : docs) answer(fmt::format("{}: {}; default {}\n    {}\n", s.name, s.values, s.fallback, s.meaning));
  return kOk;
}

int list_devices(const ListOptions& options) {
  const kernels::cuda::CudaStatus& cuda = kernels::cuda::cuda_status();
  const std::vector<DeviceLine> devices = {
      {"cpu", true, fmt::format("{} threads", std::thread::hardware_concurrency())},
      {"cuda", cuda.available, cuda.available ? fmt::format("{} devices", cuda.device_count) : cuda.reason}};
  if (options.json)
    answer(devices_report(devices));
  else
    for (const DeviceLine& d : devices)
      answer(fmt::format("{:<6} {}  {}\n", d.name, d.available ? "available" : "absent   ", d.detail));
  return kOk;
}

[[maybe_unused]] const bool models_registered =
    register_command("models", CommandGroup::lists, "List the models that `record` knows; --json adds their options and sizes.",
                     table, list_models);
[[maybe_unused]] const bool ops_registered = register_command(
    "ops", CommandGroup::lists, "List the ops of this build; --json adds everything that an op declares.", table, list_ops);
[[maybe_unused]] const bool settings_registered = register_command(
    "settings", CommandGroup::lists, "List the settings that are read from the environment.", table, list_settings);
[[maybe_unused]] const bool devices_registered =
    register_command("devices", CommandGroup::lists, "List the devices of this machine.", table, list_devices);

}  // namespace

}  // namespace tapedeck::tool
