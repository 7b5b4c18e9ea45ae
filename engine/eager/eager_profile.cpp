#include <tapedeck/engine/eager/eager_profile.h>

#include <tapedeck/engine/eager/thread_state.h>
#include <tapedeck/engine/text/utf8.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <string_view>
#include <utility>

namespace tapedeck {

namespace {

constinit thread_local EagerProfile* current_profile = nullptr;

std::int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// JSON text of a name that holds any bytes. Each byte that is not UTF-8 becomes U+FFFD.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\\')
      out.append({'\\', c});
    else if (c >= 0x20 && c < 0x7f)
      out += c;
    else if (const std::size_t n = utf8_length(text.substr(i)))
      out += text.substr(i, n), i += n - 1;
    else if (static_cast<unsigned char>(c) < 0x80)
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    else
      out += "\\ufffd";
  }
  return out + "\"";
}

std::string place(const EagerEvent& e) { return e.site.line > 0 ? fmt::format("{}:{}", e.site.file, e.site.line) : ""; }

}  // namespace

bool eager_profile_is_on() noexcept { return current_profile != nullptr; }

EagerProfile::EagerProfile() : start_ns_(clock_ns()), before_(std::exchange(current_profile, this)) {}
EagerProfile::~EagerProfile() { stop(); }

// Leaves the list of the profiles of this thread, wherever it stands there: an inner one may live longer than an outer one.
void EagerProfile::stop() {
  if (stopped_ns_ >= 0) return;
  stopped_ns_ = now();
  EagerProfile** at = &current_profile;
  while (*at && *at != this) at = &(*at)->before_;
  if (*at) *at = before_;
}

std::int64_t EagerProfile::now() const { return clock_ns() - start_ns_; }

std::string EagerProfile::table() const {
  struct Row {
    std::int64_t calls = 0, ns = 0, bytes = 0;
  };
  std::map<std::string_view, Row> by_op;
  std::int64_t in_kernels = 0;
  for (const EagerEvent& e : events_) {
    Row& row = by_op[e.op];
    ++row.calls;
    row.ns += e.end_ns - e.begin_ns;
    row.bytes += e.bytes;
    in_kernels += e.end_ns - e.begin_ns;
  }
  std::vector<std::pair<std::string_view, Row>> rows(by_op.begin(), by_op.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
  const double all_ms = static_cast<double>(stopped_ns_ >= 0 ? stopped_ns_ : now()) / 1e6;
  const double kernels_ms = static_cast<double>(in_kernels) / 1e6;
  std::string text = fmt::format("{:<28} {:>8} {:>12} {:>7} {:>8}\n", "op", "calls", "ms", "share", "GB/s");
  for (const auto& entry : rows) {
    const Row& row = entry.second;
    const double ms = static_cast<double>(row.ns) / 1e6;
    text += fmt::format("{:<28} {:>8} {:>12.3f} {:>6.1f}% {:>8.2f}\n", entry.first, row.calls, ms,
                        kernels_ms > 0 ? 100 * ms / kernels_ms : 0.0,
                        row.ns > 0 ? static_cast<double>(row.bytes) / static_cast<double>(row.ns) : 0.0);
  }
  text += fmt::format("{:<28} {:>8} {:>12.3f}\n", "all kernels", events_.size(), kernels_ms);
  return text + fmt::format("{:<28} {:>8} {:>12.3f}\n", "outside of kernels", "", std::max(0.0, all_ms - kernels_ms));
}

std::string EagerProfile::chrome_trace() const {
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const EagerEvent& e = events_[i];
    text += fmt::format(
        "{}\n{{\"name\": {}, \"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": {:.3f}, \"dur\": {:.3f}, \"cat\": {}, "
        "\"args\": {{\"module\": {}, \"site\": {}, \"bytes\": {}}}}}",
        i ? "," : "", quoted(e.op), static_cast<double>(e.begin_ns) / 1e3, static_cast<double>(e.end_ns - e.begin_ns) / 1e3,
        quoted(phase_name(e.phase)), quoted(e.path.view()), quoted(place(e)), e.bytes);
  }
  return text + "\n]}\n";
}

EagerTimer::EagerTimer(const char* op, Site site, std::int64_t bytes) : profile_(current_profile) {
  if (!profile_) return;
  const ThreadState& state = thread_state();
  event_ = {op, site, state.path, state.phase, profile_->now(), 0, bytes};
}

// A kernel that throws is noted too. Where there is no memory for the event, it is lost, and the program goes on.
EagerTimer::~EagerTimer() {
  if (!profile_) return;
  event_.end_ns = profile_->now();
  try {
    profile_->events_.push_back(event_);
  } catch (const std::exception&) {
    return;
  }
}

}  // namespace tapedeck
