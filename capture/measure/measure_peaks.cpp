// Runs each loop in rounds on a team of threads that begin every round together, and keeps the fastest round.
#include <tapedeck/capture/measure/measure_peaks.h>

#include <tapedeck/capture/measure/caches.h>
#include <tapedeck/capture/measure/peak_loops.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/kernels/thread_limit.h>

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

namespace tapedeck {

namespace {

using Clock = std::chrono::steady_clock;

struct PeakEffort {
  int rounds;
  int memory_rounds;        // of passes over memory
  std::int64_t near_bytes;  // that one round moves in a cache
  int caches;               // the arrays in memory are so many times as large as the last cache
  std::int64_t fused_rounds;
  std::int64_t product;  // the size of the matrices
};

// Rounds are short, so that on a busy machine some of them are not disturbed.
PeakEffort peak_effort_of(bool quick) {
  return quick ? PeakEffort{5, 3, 4 << 20, 2, 100'000, 256} : PeakEffort{20, 8, 32 << 20, 4, 400'000, 512};
}

// ---- rounds ----

using Span = std::pair<Clock::time_point, Clock::time_point>;

double seconds_of_round(const std::vector<std::vector<Span>>& spans, std::size_t round) {
  Clock::time_point begin = Clock::time_point::max(), end = Clock::time_point::min();
  for (const std::vector<Span>& of_thread : spans) {
    begin = std::min(begin, of_thread[round].first);
    end = std::max(end, of_thread[round].second);
  }
  return std::chrono::duration<double>(end - begin).count();
}

// Calls work(thread) on so many threads at once, round after round. Returns the seconds of the fastest round.
template <class F>
double fastest_round(int threads, int rounds, const F& work) {
  std::vector<std::vector<Span>> spans(static_cast<std::size_t>(threads), std::vector<Span>(static_cast<std::size_t>(rounds)));
  std::barrier start(threads);
  const auto run = [&](int thread) {
    for (Span& span : spans[static_cast<std::size_t>(thread)]) {
      start.arrive_and_wait();
      span.first = Clock::now();
      work(thread);
      span.second = Clock::now();
    }
  };
  {
    std::vector<std::jthread> team;
    try {
      for (int t = 1; t < threads; ++t) team.emplace_back(run, t);
    } catch (const std::system_error&) {
      for (int t = static_cast<int>(team.size()); t < threads; ++t) start.arrive_and_drop();  // the others must not wait
      throw;
    }
    run(0);
  }
  double least = std::numeric_limits<double>::infinity();
  for (int r = 0; r < rounds; ++r) least = std::min(least, seconds_of_round(spans, static_cast<std::size_t>(r)));
  return std::max(least, 1e-9);
}

// ---- arrays ----

struct Free {
  void operator()(void* block) const { std::free(block); }
};

// An array for each thread, all of its pages in memory. The size is rounded down to whole steps of the loops, in both halves.
class Arrays {
 public:
  Arrays(int threads, std::int64_t bytes) : bytes_(std::max(bytes / (2 * kPeakLoopStep), std::int64_t{1}) * 2 * kPeakLoopStep) {
    for (int t = 0; t < threads; ++t) {
      blocks_.emplace_back(static_cast<std::byte*>(std::aligned_alloc(64, static_cast<std::size_t>(bytes_))));
      if (!blocks_.back()) throw std::bad_alloc();
      std::memset(blocks_.back().get(), t + 1, static_cast<std::size_t>(bytes_));
    }
  }
  std::byte* of(int thread) const { return blocks_[static_cast<std::size_t>(thread)].get(); }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_;
  std::vector<std::unique_ptr<std::byte, Free>> blocks_;
};

// The compiler must take it that the bytes are read and written here.
void touch(void* bytes) { asm volatile("" : : "r"(bytes) : "memory"); }

// ---- one number of threads ----

constexpr double kStagesBesideLevels = 3;  // registers, the product, and the product of halves

class PeakMeter {
 public:
  PeakMeter(const PeakOptions& options, std::function<void()> done)
      : options_(options), effort_(peak_effort_of(options.quick)), done_(std::move(done)) {}

  ThreadPeaks run(int threads) {
    ThreadPeaks peaks;
    peaks.threads = threads;
    const double fused = fused_rate(threads);
    peaks.matmul_gflop_per_s = product_rate(threads, DType::f32);
    peaks.gflop_per_s = std::max(fused, peaks.matmul_gflop_per_s);
    peaks.half_gflop_per_s = std::max(peaks.gflop_per_s, product_rate(threads, DType::bf16));
    peaks.levels = memory_levels(threads);
    for (std::size_t i = 0; i < peaks.levels.size(); ++i) peaks.levels[i].gb_per_s = level_rate(peaks.levels, i, threads);
    return peaks;
  }

 private:
  void stage_done() {
    done_();
    heed();
  }

  void heed() const {
    if (options_.cancel && *options_.cancel) throw Cancelled("interrupted");
  }

  double fused_rate(int threads) {
    heed();
    double best = 0;
    for (const PeakLoops& loops : loops_) {
      std::vector<float> sums(static_cast<std::size_t>(threads));
      const double seconds = fastest_round(threads, effort_.rounds, [&](int t) {
        sums[static_cast<std::size_t>(t)] = loops.fused(effort_.fused_rounds);
        touch(sums.data());
      });
      best = std::max(best, threads * loops.flops_per_round * static_cast<double>(effort_.fused_rounds) / seconds / 1e9);
    }
    stage_done();
    return best;
  }

  // The first product also sets the library up. The loops of the kernel share the threads.
  double product_rate(int threads, DType dtype) {
    const std::int64_t n = effort_.product;
    const Tensor a = cast(ones({n, n}), dtype), b = cast(ones({n, n}), dtype);
    double least = std::numeric_limits<double>::infinity();
    kernels::run_on_threads(threads, [&] {
      for (int round = 0; round <= effort_.rounds; ++round) {
        const Clock::time_point begin = Clock::now();
        const Tensor product = matmul(a, b);
        least = std::min(least, std::chrono::duration<double>(Clock::now() - begin).count());
      }
    });
    stage_done();
    return 2.0 * static_cast<double>(n * n * n) / std::max(least, 1e-9) / 1e9;
  }

  double level_rate(const std::vector<LevelRate>& levels, std::size_t level, int threads) {
    const bool memory = level + 1 == levels.size();
    const Arrays arrays(threads, (memory ? far_bytes(levels) : levels[level].bytes / 2) / threads);
    const std::int64_t passes = memory ? 1 : std::max<std::int64_t>(1, effort_.near_bytes / arrays.bytes());
    const int rounds = memory ? effort_.memory_rounds : effort_.rounds;
    const double best = std::max({read_rate(arrays, threads, passes, rounds), copy_rate(arrays, threads, passes, rounds),
                                  update_rate(arrays, threads, passes, rounds)});
    stage_done();
    return best;
  }

  std::int64_t far_bytes(const std::vector<LevelRate>& levels) const {
    constexpr std::int64_t kLeast = 64 << 20, kMost = std::int64_t{1} << 30;
    return std::clamp(effort_.caches * levels[levels.size() - 2].bytes, kLeast, kMost);
  }

  // `moved` bytes by each thread in each of the passes, in 1e9 per second.
  template <class F>
  double rate(const Arrays& arrays, int threads, std::int64_t passes, int rounds, double moved, const F& pass) const {
    const double seconds = fastest_round(threads, rounds, [&](int t) {
      for (std::int64_t i = 0; i < passes; ++i) {
        pass(arrays.of(t));
        touch(arrays.of(t));
      }
    });
    heed();
    return moved * threads * static_cast<double>(passes) / seconds / 1e9;
  }

  double read_rate(const Arrays& arrays, int threads, std::int64_t passes, int rounds) const {
    const PeakLoops& loops = loops_.front();
    const std::int64_t bytes = arrays.bytes();
    return rate(arrays, threads, passes, rounds, static_cast<double>(bytes), [&loops, bytes](std::byte* at) {
      std::uint64_t mix = loops.read(at, bytes);
      touch(&mix);
    });
  }

  double copy_rate(const Arrays& arrays, int threads, std::int64_t passes, int rounds) const {
    const std::int64_t half = arrays.bytes() / 2;
    return rate(arrays, threads, passes, rounds, 2.0 * static_cast<double>(half),
                [half](std::byte* at) { std::memcpy(at + half, at, static_cast<std::size_t>(half)); });
  }

  double update_rate(const Arrays& arrays, int threads, std::int64_t passes, int rounds) const {
    const PeakLoops& loops = loops_.front();
    const std::int64_t bytes = arrays.bytes();
    return rate(arrays, threads, passes, rounds, 2.0 * static_cast<double>(bytes),
                [&loops, bytes](std::byte* at) { loops.update(at, bytes); });
  }

  const PeakOptions& options_;
  const PeakEffort effort_;
  const std::function<void()> done_;
  const std::vector<PeakLoops> loops_ = peak_loops();
};

}  // namespace

int peak_threads(int threads) { return std::min(threads, kernels::hardware_threads()); }

std::vector<LevelRate> memory_levels(int threads) {
  const int cores = kernels::hardware_threads();
  std::vector<LevelRate> levels;
  for (const Cache& cache : data_caches(cores)) {
    const std::int64_t copies = std::min(threads, std::max(1, cores / cache.sharers));
    const std::int64_t bytes = cache.bytes * copies;
    if (levels.empty() || bytes > levels.back().bytes) levels.push_back({bytes, 0});
  }
  levels.push_back({0, 0});
  return levels;
}

std::vector<ThreadPeaks> measure_peaks(const PeakOptions& options) {
  std::set<int> numbers;
  for (const int threads : options.threads) {
    if (threads < 1) throw UsageError(fmt::format("the peaks of {} threads cannot be measured", threads));
    numbers.insert(peak_threads(threads));
  }
  const NoGrad no_grad;
  std::vector<ThreadPeaks> peaks;
  double stages = 0;
  for (const int threads : numbers) stages += static_cast<double>(memory_levels(threads).size()) + kStagesBesideLevels;
  double done = 0;
  const auto stage_done = [&] {
    if (options.progress) options.progress(++done / stages);
  };
  for (const int threads : numbers) peaks.push_back(PeakMeter(options, stage_done).run(threads));
  return peaks;
}

}  // namespace tapedeck
