// Lists of buffers as CSV, in the dialect of MiniMalloc (github.com/google/minimalloc). The instances of idealloc use it too.
//
//     id,lower,upper,size                  a header row; columns in any order; unknown columns are kept and ignored
//     0,16,40,4096                         alive at the times lower..upper-1
//
//     column               aliases            meaning
//     id                   buffer, buffer_id  a name; no two buffers have the same
//     lower                start, begin       the first time
//     upper                                   the time after the last; a column `end` holds the last time itself
//     size                                    bytes
//     alignment                               of the offset; empty: the default
//     hint                                    the earlier offset: all buffers keep their hints if that costs little; empty
//                                             or -1: none
//     offset                                  a fixed offset; empty or -1: any offset
//     gaps                                    "a-b c-d": the bytes are not needed at the times a..b-1 and c..d-1
//
// A gap may have a window, a-b@lo:hi: during the gap only the bytes lo..hi-1 of the buffer are needed. An empty window makes an
// ordinary gap, and a window of the whole size makes no gap. Other windows are refused, because place() keeps a buffer whole.
// The first blank line ends the list. Times need not be dense. Numbers are integers. A field may be quoted as in RFC 4180, but
// must not contain a line break. Messages name a column as the file does.
#pragma once

#include <tapedeck/capture/planner/place/place.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck TAPEDECK_API {

// A parsed list of buffers.
struct BufferList {
  std::vector<std::string> columns;            // the names in the header
  std::vector<std::vector<std::string>> rows;  // by buffer, by column
  std::vector<Tenant> buffers;                 // with dense times; buffer i is in line i + 2 of the file
  std::vector<std::string> doubts;             // ignored columns whose names look like misspelt known columns
  bool has_arenas = false;        // the column `arena` holds two values or more; offsets count from 0 in each arena
  std::int64_t unread_lines = 0;  // lines that are not blank after the blank line that ended the list
};

// Parses a list. Messages call it `name`. Throws ParseError, "NAME:LINE: error: ...", for the first faulty line.
BufferList parse_buffers(std::string_view text, const std::string& name, std::int64_t default_alignment = 1);

// The id of buffer i for messages: printable, and cut if it is long.
std::string shown_id(const BufferList& list, std::size_t i);

// Prints the columns that were read. The column `offset` holds the offset of each buffer. The column `arena` holds its arena if
// there are several; with one arena this column is left out.
std::string print_buffers(const BufferList& list, const Offsets& placed);

}  // namespace TAPEDECK_API
