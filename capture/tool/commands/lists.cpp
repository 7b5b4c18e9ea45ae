// models, ops, settings and devices: lists of what this build contains. Without --json a list has one line for each entry.
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/graph_summary.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/engine/eager/settings.h>
#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/cuda/dnn_api.h>
#include <tapedeck/kernels/cuda/lt_api.h>
#include <tapedeck/kernels/cuda/rtc_api.h>
#include <tapedeck/kernels/cuda/runtime.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

namespace tapedeck::tool {

namespace {

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
  const GraphSummary summary = summarize(graph);
  return {model, default_values(model), summary.parameters, graph.node_count(), summary.flops_of(Phase::forward)};
}

// "batch 8, image 224": the sizes by default.
std::string sizes_text(const ModelSummary& m) {
  std::string text;
  for (const auto& [name, value] : m.defaults)
    if (name != "dtype") text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  return text;
}

std::string models_table(const std::vector<ModelSummary>& models) {
  std::size_t width = 5, sizes = 5;
  for (const ModelSummary& m : models) {
    width = std::max(width, m.model.name.size());
    sizes = std::max(sizes, sizes_text(m).size());
  }
  std::string text =
      fmt::format("{:<{}}  {:>12}  {:>13}  {:>6}  {}\n", "model", width, "parameters", "forward", "nodes", "sizes");
  for (const ModelSummary& m : models)
    text += fmt::format("{:<{}}  {:>12}  {:>13}  {:>6}  {:<{}}  {}\n", m.model.name, width, grouped(m.parameters),
                        flops_text(m.flops), m.nodes, sizes_text(m), sizes, m.model.doc);
  return text;
}

struct ListOptions {
  bool json = false;
};

std::vector<Option> lists_table(ListOptions& o) { return {json_option(&o.json)}; }
std::vector<Option> models_options(ListOptions& o) {
  return {json_option(&o.json), quiet_option(" Only the names, one a line.")};
}

int list_models(const ListOptions& options) {
  const StopAtInterrupt stop;
  if (talk().quiet && !options.json) {
    for (const Model& m : all_models()) answer(m.name + "\n");
    return kOk;
  }
  std::vector<ModelSummary> summaries;
  {
    Progress progress("recording every model");
    const std::vector<Model> models = all_models();
    for (const Model& m : models) {
      progress.at(static_cast<double>(summaries.size()) / static_cast<double>(models.size()));
      summaries.push_back(summary_of(m));
    }
  }
  answer(options.json ? models_report(summaries) : models_table(summaries));
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

DeviceLine gpu_line(int device) {
  DeviceLine line{fmt::format("cuda:{}", device), false, {}, {}};
  kernels::cuda::DeviceProperties p;
  if (const char* error = kernels::cuda::device_properties(device, &p)) {
    line.detail = error;
    return line;
  }
  const auto version = [](int v) { return fmt::format("{}.{}", v / 1000, v % 1000 / 10); };
  line.available = true;
  line.detail = fmt::format("{}, {:.1f} GiB, sm_{}, {} multiprocessors, driver {}, runtime {}", p.name,
                            static_cast<double>(p.memory_bytes) / (1 << 30), p.sm, p.multiprocessors, version(p.driver_version),
                            version(p.runtime_version));
  line.gpu = p;
  return line;
}

// Looks for libraries only where a GPU can use them: they are large.
std::vector<LibraryLine> libraries_of_gpu() {
  std::string lt, dnn, rtc;
  const bool has_lt = kernels::cuda::lt_api(&lt), has_dnn = kernels::cuda::dnn_api(&dnn),
             has_rtc = kernels::cuda::rtc_api(&rtc);
  return {{"cuBLASLt", has_lt, lt}, {"cuDNN", has_dnn, dnn}, {"NVRTC", has_rtc, rtc}};
}

int list_devices(const ListOptions& options) {
  const kernels::cuda::CudaStatus& cuda = kernels::cuda::cuda_status();
  std::vector<DeviceLine> devices = {{"cpu", true, fmt::format("{} threads", std::thread::hardware_concurrency())}};
  for (int d = 0; d < cuda.device_count; ++d) devices.push_back(gpu_line(d));
  if (!cuda.available) devices.push_back({"cuda", false, cuda.reason});
  const std::vector<LibraryLine> libraries = cuda.available ? libraries_of_gpu() : std::vector<LibraryLine>();
  if (options.json) {
    answer(devices_report(devices, libraries));
    return kOk;
  }
  for (const DeviceLine& d : devices)
    answer(fmt::format("{:<8} {}  {}\n", d.name, d.available ? "available" : "absent   ", d.detail));
  for (const LibraryLine& l : libraries)
    answer(fmt::format("{:<8} {}  {}\n", l.name, l.found ? "available" : "absent   ", l.found ? "" : l.why));
  return kOk;
}

[[maybe_unused]] const bool models_registered =
    register_command("models", CommandGroup::lists, "List the models that `record` knows: parameters, FLOPs, nodes and sizes.",
                     models_options, list_models,
                     "Parameters, FLOPs of the forward pass and nodes of a training step are those of one example at the sizes "
                     "that are\nshown, which are the defaults of `record`.");
[[maybe_unused]] const bool ops_registered =
    register_command("ops", CommandGroup::lists, "List the ops of this build; --json adds everything that an op declares.",
                     lists_table, list_ops);
[[maybe_unused]] const bool settings_registered = register_command(
    "settings", CommandGroup::lists, "List the settings that are read from the environment.", lists_table, list_settings);
[[maybe_unused]] const bool devices_registered =
    register_command("devices", CommandGroup::lists, "List the devices of this machine.", lists_table, list_devices);

}  // namespace

}  // namespace tapedeck::tool
