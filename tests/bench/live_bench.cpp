// Measures what a live view costs the program: one small op, and a training step, with the live view off and on in turn.
//
//     live_bench [--rounds 31]
//
// Columns: the median time with the live view off, the median time with it on, and the difference for each call of an op.
// The cost of the hook itself is the column "off", or eager_bench, beside a library without the hook.
#include <tapedeck/tapedeck.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace tapedeck;

struct Net : Module {
  Linear a{*this, "a", 64, 64}, b{*this, "b", 64, 64}, c{*this, "c", 64, 10};
  Tensor operator()(const Tensor& x) { return c(relu(b(relu(a(x))))); }
};

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of[of.size() / 2];
}

void measure(const char* name, int repeats, double calls, const std::string& folder, int rounds,
             const std::function<void()>& work) {
  std::vector<double> off, on;
  const auto run = [&] {
    return seconds_of([&] {
             for (int i = 0; i < repeats; ++i) work();
           }) /
           repeats;
  };
  run();
  for (int round = 0; round < rounds; ++round) {
    off.push_back(run());
    const LiveView view = connect_viewer({.folder = folder});
    run();  // the writer has begun, and the texts are known
    on.push_back(run());
    view.disconnect();
  }
  fmt::print("{:<28} off {:9.3f} us   on {:9.3f} us   {:+.3f} us for each call\n", name, median(off) * 1e6, median(on) * 1e6,
             (median(on) - median(off)) * 1e6 / calls);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc == 3 ? std::max(1, std::atoi(argv[2])) : 31;
  const std::string folder = (std::filesystem::temp_directory_path() / "tapedeck-live-bench").string();
  manual_seed(1);
  const Tensor x = normal({16}), y = normal({16});
  measure("add, f32[16]", 20000, 1, folder, rounds, [&] { (void)add(x, y); });
  Net net;
  Sgd sgd(net.parameters(), {.lr = 0.01});
  const Tensor images = normal({32, 64}), labels = zeros({32}, DType::i32);
  measure("training step, 3 layers of 64", 500, 36, folder, rounds, [&] {
    backward(cross_entropy(net(images), labels));
    sgd.step();
    sgd.zero_grad();
  });
  std::filesystem::remove_all(folder);
}
