// Rates of ops: the estimate by rates, the fit of rates to measured points, and the file that keeps them.
//     points    (flops, bytes, us) of one op at several sizes
//     fit       least squares on relative errors with every set of active rates; then one rate at a time, by the logarithm
//     us  =  call  +  flops * per_flop  +  bytes * per_byte  +  bytes beyond the near cache * per_far_byte
#include <tapedeck/capture/cost/calibration.h>

#include <tapedeck/capture/cost/machine.h>
#include <tapedeck/capture/cost/node_costs.h>
#include <tapedeck/capture/cost/profile.h>
#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/capture/formats/cache_folder.h>
#include <tapedeck/capture/formats/input_file.h>
#include <tapedeck/capture/formats/json.h>
#include <tapedeck/engine/eager/settings.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

namespace tapedeck {

namespace {

constexpr const char* kCalibrationSchema = "tapedeck.calibration/1";
constexpr const char* kKinNames[kOpKinCount] = {"elementwise", "counted", "moving"};
constexpr double kMostRatio = 1e6;        // of a calibrated to a built-in estimate
constexpr double kLeastLarge = 32 << 10;  // bytes: points below this size show no rate per byte

}  // namespace

const char* kin_name(OpKin kin) { return kKinNames[static_cast<int>(kin)]; }

OpKin kin_of(const Op& op) {
  if (op.is(kElementwise)) return OpKin::elementwise;
  return op.cost ? OpKin::counted : OpKin::moving;
}

// ---- estimates ----

Cost counted_cost(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs, const void* attrs) {
  if (op.cost) return op.cost(inputs, outputs, attrs);
  Cost cost;
  for (const Type& t : inputs) cost.bytes += static_cast<double>(t.bytes());
  for (const Type& t : outputs) cost.bytes += static_cast<double>(t.bytes());
  return cost;
}

double calibrated_us(const Calibration& c, const Op& op, std::span<const Type> inputs, std::span<const Type> outputs,
                     const void* attrs) {
  const double built_in = cost_us(op, inputs, outputs, attrs);
  if (op.is(kZeroCost) || (op.is(kView) && !op.cost)) return built_in;
  const Cost cost = counted_cost(op, inputs, outputs, attrs);
  if (cost.us >= 0) return built_in;  // declared, not estimated
  const auto it = c.ops.find(op.name);
  if (it == c.ops.end() || it->second.version != op.version)
    return built_in * c.kin_ratio[static_cast<std::size_t>(kin_of(op))];
  const OpRates& r = it->second;
  return r.call_us + cost.flops * r.us_per_flop + cost.bytes * r.us_per_byte +
         std::max(cost.bytes - kNearBytes, 0.0) * r.us_per_far_byte;
}

// ---- fitting ----

namespace {

constexpr int kRates = 4;
using Row = std::array<double, kRates>;

Row features(const CostPoint& p) { return {1, p.flops, p.bytes, std::max(p.bytes - kNearBytes, 0.0)}; }

// Least squares on relative errors with these rates active, by the normal equations on scaled columns. False if they are
// singular.
bool solve(std::span<const CostPoint> points, unsigned active, const Row& scale, Row* rates) {
  double a[kRates][kRates + 1] = {};
  int columns[kRates], n = 0;
  for (int i = 0; i < kRates; ++i)
    if (active >> i & 1) columns[n++] = i;
  for (const CostPoint& p : points) {
    const Row f = features(p);
    for (int i = 0; i < n; ++i) {
      const double fi = f[columns[i]] / scale[columns[i]] / p.us;
      for (int j = 0; j < n; ++j) a[i][j] += fi * f[columns[j]] / scale[columns[j]] / p.us;
      a[i][n] += fi;  // the time of the point divided by itself: the target is one
    }
  }
  for (int i = 0; i < n; ++i) {
    int pivot = i;
    for (int r = i + 1; r < n; ++r)
      if (std::fabs(a[r][i]) > std::fabs(a[pivot][i])) pivot = r;
    if (!(std::fabs(a[pivot][i]) > 1e-9)) return false;
    std::swap(a[i], a[pivot]);
    for (int r = 0; r < n; ++r) {
      if (r == i) continue;
      const double factor = a[r][i] / a[i][i];
      for (int j = i; j <= n; ++j) a[r][j] -= factor * a[i][j];
    }
  }
  *rates = {};
  for (int i = 0; i < n; ++i) (*rates)[columns[i]] = a[i][n] / a[i][i] / scale[columns[i]];
  return true;
}

double log_error(std::span<const CostPoint> points, const Row& rates) {
  constexpr double kTinyUs = 1e-9;
  double sum = 0;
  for (const CostPoint& p : points) {
    const Row f = features(p);
    double us = kTinyUs;
    for (std::size_t i = 0; i < kRates; ++i) us += f[i] * rates[i];
    const double off = std::log(us / p.us);
    sum += off * off;
  }
  return sum;
}

// The best start that linear least squares finds: it tries every set of active rates and skips solutions with a negative rate.
std::optional<Row> linear_rates(std::span<const CostPoint> points, const Row& scale) {
  std::optional<Row> best;
  double least = std::numeric_limits<double>::infinity();
  for (unsigned active = 1; active < 1u << kRates; ++active) {
    Row rates;
    bool possible = true;
    for (std::size_t i = 0; i < kRates; ++i) possible &= !(active >> i & 1) || scale[i] > 0;
    if (!possible || !solve(points, active, scale, &rates)) continue;
    if (std::any_of(rates.begin(), rates.end(), [](double r) { return !(r >= 0) || !std::isfinite(r); })) continue;
    const double error = log_error(points, rates);
    if (error < least) least = error, best = rates;
  }
  return best;
}

// Improves the start by the logarithm, for which twice the time and half the time are equally wrong. It changes one rate at a
// time by a factor that shrinks; it also tries to switch a rate of zero on, at a hundredth of the whole, and to switch a rate
// off.
Row descend(std::span<const CostPoint> points, const Row& scale, Row rates) {
  double least = log_error(points, rates);
  std::vector<double> times;
  for (const CostPoint& p : points) times.push_back(p.us);
  const double typical = median(std::move(times));
  constexpr int kMostRounds = 1000;
  double step = 9;
  for (int round = 0; round < kMostRounds && step > 1e-4; ++round) {
    bool better = false;
    for (std::size_t i = 0; i < kRates; ++i) {
      if (scale[i] <= 0) continue;
      const double now = rates[i], small = 0.01 * typical / scale[i];
      for (const double next : {now > 0 ? now * (1 + step) : small, now / (1 + step), 0.0}) {
        Row other = rates;
        other[i] = next;
        if (const double error = log_error(points, other); error < least * (1 - 1e-12))
          least = error, rates = other, better = true;
      }
    }
    if (!better) step /= 2;
  }
  return rates;
}

}  // namespace

bool can_carry_rates(std::span<const CostPoint> points) {
  const auto usable = [](const CostPoint& p) { return plausible_us(p.us) && p.flops >= 0 && p.bytes >= 0; };
  return std::count_if(points.begin(), points.end(), usable) >= 2 &&
         std::any_of(points.begin(), points.end(), [&](const CostPoint& p) { return usable(p) && p.bytes >= kLeastLarge; });
}

std::optional<OpRates> fit_rates(std::span<const CostPoint> points) {
  constexpr double kLeastUs = 1e-3;
  std::vector<CostPoint> usable;
  Row scale = {1, 0, 0, 0};
  if (!can_carry_rates(points)) return std::nullopt;
  for (CostPoint p : points) {
    if (!plausible_us(p.us) || !(p.flops >= 0) || !(p.bytes >= 0)) continue;
    p.us = std::max(p.us, kLeastUs);
    const Row f = features(p);
    for (std::size_t i = 1; i < kRates; ++i) scale[i] = std::max(scale[i], f[i]);
    usable.push_back(p);
  }

  const std::optional<Row> start = linear_rates(usable, scale);
  if (!start) return std::nullopt;
  const Row best = descend(usable, scale, *start);
  OpRates fitted;
  fitted.call_us = best[0], fitted.us_per_flop = best[1], fitted.us_per_byte = best[2], fitted.us_per_far_byte = best[3];
  fitted.points = static_cast<int>(usable.size());
  return fitted;
}

// ---- as text ----

std::string calibration_to_json(const Calibration& c) {
  JsonWriter json;
  json.open('{').key("schema").value(kCalibrationSchema);
  json.key("machine").value(std::string_view(c.machine));
  json.key("program").value(std::string_view(c.program));
  json.key("quick").value(c.quick);
  json.key("kin_ratio").open('{');
  for (int k = 0; k < kOpKinCount; ++k) json.key(kKinNames[k]).value(c.kin_ratio[k]);
  json.close('}').key("ops").open('{');
  for (const auto& [name, r] : c.ops) {
    json.line().key(name).open('{').key("version").value(static_cast<std::int64_t>(r.version));
    json.key("call_us").value(r.call_us).key("us_per_flop").value(r.us_per_flop);
    json.key("us_per_byte").value(r.us_per_byte).key("us_per_far_byte").value(r.us_per_far_byte);
    json.key("points").value(static_cast<std::int64_t>(r.points)).close('}');
  }
  json.close('}');
  if (!c.peaks.empty()) write_peaks(&json.key("peaks"), c.peaks);
  return json.close('}').take() + '\n';
}

namespace {

double rate(JsonValue object, const char* key, double most) {
  const JsonValue value = object.member(key);
  const double number = value.as_real();
  if (!(number >= 0 && number <= most)) throw JsonError(fmt::format("{} is {}, on line {}", key, number, value.line()));
  return number;
}

int count(JsonValue object, const char* key) {
  const JsonValue value = object.member(key);
  const std::int64_t number = value.as_integer();
  if (number < 0 || number > std::numeric_limits<int>::max())
    throw JsonError(fmt::format("{} is {}, on line {}", key, number, value.line()));
  return static_cast<int>(number);
}

OpRates read_rates(JsonValue json) {
  constexpr double kMostCall = 1e9, kMostRate = 1e3;  // microseconds; per flop or byte
  OpRates r;
  r.version = count(json, "version");
  r.call_us = rate(json, "call_us", kMostCall);
  r.us_per_flop = rate(json, "us_per_flop", kMostRate);
  r.us_per_byte = rate(json, "us_per_byte", kMostRate);
  r.us_per_far_byte = rate(json, "us_per_far_byte", kMostRate);
  r.points = count(json, "points");
  return r;
}

Calibration read_calibration(JsonValue json) {
  const std::string_view schema = json.member("schema").as_string();
  if (schema != kCalibrationSchema) throw JsonError(fmt::format("the schema is {}, not {}", shown(schema), kCalibrationSchema));
  Calibration c;
  c.machine = json.member("machine").as_string();
  c.program = json.member("program").as_string();
  c.quick = json.member("quick").as_bool();
  for (int k = 0; k < kOpKinCount; ++k) c.kin_ratio[k] = rate(json.member("kin_ratio"), kKinNames[k], kMostRatio);
  for (const auto& [name, rates] : json.member("ops").members()) {
    try {
      c.ops.emplace(name, read_rates(rates));
    } catch (const JsonError& e) {
      throw JsonError(fmt::format("op {}: {}", shown(name), e.what()));
    }
  }
  if (const auto peaks = json.find("peaks")) c.peaks = read_peaks(*peaks);
  return c;
}

}  // namespace

Calibration parse_calibration(std::string_view json) {
  try {
    const JsonDocument document(json);
    return read_calibration(document.root());
  } catch (const JsonError& e) {
    throw FileError(fmt::format("not a readable calibration: {}", e.what()));
  }
}

// ---- the file ----

std::string calibration_path() {
  const std::string chosen = settings_from_environment().calibration;
  if (chosen == "off") return {};
  if (!chosen.empty()) return chosen;
  const std::filesystem::path cache = user_cache_folder();
  return cache.empty() ? std::string() : (cache / "tapedeck" / "calibration.json").string();
}

void save_calibration(const std::string& path, const Calibration& calibration) {
  if (const std::filesystem::path folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) throw FileError(fmt::format("{}: {}", folder.string(), error.message()));
  }
  AtomicWriter writer(path);
  writer.write(calibration_to_json(calibration));
  writer.commit();
}

std::optional<Calibration> load_calibration(const std::string& path, std::string* why) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return std::nullopt;
  try {
    Calibration c = parse_calibration(read_text_file(path));
    if (c.machine != machine_name()) throw FileError(fmt::format("measured on another machine ({})", shown(c.machine)));
    if (c.program != TAPEDECK_VERSION) throw FileError(fmt::format("measured by version {} of Tapedeck", shown(c.program)));
    return c;
  } catch (const Error& e) {
    *why = fmt::format("{}: {}; not used, `tapedeck calibrate` measures anew", path, e.what());
    return std::nullopt;
  }
}

}  // namespace tapedeck
