// The table of the formats of other programs that become graphs of `opaque` nodes. The tool and the viewer read it.
#pragma once

#include <tapedeck/capture/import/imported_results.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <string>
#include <string_view>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct ImportFormat {
  const char* name;     // as `tapedeck import` takes it
  const char* help;     // one sentence
  const char* endings;  // of usual files, for a dialog: "*.json *.json.gz"
  // The text may be anything. Throws ParseError.
  Graph (*read)(std::string_view text, const std::string& file, ImportedResults results);
};

const std::vector<ImportFormat>& import_formats();

}  // namespace TAPEDECK_API
