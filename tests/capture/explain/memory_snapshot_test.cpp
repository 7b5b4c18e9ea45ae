// Tests the memory snapshot against the plan that it shows. tool/trace_test.sh tests that Python reads the pickle and finds
// the same content.
#include <tapedeck/capture/explain/memory_snapshot.h>

#include <tapedeck/capture/formats/json.h>
#include <tapedeck/capture/planner/planner.h>

#include <tapedeck/tests/capture/sample_tape.h>
#include <tapedeck/tests/capture/timelines.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace tapedeck {
namespace {

TEST(MemorySnapshot, SegmentsAddUpToThePeakAndEventsStayInside) {
  for (const double percent : {-1.0, 90.0})
    for (const int threads : {1, 2}) {
      const Plan plan = make_plan(sample_graph(), {.budget_percent = percent});
      ASSERT_TRUE(plan.feasible);
      const JsonDocument document(memory_trace_json(plan, test::replay_timeline(plan, threads)));
      const JsonValue root = document.root();
      EXPECT_EQ(root.find("schema")->as_string(), "tapedeck.memory_trace/1");
      std::map<std::int64_t, std::int64_t> segments;  // address to end of each segment
      std::int64_t reserved = 0;
      for (const JsonValue& s : root.find("segments")->items()) {
        const std::int64_t bytes = s.find("bytes")->as_integer();
        segments[s.find("address")->as_integer()] = s.find("address")->as_integer() + bytes;
        reserved += bytes;
      }
      EXPECT_EQ(reserved, plan.peak_bytes);
      std::map<std::int64_t, std::int64_t> alive;  // address to bytes of each live block
      std::int64_t sum = 0, peak = 0, last = 0;
      for (const JsonValue& e : root.find("events")->items()) {
        const std::int64_t address = e.find("address")->as_integer(), bytes = e.find("bytes")->as_integer();
        EXPECT_GE(e.find("at_ns")->as_integer(), last);
        last = e.find("at_ns")->as_integer();
        if (e.find("action")->as_string() == "free") {
          ASSERT_TRUE(alive.count(address));
          EXPECT_EQ(alive[address], bytes);
          alive.erase(address);
          sum -= bytes;
          continue;
        }
        auto in = segments.upper_bound(address);
        ASSERT_NE(in, segments.begin());
        EXPECT_LE(address + bytes, std::prev(in)->second);
        const auto next = alive.lower_bound(address);
        EXPECT_TRUE(next == alive.end() || address + bytes <= next->first);
        EXPECT_TRUE(next == alive.begin() || std::prev(next)->first + std::prev(next)->second <= address);
        alive[address] = bytes;
        sum += bytes;
        peak = std::max(peak, sum);
      }
      EXPECT_EQ(sum, plan.external_bytes);  // the remaining blocks are the bytes that are always held
      EXPECT_EQ(root.find("live_peak_bytes")->as_integer(), peak);
      if (threads == 1) {
        EXPECT_EQ(peak, plan.lower_bound_bytes);
      }
      EXPECT_LE(peak, plan.peak_bytes);
    }
}

TEST(MemorySnapshot, SaysWhoseBytesTheyAre) {
  const Plan plan = make_plan(sample_graph());
  const std::string text = memory_trace_json(plan, test::serial_timeline(plan));
  const JsonDocument document(text);
  std::set<std::string> categories;
  bool found = false;
  for (const JsonValue& e : document.root().find("events")->items()) {
    categories.emplace(e.find("category")->as_string());
    if (e.find("site") && e.find("site")->as_string() == "train.cpp:12") {
      EXPECT_EQ(e.find("op")->as_string(), "matmul");
      EXPECT_EQ(e.find("path")->as_string(), "fc1");
      found = true;
    }
  }
  EXPECT_TRUE(found) << text;
  for (const char* category : {"input", "parameter", "constant", "output", "activation"})
    EXPECT_TRUE(categories.count(category)) << category;
}

// Walks the pickle opcode by opcode, independently of the writer. It may contain only opcodes and keys that PyTorch's viewer
// knows.
TEST(MemorySnapshot, ThePickleHoldsOnlyWhatTheViewerReads) {
  const Plan plan = make_plan(sample_graph(), {.budget_percent = 90});
  const std::string bytes = memory_snapshot_pickle(plan, test::serial_timeline(plan));
  ASSERT_GT(bytes.size(), 100u);
  EXPECT_EQ(bytes.substr(0, 2), std::string("\x80\x02", 2));
  std::size_t at = 2;
  int depth = 0;  // depth of the stack
  const auto length = [&](std::size_t from) {
    return static_cast<unsigned char>(bytes[from]) | static_cast<unsigned char>(bytes[from + 1]) << 8;
  };
  bool unknown = false;
  while (at < bytes.size() && bytes[at] != '.') {
    switch (static_cast<unsigned char>(bytes[at])) {
      case '}':
      case ']':
      case 'N':
      case 0x88:
      case 0x89:
        ++depth;
        at += 1;
        break;
      case 'a':
        --depth;
        at += 1;
        break;
      case 's':
        depth -= 2;
        at += 1;
        break;
      case 'K':
        ++depth;
        at += 2;
        break;
      case 'M':
        ++depth;
        at += 3;
        break;
      case 'J':
        ++depth;
        at += 5;
        break;
      case 0x8a:
        ++depth;
        at += 2 + static_cast<unsigned char>(bytes[at + 1]);
        break;
      case 'h':
        ++depth;
        at += 2;
        break;
      case 'j':
        ++depth;
        at += 5;
        break;
      case 'q':
        at += 2;
        break;
      case 'r':
        at += 5;
        break;
      case 'X': {
        const auto n = static_cast<std::size_t>(length(at + 1));
        unknown = unknown || bytes.substr(at + 5, n) == "unknown";
        ++depth;
        at += 5 + n;
        break;
      }
      default:
        FAIL() << "opcode " << static_cast<int>(static_cast<unsigned char>(bytes[at])) << " at " << at;
    }
    ASSERT_GE(depth, 1);
  }
  EXPECT_EQ(at, bytes.size() - 1);
  EXPECT_EQ(depth, 1);
  EXPECT_TRUE(unknown);  // the viewer fails without an event of this kind
}

}  // namespace
}  // namespace tapedeck
