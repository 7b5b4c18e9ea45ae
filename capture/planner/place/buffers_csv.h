// Lists of buffers as CSV, in the dialect of MiniMalloc (github.com/google/minimalloc), which idealloc's instances use too.
//
//     id,lower,upper,size                  a header row; columns in any order; others are kept and not looked at
//     0,16,40,4096                         alive at the times lower..upper-1
//
//     column               aliases            meaning
//     id                   buffer, buffer_id  a name, each once
//     lower                start, begin       first time
//     upper                                   time after the last; `end` is the last time itself
//     size                                    bytes
//     alignment                               of the offset; empty: the default
//     hint                                    the offset it had: all lie there again if that costs little; empty or -1: none
//     offset                                  it lies there, and others make way; empty or -1: anywhere
//     gaps                                    "a-b c-d": its bytes are not needed during a..b-1
//
// A gap may have a window, a-b@lo:hi: only bytes lo..hi-1 of the buffer are needed then. An empty window makes it a gap like
// any other, one of the whole size makes it none; all others are refused, for a buffer is needed whole or not at all. The first
// blank line ends the list, whatever follows. Times need not be dense. Numbers are whole; fields may be quoted as in RFC 4180,
// but go over one line. Messages name a column as the file does.
#pragma once

#include <tapedeck/capture/planner/place/place.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct BufferList {
  std::vector<std::string> columns;            // as the header has them
  std::vector<std::vector<std::string>> rows;  // by buffer, by column
  std::vector<Tenant> buffers;                 // at dense times; that of row i is in line i + 2
  std::vector<std::string> doubts;             // columns that are not looked at and look like misspelt ones that would be
  bool has_arenas = false;                     // a column `arena` says two things: offsets count within arenas, from 0 in each
  std::int64_t unread_lines = 0;               // that follow the blank line that ended the list and are not blank
};

// `name` is what messages call it. Throws ParseError, "NAME:LINE: error: ...", for the first line that is wrong.
BufferList parse_buffers(std::string_view text, const std::string& name, std::int64_t default_alignment = 1);

// The id of buffer i as messages say it: printable, and not too long.
std::string shown_id(const BufferList& list, std::size_t i);

// The columns that were read, with the offset of each in `offset`, and with several arenas its number in `arena`: a column that
// is gone if there is one arena.
std::string print_buffers(const BufferList& list, const Offsets& placed);

}  // namespace TAPEDECK_API
