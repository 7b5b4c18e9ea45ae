// The JSON of the commands whose answers are short: info, record, gradient, print, verify and the lists.
#include <tapedeck/capture/tool/reports/json_parts.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/capture/file/tape_file.h>

namespace tapedeck::tool {

namespace {

Json value_json(const Graph& g, ValueId v) {
  const Value& value = g.values[v];
  return {{"name", g.value_name(v)},
          {"type", to_string(value.type)},
          {"bytes", value.type.bytes()},
          {"role", role_name(value.role)}};
}

Json items_json(const std::vector<CaptureReport::Item>& items) {
  Json list = Json::array();
  for (const CaptureReport::Item& i : items)
    list.push_back({{"name", i.name}, {"type", to_string(i.type)}, {"bytes", i.type.bytes()}, {"detail", i.detail}});
  return list;
}

void add_summary(const GraphSummary& s, Json* j) {
  (*j)["parameters"] = s.parameters;
  (*j)["parameter_bytes"] = s.parameter_bytes;
  (*j)["flops"] = s.flops;
  (*j)["flops_per_pass"] = s.flops_per_pass;
  (*j)["phases"] = Json::array();
  for (const PhaseCount& phase : s.phases)
    (*j)["phases"].push_back({{"phase", phase_name(phase.phase)}, {"nodes", phase.nodes}, {"flops", phase.flops}});
  (*j)["ops"] = Json::array();
  for (const OpCount& op : s.ops)
    (*j)["ops"].push_back({{"op", op.name}, {"nodes", op.nodes}, {"flops", op.flops}, {"version", op.version}});
}

}  // namespace

std::string error_report(const std::string& command, const Failure& failure) {
  Json j;
  j["schema"] = "tapedeck.error/1";
  j["command"] = command.empty() ? Json(nullptr) : Json(command);
  j["code"] = failure.code;
  j["message"] = failure.message;
  j["kind"] = failure.kind.empty() ? Json(nullptr) : Json(failure.kind);
  j["file"] = failure.file.empty() ? Json(nullptr) : Json(failure.file);
  j["line"] = failure.line > 0 ? Json(failure.line) : Json(nullptr);
  if (const auto& e = failure.infeasible) j["infeasible"] = infeasible_json(*e);
  return text_of(j);
}

Json infeasible_json(const InfeasiblePlanError& e) {
  return {{"budget_bytes", e.budget_bytes()},
          {"floor_bytes", e.floor_bytes()},
          {"keep_all_peak_bytes", e.keep_all_peak_bytes()},
          {"node", e.node()},
          {"op", e.node_op()},
          {"live_bytes", e.node_bytes()}};
}

std::string info_report(const std::string& path, const TapeFile& file, const DimTable& dims, const GraphSummary& summary) {
  const Graph& g = file.captured;
  Json j;
  j["schema"] = "tapedeck.info/1";
  j["file"] = path;
  j["graph"] = g.name.str();
  j["nodes"] = g.node_count();
  j["values"] = g.value_count();
  j["metadata"] = Json::object();
  for (const auto& [key, value] : file.metadata) j["metadata"][key] = value;
  add_summary(summary, &j);
  j["dims"] = dims.empty() ? Json(nullptr) : Json(dims_text(dims));
  j["versions"] = {{"tapedeck", TAPEDECK_VERSION}, {"tape_format", tape_file::kFormat}};
  Json inputs = Json::array(), state = Json::array(), outputs = Json::array();
  for (ValueId v = 0; v < g.n_inputs; ++v) {
    Json i = value_json(g, v);
    i["sample"] = file.inputs.count(g.value_name(v)) > 0;
    inputs.push_back(i);
  }
  for (ValueId v = g.n_inputs; v < g.n_inputs + g.n_state; ++v) {
    Json s = value_json(g, v);
    s["stored"] = file.state.count(g.value_name(v)) > 0;
    state.push_back(s);
  }
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    Json o = value_json(g, g.outputs[i]);
    if (i < g.output_names.size() && !g.output_names[i].empty()) o["name"] = g.output_names[i].str();
    outputs.push_back(o);
  }
  j["inputs"] = inputs;
  j["state"] = state;
  j["outputs"] = outputs;
  j["plan"] = file.plan ? plan_json(*file.plan) : Json(nullptr);
  j["profile"] = nullptr;
  if (file.profile)
    j["profile"] = {{"machine", file.profile->machine},       {"threads", file.profile->threads},
                    {"steps", file.profile->steps},           {"run_us", file.profile->run_us},
                    {"peak_bytes", file.profile->peak_bytes}, {"nodes", file.profile->nodes.size()}};
  return text_of(j);
}

std::string record_report(const std::string& path, const Captured& c) {
  Json j;
  j["schema"] = "tapedeck.record/1";
  j["file"] = path;
  j["graph"] = c.graph.name.str();
  j["nodes"] = c.graph.node_count();
  j["inputs"] = c.report.inputs.size();
  j["state"] = c.report.state.size();
  j["constants"] = c.report.constants.size();
  j["found"] = {{"inputs", items_json(c.report.inputs)},
                {"state", items_json(c.report.state)},
                {"updated", c.report.mutated},
                {"constants", items_json(c.report.constants)},
                {"random", items_json(c.report.random)},
                {"host_calls", items_json(c.report.host_calls)},
                {"outputs", items_json(c.report.outputs)},
                {"gradients", items_json(c.report.gradients)}};
  return text_of(j);
}

std::string gradient_report(const Graph& graph, NodeId nodes_before, const std::vector<std::string>& wrt,
                            const std::vector<ValueId>& gradients, const std::string& text) {
  Json list = Json::array();
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    Json one = value_json(graph, gradients[i]);
    one["of"] = wrt[i];
    list.push_back(std::move(one));
  }
  return text_of({{"schema", "tapedeck.gradient/1"},
                  {"nodes_before", nodes_before},
                  {"nodes", graph.node_count()},
                  {"gradients", list},
                  {"text", text}});
}

std::string print_report(const std::string& text) { return text_of({{"schema", "tapedeck.print/1"}, {"text", text}}); }

std::string export_report(const std::string& format, const Graph& graph, const std::string& path, const std::string& text) {
  return text_of({{"schema", "tapedeck.export/1"},
                  {"format", format},
                  {"graph", graph.name.str()},
                  {"nodes", graph.node_count()},
                  {"file", path.empty() ? Json(nullptr) : Json(path)},
                  {"text", path.empty() ? Json(text) : Json(nullptr)}});
}

std::string export_onnx_report(const Graph& graph, const std::string& path, const OnnxExport& result) {
  return text_of({{"schema", "tapedeck.export/1"},
                  {"format", "onnx"},
                  {"graph", graph.name.str()},
                  {"nodes", graph.node_count()},
                  {"model_nodes", result.nodes},
                  {"bytes", result.bytes},
                  {"file", path},
                  {"text", nullptr}});
}

std::string new_report(const std::string& project, const std::string& folder, const std::vector<std::string>& files) {
  return text_of({{"schema", "tapedeck.new/1"}, {"project", project}, {"folder", folder}, {"files", files}});
}

std::string verify_report(const std::string& path, const std::vector<std::string>& problems) {
  return text_of({{"schema", "tapedeck.verify/1"}, {"file", path}, {"ok", problems.empty()}, {"problems", problems}});
}

std::string models_report(const std::vector<ModelSummary>& models) {
  Json list = Json::array();
  for (const ModelSummary& m : models) {
    Json defaults = Json::object();
    for (const auto& [name, value] : m.defaults) defaults[name] = value;
    list.push_back({{"name", m.model.name},
                    {"doc", m.model.doc},
                    {"options", m.model.options},
                    {"defaults", defaults},
                    {"parameters", m.parameters},
                    {"nodes", m.nodes},
                    {"flops", m.flops}});
  }
  return text_of({{"schema", "tapedeck.models/1"}, {"models", list}});
}

std::string settings_report(const std::vector<SettingDoc>& settings) {
  Json list = Json::array();
  for (const SettingDoc& s : settings)
    list.push_back({{"name", s.name}, {"values", s.values}, {"default", s.fallback}, {"doc", s.meaning}});
  return text_of({{"schema", "tapedeck.settings/1"}, {"settings", list}});
}

std::string devices_report(const std::vector<DeviceLine>& devices, const std::vector<LibraryLine>& libraries) {
  Json list = Json::array();
  for (const DeviceLine& d : devices) {
    Json line = {{"name", d.name}, {"available", d.available}, {"detail", d.detail}};
    if (d.gpu)
      line.update({{"memory_bytes", d.gpu->memory_bytes},
                   {"sm", d.gpu->sm},
                   {"multiprocessors", d.gpu->multiprocessors},
                   {"driver_version", d.gpu->driver_version},
                   {"runtime_version", d.gpu->runtime_version}});
    list.push_back(line);
  }
  Json found = Json::array();
  for (const LibraryLine& l : libraries) found.push_back({{"name", l.name}, {"found", l.found}, {"why", l.why}});
  return text_of({{"schema", "tapedeck.devices/1"}, {"devices", list}, {"libraries", found}});
}

}  // namespace tapedeck::tool
