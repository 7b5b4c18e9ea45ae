# Writes a C++ source that holds the text of other files, so that a program can hand it to a compiler at run time.
#
#   cmake -DOUT=source_texts.cpp -DPRELUDE=... -DLANES=... -DSCALAR=... -DHALF=... -DFUNCTIONS=... -DACTIVATIONS=... -DLOSSES=... -P embed.cmake
#
# Includes are left out: the prelude stands for them.
cmake_minimum_required(VERSION 3.25)
set(content "// Made by capture/codegen/embed.cmake.\n#include <tapedeck/capture/codegen/source_texts.h>\n\nnamespace tapedeck::codegen {\n")
foreach(text PRELUDE LANES SCALAR HALF FUNCTIONS ACTIVATIONS LOSSES)
  file(READ ${${text}} lines)
  string(REGEX REPLACE "#include <tapedeck/[^\n]*\n" "" lines "${lines}")
  string(REPLACE "#pragma once\n" "" lines "${lines}")
  if(NOT text STREQUAL "PRELUDE")
    string(REGEX REPLACE "#include <[^\n]*\n" "" lines "${lines}")
  endif()
  string(TOLOWER ${text} name)
  string(APPEND content "\nconst char* const k_${name} = R\"tapedeck(${lines})tapedeck\";\n")
endforeach()
string(APPEND content "\n}  // namespace tapedeck::codegen\n")
file(WRITE ${OUT} "${content}")
