// A captured step at other sizes, for --dims.
#pragma once

#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/sizes/dim_table.h>

#include <string>
#include <vector>

namespace tapedeck::tool {

// load_any(), and the named dimensions of the file: the notes of a text graph, or the metadata "dims" of a .tape. Often there
// are none.
TapeFile load_with_dims(const std::string& path, Check check, DimTable* dims);

// Gives the graph of the file other sizes. Each of `sizes` is NAME=SIZE, all of one kind:
//   - a named dimension of the file;
//   - an option with which `record` recorded the model of the file (batch, image, seq, layers, width): the model is recorded
//     again, if the graph is still the one that it records;
//   - INPUT@AXIS: one axis of one input. Every other size follows by inference, and what inference cannot know is an error.
// The plan and the profile are dropped, and so are sample inputs that no longer fit, which is noted on stderr. State keeps its
// types. Throws UsageError, TypeError.
void resize(TapeFile* file, const DimTable& dims, const std::vector<std::string>& sizes);

}  // namespace tapedeck::tool
