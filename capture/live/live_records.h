// The records that a running program writes for the viewer, as bytes. FORMAT.md describes them.
//
// A reader takes the bytes as they come. It trusts nothing: a record that is not whole yet is left for later, and a record with
// a wrong length, kind or number is damage, after which the stream is not read any further.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tapedeck {
namespace live TAPEDECK_API {

using Bytes = std::vector<unsigned char>;

inline constexpr std::string_view kMagic = "TDLIVE1\n";  // a chunk begins with it, and with its number (u64)
inline constexpr std::size_t kChunkHeaderBytes = 16;
inline constexpr std::uint32_t kMostRecordBytes = 16 * 1024;  // of one record, without its length
inline constexpr std::uint32_t kMostTexts = 1 << 16;          // names, paths and files of one program
inline constexpr std::size_t kMostTextBytes = 1024;           // longer ones are cut
inline constexpr std::uint64_t kMostCalls = 1ull << 53;       // numbers of calls and steps lie below
inline constexpr std::size_t kMostTypes = 4;                  // results of one op whose types are told

enum class RecordKind : std::uint8_t { text = 1, op, step, dropped, replay, captured, ended, past };

// A name, module path or file. Later records mean it by its number; number 0 is the empty text.
struct TextRecord {
  std::uint32_t id = 0;
  std::string text;
};

// A call of an op.
struct OpRecord {
  static constexpr std::uint8_t kView = 1, kInPlace = 2;
  std::uint64_t index = 0;                   // the number of the call in the process, from 0; dropped calls have numbers too
  std::int64_t time_ns = 0;                  // since the program was connected
  std::int64_t live = 0;                     // the bytes that all tensors hold after the call
  std::int64_t bytes = 0;                    // of the results
  std::uint32_t op = 0, path = 0, file = 0;  // texts
  std::int32_t line = 0;
  std::uint32_t thread = 0;  // threads are numbered as they come
  Phase phase = Phase::forward;
  std::uint8_t flags = 0;
  std::uint8_t n_results = 0;  // all results, of which `types` has the first
  std::uint8_t n_types = 0;
  Type types[kMostTypes];
};

// next_step() was called.
struct StepRecord {
  std::uint64_t index = 0;  // of the next op
  std::int64_t time_ns = 0, live = 0;
  std::uint64_t step = 0;  // from 1
};

// Calls that were lost, because the buffer was full.
struct DroppedRecord {
  std::uint64_t count = 0;
  std::int64_t highest_live = 0;
};

// A captured step has replayed: its ops run on bytes of its own and are not told one by one.
struct ReplayRecord {
  std::uint64_t index = 0;  // of the next op
  std::int64_t time_ns = 0, live = 0;
  std::int64_t peak = 0;   // of the replay
  std::uint32_t name = 0;  // a text
  std::int32_t nodes = 0;
};

// A captured step was written to a file of the folder, or could not be.
struct CapturedRecord {
  std::int64_t time_ns = 0;
  std::string file;     // empty: there is none
  std::string message;  // what it is, or why there is none
};

struct EndedRecord {
  std::int64_t time_ns = 0;
  std::string reason;
};

// A piece of what an earlier chunk told, thinned: `count` calls from `index` on.
struct PastRecord {
  std::uint64_t index = 0, count = 0;
  std::int64_t time_ns = 0, lowest = 0, highest = 0;
  std::uint64_t steps = 0;  // before the end of the piece
};

using Record =
    std::variant<TextRecord, OpRecord, StepRecord, DroppedRecord, ReplayRecord, CapturedRecord, EndedRecord, PastRecord>;

void append_chunk_header(std::uint64_t number, Bytes* to);
void append(const Record& record, Bytes* to);       // texts that are too long are cut
void append_op(const OpRecord& record, Bytes* to);  // the same for a call, without a copy of the record

// Reads a stream record by record.
class RecordReader {
 public:
  // Says what is wrong with the first bytes of a chunk; empty: nothing. REQUIRES: kChunkHeaderBytes bytes.
  static std::string header_problem(std::span<const unsigned char> bytes, std::uint64_t expected_number);

  // The record at the beginning of `bytes`, and how many bytes it takes. False if it is not whole yet, or damaged.
  bool next(std::span<const unsigned char> bytes, Record* record, std::size_t* taken);
  const std::string& damage() const { return damage_; }  // empty: none so far

 private:
  std::string damage_;
};

}  // namespace TAPEDECK_API
}  // namespace tapedeck
