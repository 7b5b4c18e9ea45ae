// What a user may have meant by the name of a file that is not there.
#pragma once

#include <string>

namespace tapedeck::tool {

// Throws FileError if no file has this path: "c.tpe: cannot read: No such file or directory: did you mean 'c.tape'?". A name
// that a model has, such as lenet, gives the line that records the model.
void require_file(const std::string& path);

}  // namespace tapedeck::tool
