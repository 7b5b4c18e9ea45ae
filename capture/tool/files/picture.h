// A plan as a picture in a file: .svg is written here, .png by the viewer.
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <string>

namespace tapedeck::tool {

// UsageError if the name ends in neither .svg nor .png, DeviceError if in .png and there is no viewer: before anything is
// planned.
void check_picture(const std::string& path);
// A plan that does not fit its budget is drawn as .svg only: for .png that is said on stderr, and nothing is written.
void write_picture(const std::string& path, const Graph& captured, const Plan& plan);

// The program beside this one. DeviceError, which ends the tool with what "built without it" has, if it is not there.
std::string viewer_program();

}  // namespace tapedeck::tool
