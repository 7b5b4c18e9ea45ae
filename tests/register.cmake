# tapedeck_tests(NAME FOLDER [OWN_MAIN] [ONLY file] [LABEL label] [SHARDS n] [SOURCES globs...] LINK targets...) makes one executable from
# the sources of tests/FOLDER, from one file of that folder, or from the files that the globs name, and registers it with CTest: as n tests
# (shards), to which GoogleTest deals the cases out in turn. A test of CTest for each case would spend a quarter of its time on starting programs.
# To run one case, run the executable with --gtest_filter.

# The environment of every test. The ctest process itself sets it, so that the programs that list their cases have it too. Builds without
# sanitizers ignore the options of sanitizers. AddressSanitizer notes the five innermost callers of each allocation and release instead of 30, which is
# a tenth of the time of the tests; a report has all callers of the access itself. To see more, run one test with malloc_context_size=30.
set(environment
  "QT_QPA_PLATFORM=offscreen"  # Qt draws without a display
  "TAPEDECK_CALIBRATION=off"   # the same plans on every machine
  "TAPEDECK_CHECK_PLANS=1"     # the checker judges every plan that a test makes
  "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:allocator_may_return_null=1:malloc_context_size=5"
  "LSAN_OPTIONS=suppressions=${CMAKE_CURRENT_SOURCE_DIR}/lsan.supp:print_suppressions=0"
  "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
  "TSAN_OPTIONS=suppressions=${CMAKE_CURRENT_SOURCE_DIR}/tsan.supp:second_deadlock_stack=1:allocator_may_return_null=1")
if(TARGET tapedeck-tool)
  list(APPEND environment "TAPEDECK_TOOL=$<TARGET_FILE:tapedeck-tool>")
  list(APPEND environment "TAPEDECK_TOOL_ON_FAKE_DEVICE=$<TARGET_FILE:tool_on_fake_device>")
endif()
set(content "")
foreach(setting IN LISTS environment)
  string(REGEX REPLACE "^([A-Z_]+)=(.*)$" "set(ENV{\\1} \"\\2\")\n" setting "${setting}")
  string(APPEND content "${setting}")
endforeach()
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/environment.cmake CONTENT "${content}")
set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/environment.cmake)

# Tests need no speed, so they are not optimized: that takes a fifth less time to compile, and half of it under the sanitizers. These few are, because
# their oracles compute much.
set(optimized "/reference/|/kernels/cpu/conv_test|/kernels/cuda/products/|/ops/attention_test|/ops/norm_test|/all_ops_(reference|layout|inplace)_test")
string(APPEND optimized "|/plan_mutation_test|/gpu/harness/|/exact_search_test")

# compile_tests(TARGET LEVEL targets...) sets how the sources of TARGET are compiled: at the optimization LEVEL (-O0, -O1), with what they use of the
# targets.
function(compile_tests target level)
  target_compile_definitions(${target} PRIVATE ${TEST_DIRS})
  target_include_directories(${target} PRIVATE ${TAPEDECK_INCLUDE_DIR})
  foreach(used IN LISTS ARGN)
    if(TARGET ${used})
      target_link_libraries(${target} PRIVATE ${used})
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE GTest::gtest fmt::fmt)
  target_compile_options(${target} PRIVATE ${level} ${TAPEDECK_PRECOMPILED})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "OBJECT_LIBRARY")  # its objects are parts of a program, and a precompiled header serves only what is compiled in the same way
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIE)
  endif()
endfunction()

# Half of the time of compiling a test goes into reading these headers. tests_headers-O0 and tests_headers-O1 precompile them for all tests that are
# compiled like them. The tests of the kernels see no header of the engine, and those of the viewer have the flags of Qt: these have headers of their own.
set(headers <gtest/gtest.h> <fmt/format.h> <vector> <string>)
file(CONFIGURE OUTPUT headers.cpp CONTENT "// Only its precompiled headers matter.\n")
foreach(level -O0 -O1)
  add_library(tests_headers${level} OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/headers.cpp)
  compile_tests(tests_headers${level} ${level} ${TAPEDECK_OBJECTS} tapedeck_zoo)
  target_precompile_headers(tests_headers${level} PRIVATE ${headers} <tapedeck/engine/ops/ops.h>)
endforeach()

function(precompile_headers target level shared)
  if(shared)
    target_precompile_headers(${target} REUSE_FROM tests_headers${level})
  elseif(target MATCHES "^tests_kernels")
    target_precompile_headers(${target} PRIVATE ${headers})
  else()
    target_precompile_headers(${target} PRIVATE ${headers} <tapedeck/engine/ops/ops.h>)
  endif()
endfunction()

add_library(tests_no_sync OBJECT ${CMAKE_CURRENT_SOURCE_DIR}/no_sync.cpp)

function(tapedeck_tests name folder)
  cmake_parse_arguments(ARG "OWN_MAIN" "ONLY;LABEL;SHARDS" "LINK;SOURCES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  if(ARG_OWN_MAIN AND NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/main.cpp)
    return()
  endif()
  if(ARG_SOURCES)
    file(GLOB sources CONFIGURE_DEPENDS ${ARG_SOURCES})
  endif()
  if(ARG_ONLY)
    list(FILTER sources INCLUDE REGEX "/${folder}/${ARG_ONLY}$")
  endif()
  if(NOT sources)
    return()
  endif()
  set(shared ON)
  if(ARG_OWN_MAIN OR folder STREQUAL "kernels")
    set(shared OFF)
  endif()
  set(fast ${sources})
  list(FILTER fast INCLUDE REGEX "${optimized}")
  if(fast)
    list(REMOVE_ITEM sources ${fast})
    add_library(${name}_optimized OBJECT ${fast})
    compile_tests(${name}_optimized -O1 ${ARG_LINK})
    precompile_headers(${name}_optimized -O1 ${shared})
  endif()
  add_executable(${name} ${sources})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX AUTOMOC ${ARG_OWN_MAIN})
  compile_tests(${name} -O0 ${ARG_LINK})
  precompile_headers(${name} -O0 ${shared})
  target_link_libraries(${name} PRIVATE tests_no_sync)
  # The folders of engine and capture are many and small, and their small ones join their parents. The rooms of the device's kernels have headers that
  # do not go together.
  set(size 16)
  set(fewest 3)
  if(folder MATCHES "^(engine|capture)$")
    set(size 20)
    set(fewest 9)
  endif()
  tapedeck_batch(${name} ${size} ${fewest})
  if(fast)
    tapedeck_batch(${name}_optimized 10 ${fewest})
    target_link_libraries(${name} PRIVATE ${name}_optimized)
  endif()
  if(NOT ARG_OWN_MAIN)
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
  endif()
  # Some tests run the tool or the viewer, so these are built first.
  if(NOT folder MATCHES "^(kernels|engine|threads)$")
    foreach(program tapedeck-tool tapedeck-viewer)
      if(TARGET ${program})
        add_dependencies(${name} ${program})
      endif()
    endforeach()
  endif()

  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  math(EXPR last "${ARG_SHARDS} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${name}.${shard} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name}.${shard} PROPERTIES TIMEOUT 1800 LABELS "${ARG_LABEL}"
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()
