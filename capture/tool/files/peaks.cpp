#include <tapedeck/capture/tool/files/peaks.h>

#include <tapedeck/capture/tool/files/terminal.h>

#include <tapedeck/capture/cost/calibration.h>
#include <tapedeck/capture/measure/measure_peaks.h>

#include <fmt/format.h>

namespace tapedeck::tool {

void Peaks::load() {
  if (loaded_) return;
  loaded_ = true;
  std::string why;
  if (const std::optional<Calibration> c = load_calibration(calibration_path(), &why)) calibrated_ = c->peaks;
  if (!why.empty()) note(why);
}

Peaks::Found Peaks::of(int threads) {
  load();
  const int number = peak_threads(threads);
  if (const ThreadPeaks* known = peaks_for(calibrated_, number)) return {*known, "calibration"};
  if (const ThreadPeaks* known = peaks_for(measured_, number)) return {*known, "measured"};
  note(fmt::format("the peaks of {} thread{} are measured now; `tapedeck calibrate` keeps those of one and of all threads",
                   number, number == 1 ? "" : "s"));
  Progress progress(fmt::format("peaks, {} thread{}", number, number == 1 ? "" : "s"));
  PeakOptions how;
  how.threads = {number};
  how.quick = quick_;
  how.cancel = &interrupted();
  how.progress = [&](double fraction) { progress.at(fraction); };
  measured_.push_back(measure_peaks(how).front());
  return {measured_.back(), "measured"};
}

std::string peaks_text(const ThreadPeaks& p) {
  std::string text = fmt::format("{} thread{}: {:.1f} Gflop/s (matmul {:.1f}, halves {:.1f})", p.threads,
                                 p.threads == 1 ? "" : "s", p.gflop_per_s, p.matmul_gflop_per_s, p.half_gflop_per_s);
  for (std::size_t i = 0; i < p.levels.size(); ++i) {
    const std::int64_t bytes = p.levels[i].bytes;
    const std::string size = bytes == 0          ? std::string()
                             : bytes < (1 << 20) ? fmt::format(" {} KiB", bytes >> 10)
                                                 : fmt::format(" {} MiB", bytes >> 20);
    text += fmt::format(", {}{} {:.1f} GB/s", level_name(p, i), size, p.levels[i].gb_per_s);
  }
  return text;
}

}  // namespace tapedeck::tool
