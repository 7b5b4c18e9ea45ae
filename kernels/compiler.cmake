# Compiler flags of all targets. Contraction of floating-point expressions is off for every file, so that the results do not
# depend on the compiler's choice of instructions.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# clang ignores the visibility of a namespace block for a function that is defined outside the block, so with clang the library
# exports more symbols.
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
include(CheckCXXCompilerFlag)
include(CheckCXXSourceCompiles)

# The installed programs find the library by a relative path, so that a user may move the installation.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

# These flags go to the host compiler only, because nvcc does not know most of them.
function(tapedeck_cxx_options)
  foreach(flag IN LISTS ARGN)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:${flag}>)
  endforeach()
endfunction()

# Call sites and error messages name files relative to the root of the tree, on every machine.
tapedeck_cxx_options(-Wall -Wextra -ffp-contract=off -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
# g++ 12 warns wrongly about overlapping copies inside std::string::insert and operator+ (GCC bug 105651, fixed in 13).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  tapedeck_cxx_options(-Wno-restrict)
endif()
# g++ first collects garbage when its heap has grown by 128 MB, which a precompiled header nearly takes. A later beginning costs up to a sixth more
# memory, and saves 4 to 10 % of the time.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  tapedeck_cxx_options(--param=ggc-min-heapsize=400000)
endif()
if(TAPEDECK_WERROR)
  tapedeck_cxx_options(-Werror)
endif()
# Kernels are compiled for AVX2 (kernels/CMakeLists.txt) if the target is x86-64. The machine that builds does not matter.
check_cxx_source_compiles("
  #ifndef __x86_64__
  #error not x86-64
  #endif
  int main() {}" TAPEDECK_TARGETS_X86_64)

# Qt, TBB and oneDNN are not instrumented. tests/*.supp lists the reports that are suppressed, with the reasons.
if(TAPEDECK_SANITIZE)
  add_compile_options(-fsanitize=${TAPEDECK_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TAPEDECK_SANITIZE})
  if(TAPEDECK_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
    # clang++ leaves some checks out of the functions of libstdc++, so that it can inline them: the file says which ones, and why.
    if(TAPEDECK_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      set(ignorelist -fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/tests/ubsan.ignore)
      set(CMAKE_REQUIRED_FLAGS -fsanitize=${TAPEDECK_SANITIZE})
      check_cxx_compiler_flag(${ignorelist} TAPEDECK_HAS_IGNORELIST)
      unset(CMAKE_REQUIRED_FLAGS)
      if(TAPEDECK_HAS_IGNORELIST)
        add_compile_options(${ignorelist})
      endif()
    endif()
  endif()
  add_compile_definitions(TAPEDECK_SANITIZED=1)
endif()

# Under a sanitizer, the tool, the viewer, the zoo and the programs are not optimized: compiling them takes half as long, and a run of them spends most of
# its time in the library.
function(tapedeck_keep_plain)
  if(NOT TAPEDECK_SANITIZE)
    return()
  endif()
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE -O0)
  endforeach()
endfunction()

# What does little work beside that of the library is compiled at -O1 where the build is at -O2: that takes a quarter to a third less time.
function(tapedeck_keep_light)
  if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_CXX_FLAGS_RELEASE MATCHES "-O[23]")
    foreach(target IN LISTS ARGN)
      target_compile_options(${target} PRIVATE -O1)
    endforeach()
  endif()
endfunction()

# Counters of the branches that run, for tests/coverage. Templates in headers are counted where they are instantiated.
if(TAPEDECK_COVERAGE)
  add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
  add_link_options(-fprofile-instr-generate)
endif()

# The fuzzers of tests/fuzzers are built with AddressSanitizer by clang++. They are guided by what runs of the rooms that read foreign
# input, so these rooms count their branches in that build.
set(TAPEDECK_FUZZERS OFF)
if(TAPEDECK_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer,address)
  check_cxx_source_compiles("
    #include <cstddef>
    #include <cstdint>
    extern \"C\" int LLVMFuzzerTestOneInput(const std::uint8_t*, std::size_t) { return 0; }" TAPEDECK_HAS_LIBFUZZER)
  unset(CMAKE_REQUIRED_FLAGS)
  set(TAPEDECK_FUZZERS ${TAPEDECK_HAS_LIBFUZZER})
endif()
# tapedeck_guide_fuzzers(TARGET rooms and files...): the batches of a room count their branches; a file of another room does, and is compiled alone.
# The compiler reads the names of the batches and files from a list, so that sources with and without counters have the same options, and are in
# batches. Its name has a hash of its text, because ccache does not read it.
function(tapedeck_guide_fuzzers target)
  if(NOT TAPEDECK_FUZZERS)
    return()
  endif()
  set(list "fun:*\n")
  foreach(place IN LISTS ARGN)
    cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE floor)
    if(place MATCHES "\\.cpp$")
      set_source_files_properties(${place} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      string(APPEND list "src:*/${floor}/${place}\n")
    else()
      string(REPLACE "/" "_" batch ${floor}/${place})
      string(APPEND list "src:*/${floor}/${place}/*.cpp\nsrc:*/Unity/unity_${batch}_[0-9]*\n")
    endif()
  endforeach()
  string(SHA1 hash "${list}")
  set(file ${CMAKE_CURRENT_BINARY_DIR}/guide_${hash}.txt)
  file(WRITE ${file} "${list}")
  target_compile_options(${target} PRIVATE
    -fsanitize-coverage=inline-8bit-counters,indirect-calls,trace-cmp,pc-table -fsanitize-coverage-allowlist=${file})
endfunction()

find_program(TAPEDECK_CCACHE ccache)
if(TAPEDECK_CCACHE)
  foreach(language CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/kernels/compile_cached.sh ${TAPEDECK_CCACHE})
    endif()
  endforeach()
endif()

check_linker_flag(CXX -fuse-ld=mold TAPEDECK_HAS_MOLD)
if(TAPEDECK_HAS_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# Every include of this project reads <tapedeck/FOLDER/...>, in the tree and after installation. In the build tree, `tapedeck` is a
# folder of links to the source folders, including samples and tests, which are not installed.
set(TAPEDECK_INCLUDE_DIR ${PROJECT_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${TAPEDECK_INCLUDE_DIR}/tapedeck)
foreach(folder kernels engine capture viewer samples tests)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${TAPEDECK_INCLUDE_DIR}/tapedeck/${folder} SYMBOLIC)
endforeach()
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/capture/tapedeck.h ${TAPEDECK_INCLUDE_DIR}/tapedeck/tapedeck.h SYMBOLIC)

# Compiling a source file spends half of its time on the same headers, so these headers are precompiled once per target. A source file
# still includes every header that it uses. With -fpch-preprocess, ccache sees the content of the precompiled header. clang++ would write the times of
# the headers into it, and refuse it in another checkout, or after `git checkout`, when it comes from the cache.
set(TAPEDECK_PRECOMPILED $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess> "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
function(tapedeck_precompile target)
  target_precompile_headers(${target} PRIVATE <algorithm> <cstdint> <functional> <map> <memory> <optional> <span> <string> <unordered_map>
    <utility> <vector> <fmt/format.h> <tapedeck/engine/eager/tensor.h> <tapedeck/engine/ir/graph.h> ${ARGN})
  target_compile_options(${target} PRIVATE ${TAPEDECK_PRECOMPILED})
endfunction()
# tapedeck_reuse_precompiled(TARGET OWNER): TARGET reads the precompiled header of OWNER. Both have the same options, but for -O1 beside -O2.
function(tapedeck_reuse_precompiled target owner)
  target_precompile_headers(${target} REUSE_FROM ${owner})
  target_compile_options(${target} PRIVATE ${TAPEDECK_PRECOMPILED})
endfunction()

# A batch is one file that includes several sources of a target, so that the compiler reads their headers and instantiates their templates once.
# tapedeck_batch(TARGET SIZE [FEWEST]) makes batches of at most SIZE sources, each of one folder; a folder with fewer than FEWEST sources (3) counts as
# a part of its parent, but the tests of two floors are never in one batch. The sources of a batch share their file-local names, so a name that two of them
# declare must mean one thing: it belongs in a header, or says what it is for. A source with options of its own is compiled alone, and so is every
# source under -DTAPEDECK_BATCHES=OFF.
option(TAPEDECK_BATCHES "Compile the sources of a folder in batches" ON)
function(tapedeck_batch target size)
  if(NOT TAPEDECK_BATCHES)
    return()
  endif()
  set(fewest ${ARGN})
  if(NOT fewest)
    set(fewest 3)
  endif()
  get_target_property(sources ${target} SOURCES)
  list(SORT sources)
  set(folders "")
  foreach(source IN LISTS sources)
    get_source_file_property(alone ${source} SKIP_PRECOMPILE_HEADERS)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
    if(path MATCHES "\\.cpp$" AND NOT alone)
      cmake_path(GET path PARENT_PATH folder)
      list(APPEND folders ${folder})
      list(APPEND sources_${folder} ${source})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES folders)
  while(folders)
    list(SORT folders ORDER DESCENDING)  # a folder comes before its parent
    list(POP_FRONT folders folder)
    cmake_path(GET folder PARENT_PATH parent)
    list(LENGTH sources_${folder} count)
    if(count LESS ${fewest} AND NOT parent MATCHES "^(tests)?$")
      list(APPEND sources_${parent} ${sources_${folder}})
      list(APPEND folders ${parent})
      list(REMOVE_DUPLICATES folders)
      continue()
    endif()
    math(EXPR batches "(${count} + ${size} - 1) / ${size}")
    string(REPLACE "/" "_" name ${folder})
    set(place 0)
    foreach(source IN LISTS sources_${folder})
      math(EXPR batch "${place} * ${batches} / ${count}")
      math(EXPR place "${place} + 1")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${name}_${batch})
    endforeach()
  endwhile()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

add_library(tapedeck_headers INTERFACE)
target_include_directories(tapedeck_headers INTERFACE ${TAPEDECK_INCLUDE_DIR})
