// record: captures one training step of a model and prints the contents of the capture, as a summary or value by value.
#include <tapedeck/capture/replay/device/open_device.h>
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/missing_file.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/sizes.h>
#include <tapedeck/capture/tool/files/start_values.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <fmt/format.h>

#include <cstdio>

namespace tapedeck::tool {

namespace {

struct RecordOptions {
  std::string model;
  ModelOptions options;
  std::string output;
  bool verbose = false;
  bool json = false;
};

Option size_option(const char* name, std::int64_t* to, const char* help) {
  return {.name = name,
          .metavar = "N",
          .to = to,
          .help = help,
          .group = "Sizes",
          .fallback = "the size of the model",
          .least = 1,
          .most = 4294967296.0};
}

std::vector<Option> size_options(ModelOptions& o) {
  return {size_option("--batch", &o.batch, "Rows in a step."), size_option("--image", &o.image, "Height and width of images."),
          size_option("--seq", &o.seq, "Length of sequences."),
          size_option("--layers", &o.layers, "Number of blocks that the model stacks."),
          size_option("--width", &o.width, "Channels or features of a layer.")};
}

std::vector<Option> other_options(RecordOptions& o) {
  return {
      {.name = "--dtype",
       .metavar = "DTYPE",
       .to = &o.options.dtype,
       .help = "The dtype of the forward pass; f16 and bf16 run it under autocast.",
       .fallback = "the dtype of the model",
       .choices = {"f32", "f16", "bf16"}},
      {.name = "--optimizer",
       .metavar = "NAME",
       .to = &o.options.optimizer,
       .help = "The optimizer.",
       .fallback = "the optimizer of the model",
       .choices = {"sgd", "adamw"}},
      {.name = "--seed", .metavar = "N", .to = &o.options.seed, .help = "The seed of parameters and sample data."},
      {.name = "--weights",
       .metavar = "FILE",
       .to = &o.options.weights,
       .help =
           "The weights before the step: a .tape, a file of `replay --save`, or a safetensors file with PyTorch's names. Every "
           "weight of the model must be there, and nothing else.",
       .fallback = "drawn from the seed",
       .excludes = "--abstract"},
      {.name = "--abstract",
       .to = &o.options.abstract,
       .help = "Record types only: this takes no memory and computes nothing."},
      {.name = "--device",
       .metavar = "DEVICE",
       .to = &o.options.device,
       .help = "Where the step runs while it is recorded: cpu, cuda, or cuda:1. The file is the same, but for the last bits of "
               "results that a GPU rounds in another way, and can be replayed on any device.",
       .excludes = "--abstract"},
      {.name = "--output",
       .letter = 'o',
       .metavar = "FILE.tape",
       .to = &o.output,
       .help = "Write the captured step here.",
       .group = "Output",
       .required = true},
      {.name = "--verbose",
       .letter = 'v',
       .to = &o.verbose,
       .help = "Print every input, state value, constant and output by name.",
       .group = "Output"},
      json_option(&o.json),
  };
}

std::vector<Option> record_table(RecordOptions& o) {
  const Option model = {.name = "MODEL",
                        .to = &o.model,
                        .help = "The name of a model; `tapedeck models` lists them.",
                        .required = true,
                        .words = model_names};
  return joined({{model}, size_options(o.options), other_options(o)});
}

int run_record(const RecordOptions& request) {
  const StopAtInterrupt stop;
  check_outputs({request.options.weights}, {{"-o", request.output}});
  if (!request.options.weights.empty()) require_other_file(request.options.weights);
  open_device(request.options.device);  // throws before anything is made if it is not there
  Captured captured;
  const TapeFile file = record_tape(request.model, request.options, &captured);
  save_tape(request.output, file);
  const CaptureReport& found = captured.report;
  const std::string text = request.json
                               ? record_report(request.output, captured)
                               : fmt::format("wrote {}: {}\n{}{}", request.output, plural(captured.graph.node_count(), "node"),
                                             request.verbose ? found.to_string() : found.summary(),
                                             request.verbose || talk().quiet ? "" : "-v lists every value by name\n");
  answer(text);
  return kOk;
}

[[maybe_unused]] const bool record_registered = register_command(
    "record", CommandGroup::record, "Capture one training step of a model and write it to a .tape file.", record_table,
    run_record, "`tapedeck models --json` lists the sizes that each model takes, and their defaults.");

}  // namespace

}  // namespace tapedeck::tool
