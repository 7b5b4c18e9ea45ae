# How everything is compiled. Arithmetic must not depend on how the compiler fuses it, so contraction is off for every file.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# clang forgets the visibility of a namespace block where a function is defined outside of it, so there the library shows more.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
endif()
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

include(GNUInstallDirs)
include(CheckLinkerFlag)
include(CheckCXXSourceCompiles)

# The installed tools find the library beside them, wherever the prefix is moved.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

# Host flags stay away from nvcc, which does not know most of them.
function(tapedeck_cxx_options)
  foreach(flag IN LISTS ARGN)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:${flag}>)
  endforeach()
endfunction()

# Call sites and error messages name files as the tree does, whatever machine built them.
tapedeck_cxx_options(-Wall -Wextra -ffp-contract=off -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
# g++ 12 sees overlapping copies in std::string's own insert and operator+ (GCC bug 105651, fixed in 13).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  tapedeck_cxx_options(-Wno-restrict)
endif()
if(TAPEDECK_WERROR)
  tapedeck_cxx_options(-Werror)
endif()
# Kernels are compiled for AVX2 (kernels/CMakeLists.txt) where the target is x86-64, whatever the machine that builds.
check_cxx_source_compiles("
  #ifndef __x86_64__
  #error not x86-64
  #endif
  int main() {}" TAPEDECK_TARGETS_X86_64)

# Qt, TBB and oneDNN are not instrumented; tests/*.supp says what is silenced and why.
if(TAPEDECK_SANITIZE)
  add_compile_options(-fsanitize=${TAPEDECK_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TAPEDECK_SANITIZE})
  if(TAPEDECK_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  add_compile_definitions(TAPEDECK_SANITIZED=1)
endif()

find_program(TAPEDECK_CCACHE ccache)
if(TAPEDECK_CCACHE)
  foreach(language CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      # Precompiled headers are cached only if ccache may trust them.
      set(CMAKE_${language}_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${TAPEDECK_CCACHE})
    endif()
  endforeach()
endif()

check_linker_flag(CXX -fuse-ld=mold TAPEDECK_HAS_MOLD)
if(TAPEDECK_HAS_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# Every include of ours reads <tapedeck/FOLDER/...>, here and installed alike: in the build tree a folder of links
# stands for it (with samples and tests, which are not installed).
set(TAPEDECK_INCLUDE_DIR ${PROJECT_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${TAPEDECK_INCLUDE_DIR}/tapedeck)
foreach(folder kernels engine capture viewer samples tests)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${TAPEDECK_INCLUDE_DIR}/tapedeck/${folder} SYMBOLIC)
endforeach()
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/capture/tapedeck.h ${TAPEDECK_INCLUDE_DIR}/tapedeck/tapedeck.h SYMBOLIC)

# Half of what compiling a source file takes is reading the same headers: these are read once for each target. A source file still includes
# what it uses. -fpch-preprocess lets ccache see through the precompiled header.
function(tapedeck_precompile target)
  target_precompile_headers(${target} PRIVATE <algorithm> <cstdint> <functional> <map> <memory> <optional> <span> <string> <unordered_map>
    <utility> <vector> <fmt/format.h> <tapedeck/engine/eager/tensor.h> <tapedeck/engine/ir/graph.h> ${ARGN})
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endfunction()

add_library(tapedeck_headers INTERFACE)
target_include_directories(tapedeck_headers INTERFACE ${TAPEDECK_INCLUDE_DIR})
