// The names inside a .tape file (capture/file/FORMAT.md), shared by its writer and its reader, and the reader of bytes in
// memory.
#pragma once

#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/formats/checksum.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace tapedeck {

namespace tape_file {

inline constexpr int kFormat = 1;              // raised when a reader of the format before would misread a file
inline constexpr std::size_t kAlignment = 64;  // of every tensor's data in the file

// tensors
inline constexpr std::string_view kGraph = "graph";
inline constexpr std::string_view kPlannedGraph = "planned_graph";
inline constexpr std::string_view kPlan = "plan";
inline constexpr std::string_view kProfile = "profile";
inline constexpr std::string_view kState = "state/";
inline constexpr std::string_view kInput = "input/";
inline constexpr std::string_view kConstant = "constant/";
inline constexpr std::string_view kPad = "pad/";

// metadata; keys with these two prefixes are ours, all others belong to the writer
inline constexpr std::string_view kReserved = "tapedeck.";
inline constexpr std::string_view kOpVersion = "op.";
inline constexpr std::string_view kFormatKey = "tapedeck.format";
inline constexpr std::string_view kChecksum = "tapedeck.checksum.";

// A header begins with exactly these bytes; then come the sixteen digits of its own checksum.
inline constexpr std::string_view kHeaderStart = R"({"__metadata__":{"tapedeck.header_checksum":")";
inline constexpr std::size_t kDigits = 16;
inline constexpr std::size_t kDigitsAt = 8 + kHeaderStart.size();

inline bool is_reserved(std::string_view key) { return key.starts_with(kReserved) || key.starts_with(kOpVersion); }

// XXH64 of the length and the header with the digits at kDigitsAt taken as zeros. REQUIRES: at least kDigitsAt + kDigits bytes.
std::uint64_t header_checksum(Bytes length_and_header);

// The two graphs of a file must have the same inputs, state and outputs. Empty if they have, else the difference.
std::string signature_difference(const Graph& captured, const Graph& planned);

// A plan must update the state that the captured graph updates; only updates of a state by itself may be left out. Empty if it
// does, else the difference. REQUIRES: the graphs have one signature.
std::string updates_difference(const Graph& captured, const Plan& plan);

}  // namespace tape_file

// load_tape() on bytes already in memory; `path` is for messages.
TapeFile read_tape(Bytes file, const std::string& path, Check check);

}  // namespace tapedeck
