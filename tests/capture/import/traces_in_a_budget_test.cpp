// Runs the log of eager sessions on traces of eager programs (simrd), with the bytes and the times of the trace. No kernel
// runs, so the results do not depend on the machine.
//
// `overhead` is the least overhead of all heuristics of DTR's simulator on the same trace, from
// ../shared/references/rematerialization.md. Our overhead may exceed it by half of its last digit.
#include <tapedeck/capture/formats/gzip.h>
#include <tapedeck/capture/import/simrd_lines.h>
#include <tapedeck/engine/eviction/eviction_log.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace tapedeck {
namespace {

using LoggedBlock = EvictionLog::Block;

struct NoRoom {};

// An owner of blocks that counts their bytes and allocates no memory.
class Budget final : public EvictionLog::Owner {
 public:
  EvictionLog log{*this};
  std::int64_t budget = std::numeric_limits<std::int64_t>::max(), used = 0, peak = 0;

  void take(std::int64_t bytes) {
    if (bytes > budget - used) log.evict_bytes(used + bytes - budget);
    if (bytes > budget - used) throw NoRoom();
    used += bytes;
    peak = std::max(peak, used);
  }
  void free(LoggedBlock b) noexcept override { used -= log.bytes(b); }
  void forget(LoggedBlock) noexcept override {}
  void forget_call(EvictionLog::Call) noexcept override {}
  void run(EvictionLog::Call c, std::span<const LoggedBlock> wanted) override {
    std::int64_t all = 0;
    for (LoggedBlock b : log.results(c)) all += b == EvictionLog::kNone ? 0 : log.bytes(b);
    take(all);
    for (LoggedBlock b : wanted) all -= log.bytes(b);
    used -= all;
  }
};

// Runs the lines of a trace. A name stands for a storage, and a storage for the block that has its bytes now.
class TracedProgram {
 public:
  TracedProgram(const std::vector<TraceLine>& lines, Budget& memory) : lines_(lines), memory_(memory) {}

  void run() {
    for (at_ = 0; at_ < lines_.size();) {
      const TraceLine& line = lines_[at_++];
      switch (line.event) {
        case TraceEvent::constant:
          constant(line);
          break;
        case TraceEvent::call:
          call(line);
          break;
        case TraceEvent::mutate:
          mutate(line);
          break;
        case TraceEvent::copy:
          define(line.name, names_.at(line.source));
          break;
        case TraceEvent::copy_from:
          define(line.name, names_.at(line.source));
          break;
        case TraceEvent::release:
          if (names_.count(line.name)) release(line.name);
          break;
        default:
          break;
      }
    }
  }

 private:
  struct Storage {
    LoggedBlock block = EvictionLog::kNone;
    int names = 0;
  };

  void define(const std::string& name, std::size_t storage) {
    ++storages_[storage].names;
    if (names_.count(name)) release(name);
    names_[name] = storage;
  }

  void release(const std::string& name) {
    Storage& storage = storages_[names_.at(name)];
    names_.erase(name);
    if (--storage.names == 0) memory_.log.let_go(storage.block);
  }

  std::size_t new_storage(LoggedBlock b) {
    storages_.push_back({b, 0});
    return storages_.size() - 1;
  }

  void constant(const TraceLine& line) {
    const std::int64_t bytes = lines_[at_++].number_of;
    memory_.take(bytes);
    define(line.name, new_storage(memory_.log.add_block(bytes)));
  }

  std::vector<LoggedBlock> blocks_of(const std::vector<std::string>& args) const {
    std::vector<LoggedBlock> blocks;
    for (const std::string& arg : args) {
      const LoggedBlock b = storages_[names_.at(arg)].block;
      if (std::find(blocks.begin(), blocks.end(), b) == blocks.end()) blocks.push_back(b);
    }
    return blocks;
  }

  std::vector<LoggedBlock> run_op(const std::vector<LoggedBlock>& operands, const std::vector<std::int64_t>& bytes,
                                  double microseconds) {
    for (LoggedBlock b : operands) memory_.log.read(b), memory_.log.lock(b);
    std::int64_t all = 0;
    for (std::int64_t b : bytes) all += b;
    memory_.take(all);
    std::vector<LoggedBlock> results(bytes.size());
    memory_.log.add_call(operands, bytes, microseconds, results);
    for (LoggedBlock b : operands) memory_.log.unlock(b);
    return results;
  }

  void call(const TraceLine& line) {
    std::vector<std::int64_t> bytes;    // of results that are no views
    std::vector<std::int64_t> aliases;  // by result: the argument that it views, or -1
    for (std::size_t k = 0; k < line.results.size(); ++k) {
      const std::int64_t size = lines_[at_].number_of, alias = lines_[at_ + 1].number_of;
      at_ += 2;
      aliases.push_back(alias);
      if (alias < 0) bytes.push_back(size);
    }
    std::vector<std::size_t> args;
    for (const std::string& arg : line.args) args.push_back(names_.at(arg));
    std::vector<LoggedBlock> made;
    if (!bytes.empty()) made = run_op(blocks_of(line.args), bytes, line.nanoseconds / 1000);
    std::size_t next = 0;
    for (std::size_t k = 0; k < line.results.size(); ++k)
      define(line.results[k], aliases[k] < 0 ? new_storage(made[next++]) : args[static_cast<std::size_t>(aliases[k])]);
  }

  // A write in place. As in the paper, it makes a new value, and the program lets go of the old value.
  void mutate(const TraceLine& line) {
    std::vector<std::size_t> written;
    std::vector<std::int64_t> bytes;
    for (std::int64_t k : line.mutated) {
      const std::size_t s = names_.at(line.args[static_cast<std::size_t>(k)]);
      if (std::find(written.begin(), written.end(), s) != written.end()) continue;
      written.push_back(s);
      bytes.push_back(memory_.log.bytes(storages_[s].block));
    }
    const std::vector<LoggedBlock> now = run_op(blocks_of(line.args), bytes, line.nanoseconds / 1000);
    for (std::size_t i = 0; i < written.size(); ++i) {
      memory_.log.let_go(storages_[written[i]].block);
      storages_[written[i]].block = now[i];
    }
  }

  const std::vector<TraceLine>& lines_;
  Budget& memory_;
  std::size_t at_ = 0;
  std::vector<Storage> storages_;
  std::map<std::string, std::size_t> names_;
};

std::vector<TraceLine> lines_of(const std::string& path) {
  std::ifstream stream(path);
  const std::string text = unpacked_text({std::istreambuf_iterator<char>(stream), {}}, path);
  TraceLines reader(text, path);
  std::vector<TraceLine> lines;
  for (TraceLine line; reader.next(&line);) lines.push_back(line);
  return lines;
}

struct Limit {
  int tenth;
  double overhead;
};

void check(const std::string& name, std::int64_t megabytes, const std::vector<Limit>& limits) {
  const std::string path = TAPEDECK_SHARED_DIR "/data/simrd/" + name + ".log.gz";
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << "this test reads a trace of shared data, and " << path << " does not exist";
  const std::vector<TraceLine> lines = lines_of(path);
  Budget all;
  TracedProgram(lines, all).run();
  EXPECT_NEAR(static_cast<double>(all.peak) / 1e6, static_cast<double>(megabytes), 1) << "the simulator's peak";
  EXPECT_EQ(all.log.counts().recomputed, 0);
  for (const Limit& limit : limits) {
    Budget memory;
    memory.budget = all.peak / 10 * limit.tenth;
    TracedProgram(lines, memory).run();
    EXPECT_LE(memory.peak, memory.budget);
    const double overhead = 1 + memory.log.counts().recomputed_cost / memory.log.counts().cost;
    EXPECT_LE(overhead, limit.overhead + 0.0005) << "at " << limit.tenth << " tenths";
  }
}

TEST(TracesInABudget, ResNet32) {
  check("resnet32_b56", 10061,
        {{9, 1.013}, {8, 1.025}, {7, 1.037}, {6, 1.074}, {5, 1.107}, {4, 1.140}, {3, 1.178}, {2, 1.332}});
}

TEST(TracesInABudget, UNet) {
  check("unet_b6", 8416, {{9, 1.016}, {8, 1.058}, {7, 1.085}, {6, 1.131}, {5, 1.133}, {4, 1.241}, {3, 1.585}});
}

TEST(TracesInABudget, Transformer) {
  check("transformer_b10", 9864,
        {{9, 1.009}, {8, 1.020}, {7, 1.031}, {6, 1.044}, {5, 1.058}, {4, 1.083}, {3, 1.113}, {2, 1.333}});
}

}  // namespace
}  // namespace tapedeck
