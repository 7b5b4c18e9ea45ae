// What a user may have meant by the name of a file that is not there.
#pragma once

#include <string>

namespace tapedeck::tool {

// Throws FileError if no file has this path: "c.tpe: cannot read: No such file or directory: did you mean 'c.tape'?". A name
// that a model has, such as lenet, gives the line that records the model. Suggested are graphs and captured steps.
void require_file(const std::string& path);
// The same for a file of values, weights or source code: any file of the folder is suggested, and no model.
void require_other_file(const std::string& path);

}  // namespace tapedeck::tool
