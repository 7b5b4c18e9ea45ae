// The main job of the library, from eager training to a replay under a budget.
//
//   train eagerly --> capture one step while it runs --> plan it twice: keep everything | half the memory
//                                                             replay both, compare with eager bit for bit
//
// Usage: 01_digits [--data digits.csv.gz] [--out DIR] [--epochs N] [--seed N] [--verbose]
// Prints a summary of the capture; with --verbose (-v) every value by name.
// Writes DIR/digits.tape (the step with its budgeted plan) and DIR/digits_keep_all.tape.
#include <tapedeck/samples/data/digits.h>
#include <tapedeck/samples/zoo/digits_net.h>
#include <tapedeck/tapedeck.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

using namespace tapedeck;
using samples::Digits;
using samples::kPixels;
using samples::kSide;
using zoo::DigitsNet;
using zoo::train_step;

namespace {

constexpr int kTestRows = 360, kBatch = 64, kCompareSteps = 20;

// ---- data ----

// Shifts an image by (dx, dy) pixels; zeros fill the free edge.
void shifted(const float* from, int dx, int dy, float* to) {
  for (int y = 0; y < kSide; ++y)
    for (int x = 0; x < kSide; ++x) {
      const int sx = x - dx, sy = y - dy;
      to[y * kSide + x] = sx >= 0 && sx < kSide && sy >= 0 && sy < kSide ? from[sy * kSide + sx] : 0.0f;
    }
}

struct Batch {
  Tensor x, y;
};

Batch make_batch(const Digits& d, const std::vector<int>& rows, std::mt19937* shifts) {
  std::vector<float> x(rows.size() * kPixels);
  std::vector<std::int32_t> y;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const float* from = d.pixels.data() + static_cast<std::size_t>(rows[i]) * kPixels;
    const int dx = shifts ? static_cast<int>((*shifts)() % 3) - 1 : 0, dy = shifts ? static_cast<int>((*shifts)() % 3) - 1 : 0;
    shifted(from, dx, dy, x.data() + i * kPixels);
    y.push_back(d.labels[rows[i]]);
  }
  const auto n = static_cast<std::int64_t>(rows.size());
  return {from_vector(x, {n, 1, kSide, kSide}), from_vector(y, {n})};
}

// ---- training ----

void train(DigitsNet& net, Optimizer& optimizer, const Digits& d, int epochs, std::mt19937& random) {
  std::vector<int> order(static_cast<std::size_t>(d.rows() - kTestRows));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    if (epoch == epochs * 3 / 4) optimizer.set_lr(2e-4);
    for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
    double total = 0;
    int steps = 0;
    for (std::size_t at = 0; at + kBatch <= order.size(); at += kBatch, ++steps) {
      const std::vector<int> rows(order.begin() + static_cast<std::ptrdiff_t>(at),
                                  order.begin() + static_cast<std::ptrdiff_t>(at + kBatch));
      const Batch b = make_batch(d, rows, &random);
      total += train_step(net, optimizer, b.x, b.y).item();
    }
    if ((epoch + 1) % 5 == 0) std::fprintf(stderr, "epoch %2d  loss %.4f\n", epoch + 1, total / steps);
  }
}

double test_accuracy(DigitsNet& net, const Digits& d) {
  const NoGrad no_grad;
  net.train(false);
  std::vector<int> rows;
  for (int r = d.rows() - kTestRows; r < d.rows(); ++r) rows.push_back(r);
  const Batch b = make_batch(d, rows, nullptr);
  const std::vector<std::int64_t> guess = argmax(net(b.x)).to_vector<std::int64_t>();
  net.train(true);
  int right = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) right += guess[i] == d.labels[rows[i]];
  return 100.0 * right / kTestRows;
}

// ---- replay ----

// Runs a step and notes how long it took.
template <class Step>
void timed(Step step, std::vector<double>* ms) {
  const auto begin = std::chrono::steady_clock::now();
  step();
  ms->push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
}

double median(std::vector<double> ms) {
  std::sort(ms.begin(), ms.end());
  return ms[ms.size() / 2];
}

// Copies of the tensors, which later training does not change.
std::vector<Tensor> snapshot(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& t : tensors) copies.push_back(from_bytes(t.type(), t.data()));
  return copies;
}

// The replay of one plan, from a given state.
class Replay {
 public:
  Replay(const char* name, const Captured& step, const Plan& plan, const std::vector<Tensor>& start)
      : name_(name), plan_(plan), executor_(plan), names_(executor_.state_names()) {
    for (std::size_t i = 0; i < names_.size(); ++i) executor_.set_state(names_[i], start[i]);
    for (std::size_t i = 0; i < step.inputs.size(); ++i) executor_.set_input(static_cast<int>(i), step.inputs[i]);
  }

  void run(const Batch& batch) {
    const auto step = [&] {
      executor_.set_input("x", batch.x);
      executor_.set_input("y", batch.y);
      executor_.run();
    };
    timed(step, &ms_);
  }

  bool ends_as(const std::vector<Tensor>& expected) const {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (!bit_equal(executor_.state(names_[i]), expected[i])) return false;
    return true;
  }
  bool keeps_its_peak() const { return plan_.peak_bytes == executor_.observed_peak_bytes(); }

  void print(bool equal) const {
    std::printf("%-14s %11.2f KiB %10.2f KiB %6d %10d %10.2f %15s\n", name_, static_cast<double>(plan_.peak_bytes) / 1024,
                static_cast<double>(executor_.observed_peak_bytes()) / 1024, plan_.nodes, plan_.recomputed_nodes, median(ms_),
                equal ? "yes" : "NO");
  }

 private:
  const char* name_;
  const Plan& plan_;
  Executor executor_;
  std::vector<std::string> names_;
  std::vector<double> ms_;
};

int run(const std::string& data, const std::string& out, int epochs, unsigned seed, bool verbose) {
  std::filesystem::create_directories(out);
  const Digits d = samples::load_digits(data, kTestRows);
  manual_seed(seed);
  std::mt19937 random(seed);
  DigitsNet net;
  AdamW optimizer(net.parameters(), {.lr = 2e-3});
  train(net, optimizer, d, epochs, random);
  std::printf("test accuracy: %.1f %%\n", test_accuracy(net, d));

  // Capture one more step while it runs eagerly.
  std::vector<int> rows(kBatch);
  for (int& r : rows) r = static_cast<int>(random() % static_cast<unsigned>(d.rows() - kTestRows));
  const Batch sample = make_batch(d, rows, &random);
  Capture capture("digits");
  const Tensor x = capture.input("x", sample.x), y = capture.input("y", sample.y);
  capture.output("loss", train_step(net, optimizer, x, y));
  const Captured step = capture.finish();
  std::printf("\ncaptured one step while it ran: %d nodes\n%s\n", step.graph.node_count(),
              (verbose ? step.report.to_string() : step.report.summary()).c_str());

  // Make two plans: one keeps everything, the other has half the memory for the arena.
  const Plan keep_all = make_plan(step.graph, {.strategy = Strategy::none});
  const std::int64_t held = keep_all.external_bytes;
  const Plan budgeted = make_plan(step.graph, {.budget = held + (keep_all.peak_bytes - held) / 2});
  if (!budgeted.feasible) throw InfeasiblePlanError("plan", budgeted);

  // Run twenty more steps three times from the same state, in turns: eagerly, and by the replays of both plans.
  const std::vector<Tensor> start = snapshot(step.state);
  std::vector<Batch> batches;
  for (int i = 0; i < kCompareSteps; ++i) {
    for (int& r : rows) r = static_cast<int>(random() % static_cast<unsigned>(d.rows() - kTestRows));
    batches.push_back(make_batch(d, rows, &random));
  }
  Replay all("keep all", step, keep_all, start), half("half", step, budgeted, start);
  std::vector<double> eager_ms;
  for (const Batch& b : batches) {
    timed([&] { train_step(net, optimizer, b.x, b.y); }, &eager_ms);
    all.run(b);
    half.run(b);
  }
  const std::vector<Tensor> expected = snapshot(step.state);
  const bool all_equal = all.ends_as(expected), half_equal = half.ends_as(expected);

  std::printf("%-14s %15s %14s %6s %10s %10s %15s\n", "plan", "planned peak", "observed peak", "nodes", "recomputed",
              "median ms", "equal to eager");
  std::printf("%-14s %15s %14s %6d %10s %10.2f %15s\n", "(eager)", "", "", step.graph.node_count(), "", median(eager_ms), "");
  all.print(all_equal);
  half.print(half_equal);
  std::printf("budget of the second plan: %.2f KiB = %.2f KiB always held + half of the rest\n",
              static_cast<double>(budgeted.budget_bytes) / 1024, static_cast<double>(held) / 1024);

  // The file holds the state from before the twenty steps, so that a replay of it repeats them.
  TapeFile file = tape_of(step, {{"model", "digits"}, {"batch", std::to_string(kBatch)}, {"optimizer", "adamw"}});
  for (std::size_t i = 0; i < start.size(); ++i)
    file.state[step.graph.values[static_cast<std::size_t>(step.graph.n_inputs) + i].name.str()] = start[i];
  file.plan = keep_all;
  save_tape(out + "/digits_keep_all.tape", file);
  file.plan = budgeted;
  save_tape(out + "/digits.tape", file);
  std::printf("wrote %s/digits.tape\n", out.c_str());
  const bool good = all_equal && half_equal && all.keeps_its_peak() && half.keeps_its_peak();
  if (!good) std::fprintf(stderr, "replay and eager differ\n");
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string data = TAPEDECK_SOURCE_DIR "/samples/data/digits.csv.gz", out = TAPEDECK_BINARY_DIR;
  int epochs = 40;
  unsigned seed = 7;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (!std::strcmp(argv[i], "--data") && more)
      data = argv[++i];
    else if (!std::strcmp(argv[i], "--out") && more)
      out = argv[++i];
    else if (!std::strcmp(argv[i], "--epochs") && more && std::atoi(argv[i + 1]) > 0)
      epochs = std::atoi(argv[++i]);
    else if (!std::strcmp(argv[i], "--seed") && more)
      seed = static_cast<unsigned>(std::strtoul(argv[++i], nullptr, 10));
    else if (!std::strcmp(argv[i], "-v") || !std::strcmp(argv[i], "--verbose"))
      verbose = true;
    else {
      std::fprintf(stderr, "usage: 01_digits [--data digits.csv.gz] [--out DIR] [--epochs N] [--seed N] [--verbose]\n");
      return 2;
    }
  }
  try {
    return run(data, out, epochs, seed, verbose);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "01_digits: %s\n", e.what());
    return 5;
  }
}
