// maxbatch: the largest batch of a model, or of a file, that fits into some memory with at most so much recomputation.
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/costs.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/sizes.h>
#include <tapedeck/capture/tool/files/start_values.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/capture/planner/largest_batch.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/model_registry.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace tapedeck::tool {

namespace {

constexpr std::int64_t kMostModelBatch = 1 << 24;

struct MaxbatchOptions {
  std::string subject;
  std::string memory, fixed;
  double cost_limit = 1.33;
  std::int64_t batch = 0;   // of a file; 0: not given
  std::int64_t align = -1;  // -1: the alignment of the device
  std::string costs;
  bool json = false;
};

std::vector<Option> maxbatch_table(MaxbatchOptions& o) {
  return {
      {.name = "MODEL|FILE",
       .to = &o.subject,
       .help = "A model of the list `tapedeck models`, or a .tape or .graph.",
       .required = true,
       .words = model_names},
      {.name = "--memory", .metavar = "SIZE", .to = &o.memory, .help = "What a step may hold: 16GB, 8GiB.", .required = true},
      {.name = "--cost-limit",
       .metavar = "RATIO",
       .to = &o.cost_limit,
       .help = "The most that a step may cost, as a multiple of keeping everything.",
       .fallback = "1.33",
       .least = 1,
       .most = 1e6},
      {.name = "--fixed",
       .metavar = "SIZE",
       .to = &o.fixed,
       .help = "Bytes of the memory that something else takes, whatever the batch."},
      {.name = "--batch",
       .metavar = "N",
       .to = &o.batch,
       .help = "The batch that the file was recorded with. Its bytes and microseconds are taken to grow with the batch.",
       .least = 1,
       .most = 1e12},
      align_option(&o.align),
      costs_option(&o.costs),
      json_option(&o.json),
  };
}

BatchQuestion question_of(const MaxbatchOptions& options) {
  BatchQuestion question;
  question.memory = parse_size(options.memory);
  question.fixed = options.fixed.empty() ? 0 : parse_size(options.fixed);
  question.cost_limit = options.cost_limit;
  return question;
}

PlanOptions plan_options(const MaxbatchOptions& options, const TapeFile& file) {
  PlanOptions how;
  how.alignment = options.align;
  how.costs = choose_costs(options.costs, file);
  how.cancel = &interrupted();
  return how;
}

LargestBatch of_file(const MaxbatchOptions& options, const BatchQuestion& question) {
  if (options.batch < 1)
    throw UsageError(fmt::format("maxbatch: --batch is missing, the batch that {} was recorded with", options.subject));
  const TapeFile file = load_any(options.subject, Check::structure);
  PlanOptions how = plan_options(options, file);
  Progress progress("searching");
  how.progress = [&](double fraction) { progress.at(fraction); };
  return largest_batch(file.captured, options.batch, question, how);
}

// Every batch that is tried is recorded and planned. The first one is what the model's default batch lets expect.
class ModelBatches {
 public:
  ModelBatches(const MaxbatchOptions& options, const BatchQuestion& question)
      : options_(options), question_(question), model_(*find_model(options.subject)) {
    const auto takes = std::find(model_.options.begin(), model_.options.end(), "batch");
    if (takes == model_.options.end()) throw UsageError(fmt::format("the model {} has no batch", model_.name));
  }

  LargestBatch find() {
    const std::int64_t batch = std::max<std::int64_t>(model_.defaults.batch, 1);
    const TapeFile file = record(batch);
    const LargestBatch expected = largest_batch(file.captured, batch, question_, plan_options(options_, file));
    LargestBatch found = largest_batch(std::max<std::int64_t>(expected.best.batch, 1), kMostModelBatch,
                                       [&](std::int64_t rows) { return ask(rows); });
    found.keep_all_batch = -1;
    return found;
  }

 private:
  TapeFile record(std::int64_t batch) {
    ModelOptions sizes;
    sizes.batch = batch;
    sizes.abstract = true;
    Captured recording;
    return record_tape(model_.name, sizes, &recording);
  }

  BatchPoint ask(std::int64_t batch) {
    Progress progress(fmt::format("planning a batch of {}", batch));
    const TapeFile file = record(batch);
    PlanOptions how = plan_options(options_, file);
    how.progress = [&](double fraction) { progress.at(fraction); };
    how.budget = std::max<std::int64_t>(question_.memory - question_.fixed, 0);
    return batch_point(batch, make_plan(file.captured, how), question_);
  }

  const MaxbatchOptions& options_;
  BatchQuestion question_;
  const Model& model_;
};

std::string summary(const std::string& subject, const BatchQuestion& question, const LargestBatch& found) {
  std::string text = fmt::format("{}: batch {}\n", subject, found.best.batch);
  const auto line = [&](const char* name, const std::string& value) { text += fmt::format("  {:<16} {}\n", name, value); };
  line("memory", human_size(question.memory));
  if (found.best.batch > 0) {
    line("peak", human_size(found.best.peak_bytes));
    line("cost", fmt::format("x{:.4f} of keep-all, the limit is x{:.4f}", found.best.cost_ratio, question.cost_limit));
  }
  if (found.keep_all_batch >= 0) line("keep-all batch", fmt::format("{}", found.keep_all_batch));
  line("one more", fmt::format("batch {}: {}", found.next.batch, found.next.obstacle));
  return text;
}

int run_maxbatch(const MaxbatchOptions& options) {
  const BatchQuestion question = question_of(options);
  const StopAtInterrupt stop;
  const LargestBatch found = names_model(options.subject) ? ModelBatches(options, question).find() : of_file(options, question);
  answer(options.json ? maxbatch_report(options.subject, question, found) : summary(options.subject, question, found));
  finish_answer();
  if (found.best.batch == 0) std::fprintf(stderr, "tapedeck: not even a batch of 1 fits: %s\n", found.next.obstacle.c_str());
  return found.best.batch > 0 ? kOk : kInfeasible;
}

[[maybe_unused]] const bool maxbatch_registered = register_command(
    "maxbatch", CommandGroup::plan, "Find the largest batch that fits into some memory, with at most so much recomputation.",
    maxbatch_table, run_maxbatch,
    "A model is recorded and planned at every batch that is tried. Of a file, whose batch you name, everything but state and\n"
    "constants is taken to grow linearly.\n");

}  // namespace

}  // namespace tapedeck::tool
