// Measures how low and how fast place() places buffers. The bench calls place() as users do.
//
//     memory_plan_bench [SECTION...] [--threads N] [--seconds S] [--json]
//
// Sections: anytime (the peak over the bound of the challenging instances after 10 ms, 1 s and 30 s), capacity (seconds until
// the peak is at the published capacity, and at +1, +5, +10, +20 %), large (real training graphs, 60,000 buffers), chunks (an
// arena of chunks of a quarter of the peak), hints (a plan made again from an earlier plan). The bench runs all sections by
// default; --long adds the 30 s of `anytime`. Instances are in ../shared/data; the bench names and skips missing instances.
#include <tapedeck/tests/capture/planner/place/instances.h>

#include <tapedeck/capture/planner/place/buffers_csv.h>
#include <tapedeck/capture/planner/place/check_placement.h>
#include <tapedeck/capture/planner/place/place.h>

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

namespace {

using namespace tapedeck;

struct Settings {
  std::set<std::string> sections;
  int threads = 2;
  double limit_s = 60;  // the most seconds to search for one capacity
  bool longer = false, json = false;
};

struct Instance {
  std::string name;
  std::int64_t capacity = -1;  // the published capacity, read from the file's name
  std::vector<Tenant> buffers;
};

double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string text_of(const std::filesystem::path& path) {
  if (path.extension() == ".gz") {
    std::string text;
    std::FILE* pipe = ::popen(("gzip -dc '" + path.string() + "'").c_str(), "r");
    char part[1 << 16];
    for (std::size_t n = 0; pipe && (n = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, n);
    if (pipe) ::pclose(pipe);
    return text;
  }
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<Instance> instances_in(const char* folder) {
  const std::filesystem::path path = std::filesystem::path(TAPEDECK_SHARED_DIR) / "data" / folder;
  std::map<std::string, Instance> by_name;
  if (!std::filesystem::exists(path)) std::fprintf(stderr, "no instances at %s\n", path.c_str());
  if (std::filesystem::exists(path))
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      const std::string name = entry.path().filename();
      if (name.find(".csv") == std::string::npos) continue;
      const std::size_t dot = name.find('.');
      const long long capacity = std::atoll(name.c_str() + dot + 1);
      by_name[name] = {name, capacity > 0 ? capacity : -1, parse_buffers(text_of(entry.path()), name).buffers};
    }
  std::vector<Instance> all;
  for (auto& [name, instance] : by_name) all.push_back(std::move(instance));
  return all;
}

struct Result {
  Offsets placed;
  double seconds = 0;
};

Result run(const Instance& instance, const PlaceOptions& options) {
  const double start = seconds_now();
  Result r;
  r.placed = place(instance.buffers, options);
  r.seconds = seconds_now() - start;
  const std::string fault = find_fault(instance.buffers, r.placed, options.chunk_bytes);
  if (!fault.empty()) {
    std::fprintf(stderr, "%s: %s\n", instance.name.c_str(), fault.c_str());
    std::exit(1);
  }
  return r;
}

double ratio(const Offsets& placed) {
  return placed.bound > 0 ? static_cast<double>(placed.end) / static_cast<double>(placed.bound) : 1.0;
}

// Prints the lines of the answer as a table or as JSON.
class Table {
 public:
  explicit Table(bool json) : json_(json) {
    if (json_) fmt::print("{{\"schema\": \"tapedeck.memory_plan_bench/1\", \"rows\": [");
  }
  ~Table() {
    if (json_) fmt::print("\n]}}\n");
  }
  void row(const std::string& section, const std::string& name, std::size_t buffers, const std::string& what, double value,
           const char* unit) {
    if (json_)
      fmt::print(
          "{}\n  {{\"section\": \"{}\", \"name\": \"{}\", \"buffers\": {}, \"what\": \"{}\", \"value\": {:.6f}, \"unit\": "
          "\"{}\"}}",
          rows_ ? "," : "", section, name, buffers, what, value, unit);
    else
      fmt::print("{:<9} {:<26} {:>6}  {:<26} {:>10.4f} {}\n", section, name, buffers, what, value, unit);
    std::fflush(stdout);
    ++rows_;
  }

 private:
  const bool json_;
  int rows_ = 0;
};

void anytime(const Settings& settings, Table& table) {
  const std::vector<Instance> all = instances_in("minimalloc");
  for (double seconds : {0.01, 1.0, 30.0}) {
    if (seconds > 1 && !settings.longer) continue;
    double sum = 0;
    for (const Instance& instance : all) {
      PlaceOptions options;
      options.seconds = seconds;
      options.threads = settings.threads;
      const Result r = run(instance, options);
      table.row("anytime", instance.name, instance.buffers.size(), fmt::format("after {:g} s", seconds), ratio(r.placed),
                "x bound");
      sum += std::log(ratio(r.placed));
    }
    if (!all.empty())
      table.row("anytime", "geometric mean", 0, fmt::format("after {:g} s", seconds),
                std::exp(sum / static_cast<double>(all.size())), "x bound");
  }
}

void capacity(const Settings& settings, Table& table) {
  for (int percent : {0, 1, 5, 10, 20}) {
    double sum = 0;
    for (const Instance& instance : instances_in("minimalloc")) {
      if (instance.capacity < 0) continue;
      PlaceOptions options;
      options.capacity = instance.capacity + instance.capacity * percent / 100;
      options.seconds = settings.limit_s;
      options.threads = settings.threads;
      const Result r = run(instance, options);
      sum += r.seconds;
      const bool met = r.placed.end <= options.capacity;
      table.row("capacity", instance.name, instance.buffers.size(),
                fmt::format("capacity +{} %{}", percent, met ? "" : " NOT MET"), r.seconds, "s");
    }
    table.row("capacity", "sum", 0, fmt::format("capacity +{} %", percent), sum, "s");
  }
}

std::vector<Instance> large_instances() {
  std::vector<Instance> all = instances_in("buffers");
  for (unsigned seed : {1u, 2u})
    all.push_back({fmt::format("60,000, seed {}", seed), -1, test::training_step(60000, seed, 30)});
  return all;
}

void large(const Settings& settings, Table& table) {
  for (const Instance& instance : large_instances()) {
    const Result greedy = run(instance, {});
    table.row("large", instance.name, instance.buffers.size(), "greedy", ratio(greedy.placed), "x bound");
    table.row("large", instance.name, instance.buffers.size(), "greedy", greedy.seconds, "s");
    for (double seconds : {0.5, 5.0}) {
      PlaceOptions options;
      options.seconds = seconds;
      options.threads = settings.threads;
      const Result r = run(instance, options);
      table.row("large", instance.name, instance.buffers.size(), fmt::format("within {:g} s", seconds), ratio(r.placed),
                "x bound");
      table.row("large", instance.name, instance.buffers.size(), fmt::format("within {:g} s", seconds), r.seconds, "s");
      if (r.placed.optimal) break;
    }
  }
}

void chunks(Table& table) {
  std::vector<Instance> all = instances_in("buffers");
  all.push_back({"3,000, seed 1", -1, test::training_step(3000, 1, 20)});
  for (const Instance& instance : all) {
    const Result one = run(instance, {});
    PlaceOptions options;
    options.chunk_bytes = one.placed.end / 4;
    const Result several = run(instance, options);
    table.row("chunks", instance.name, instance.buffers.size(), "cap of 1/4",
              static_cast<double>(several.placed.end) / static_cast<double>(one.placed.end), "x one arena");
    table.row("chunks", instance.name, instance.buffers.size(), "cap of 1/4", several.seconds, "s");
  }
}

// Places a graph again after one buffer in 200 has grown, from the offsets before.
void hints(Table& table) {
  std::vector<Instance> all = instances_in("buffers");
  all.push_back({"3,000, seed 1", -1, test::training_step(3000, 1, 20)});
  for (Instance& instance : all) {
    const Result before = run(instance, {});
    std::mt19937 random(1);
    std::vector<bool> changed(instance.buffers.size());
    for (std::size_t i = 0; i < changed.size(); ++i) {
      instance.buffers[i].hint = before.placed.offsets[i];
      if ((changed[i] = random() % 200 == 0)) instance.buffers[i].bytes += 512;
    }
    const Result after = run(instance, {});
    double kept = 0, same = 0;
    for (std::size_t i = 0; i < changed.size(); ++i) {
      same += !changed[i];
      kept += !changed[i] && before.placed.offsets[i] == after.placed.offsets[i];
    }
    const std::size_t n = instance.buffers.size();
    table.row("hints", instance.name, n, "unchanged ones that stay", 100 * kept / same, "%");
    table.row("hints", instance.name, n, "redone", 1e6 * after.seconds / static_cast<double>(n), "ms per 1000 buffers");
    table.row("hints", instance.name, n, "redone", ratio(after.placed), "x bound");
  }
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json")
      settings.json = true;
    else if (word == "--long")
      settings.longer = true;
    else if (word == "--threads" && i + 1 < argc)
      settings.threads = std::max(1, std::atoi(argv[++i]));
    else if (word == "--seconds" && i + 1 < argc)
      settings.limit_s = std::atof(argv[++i]);
    else if (word == "anytime" || word == "capacity" || word == "large" || word == "chunks" || word == "hints")
      settings.sections.insert(word);
    else {
      std::fprintf(stderr,
                   "usage: memory_plan_bench [anytime] [capacity] [large] [chunks] [hints] [--long] [--threads N] [--seconds "
                   "S] [--json]\n");
      return 2;
    }
  }
  const auto wanted = [&](const char* section) { return settings.sections.empty() || settings.sections.count(section) > 0; };
  Table table(settings.json);
  if (wanted("anytime")) anytime(settings, table);
  if (wanted("capacity")) capacity(settings, table);
  if (wanted("large")) large(settings, table);
  if (wanted("chunks")) chunks(table);
  if (wanted("hints")) hints(table);
}
