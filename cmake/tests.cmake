# One test program per folder, from its *_test.cc files; its tests carry the folder's name as a CTest label. It is linked
# with its folder and those before it only, so that it is quick to build by itself.
# A test that needs public data skips, saying so, when it is absent.
find_package(GTest REQUIRED)
find_path(RAPIDCHECK_INCLUDE rapidcheck.h REQUIRED)
find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
include(GoogleTest)
# What tests spend their time in is the library; they compile in two thirds of the time at -O0. The flag is linked, so that
# it comes after, and overrides, that of plimsoll_flags. One precompiled header serves all.
add_library(plimsoll_test_flags INTERFACE)
target_compile_options(plimsoll_test_flags INTERFACE $<$<CONFIG:RelWithDebInfo>:-O0>)
function(use_test_precompiled target)
  target_include_directories(${target} PRIVATE ${RAPIDCHECK_INCLUDE})
  target_link_libraries(${target} PRIVATE plimsoll_flags plimsoll_test_flags fmt::fmt spdlog::spdlog GTest::gmock_main)
  # Alike for the header and for programs; CMake would choose -fPIC for the one and -fPIE for the others.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  # With a few thread-local bytes and nothing else before them mold 1.10 begins this range in a page that is not mapped.
  target_link_options(${target} PRIVATE -Wl,-z,norelro)
  if(NOT target STREQUAL plimsoll_tests_precompiled)
    target_precompile_headers(${target} REUSE_FROM plimsoll_tests_precompiled)
  endif()
endfunction()
add_library(plimsoll_tests_precompiled OBJECT cmake/precompiled.cc)
target_precompile_headers(plimsoll_tests_precompiled PRIVATE
  <gmock/gmock.h> <gtest/gtest.h> <algorithm> <filesystem> <functional> <map> <memory> <optional> <span> <string> <thread> <vector> <fmt/format.h>)
use_test_precompiled(plimsoll_tests_precompiled)
file(GLOB folders_with_tests LIST_DIRECTORIES true CONFIGURE_DEPENDS plimsoll/*)
foreach(folder ${folders_with_tests})
  if(NOT IS_DIRECTORY ${folder})
    continue()
  endif()
  get_filename_component(name ${folder} NAME)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${folder}/*_test.cc ${folder}/*_testing.cc)
  if(NOT has_opencl)
    list(FILTER tests EXCLUDE REGEX "/device/opencl/")
  endif()
  if(NOT tests)
    continue()
  endif()
  # These compare with slow definitions of their own: optimised, they run in a quarter of the time.
  set(optimised ${tests})
  list(FILTER optimised INCLUDE REGEX "/plan/exactness_test|/kernels/(matmul|convolution|recurrent|internal/matmul_loops)_test")
  set(others ${tests})
  if(optimised)
    list(REMOVE_ITEM others ${optimised})
    set_source_files_properties(${optimised} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:RelWithDebInfo>:-O1> SKIP_PRECOMPILE_HEADERS ON)
  endif()
  compile_together(compiled ${name}_test ${others})
  add_executable(${name}_test ${compiled} ${optimised})
  use_test_precompiled(${name}_test)
  foreach(test ${tests})  # Only those that read data get its path: the others compile to the same objects in every clone, so ccache can share them.
    file(STRINGS ${test} reads_data REGEX "TEST_DATA|SHARED_DATA")
    if(reads_data)
      set_property(SOURCE ${test} APPEND PROPERTY COMPILE_DEFINITIONS TEST_DATA="${PROJECT_SOURCE_DIR}/testdata"
                   SHARED_DATA="${PROJECT_SOURCE_DIR}/../shared")
    endif()
  endforeach()
  target_link_libraries(${name}_test PRIVATE plimsoll_${name} GTest::gmock_main ${RAPIDCHECK_LIBRARY})
  gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 600 LABELS ${name})
endforeach()

# Suites on the far device (plimsoll/device/far), whose memory faults when it is taken for the host's: these in every run, and in
# `ctest -C Full` (make full) also the program's, and all with every operation as a fallback. Left out are tests that
#   - name CPU:0, or set its limit: DeviceCopyTest, Placement, GraphDevices, PrintTensor, ...
#   - are about what only CPU devices offer: sparse and ragged tensors, pools written in place, spilled and parked values,
#     distributed training, weights on a file's pages, convolutions with less scratch
#   - count bytes to the last one: a device's bytes are staged on the host, in the same budget, when the program reads them
# and, when every operation is a fallback (STAGED), those that
#   - expect a step's peak to be that of its plan on the device, or at most an eager step's: the operands of its largest operation are
#     in the same budget, on the host (StepPlan.TakesNoMore*, Steady.AStepTakes*, PlanBudget.*, RunBudget.*)
#   - train below the bytes that one operation needs with its copies: FitBudget.ALongSequence*, whose gradient reads all of the sequence
#   - lower the gate by steps that only the processor has: losses in slices (SliceLosses.*, FitBudget.LargeVocabularies*)
#   - compare a plan's extent with its budget, which then is larger than the extent (ProgramFamily.*, PlaceBuffers.*)
#   - count allocations of the heap in a whole program: a block for copies may need a new record (TrainFunction.AStepAllocates*)
function(test_on_far program)
  cmake_parse_arguments(far "FULL" "" "STAGED" ${ARGN})
  foreach(device FAR FAR_STAGED)
    if(device STREQUAL "FAR_STAGED")
      list(APPEND far_UNPARSED_ARGUMENTS ${far_STAGED})
    endif()
    list(JOIN far_UNPARSED_ARGUMENTS ":" left_out)
    string(TOLOWER ${device}_${program} name)
    set(only_full "")
    if(far_FULL OR device STREQUAL "FAR_STAGED")
      set(only_full CONFIGURATIONS Full)
    endif()
    add_test(NAME ${name} COMMAND ${program}_test --gtest_brief=1 --gtest_filter=*-${left_out} ${only_full})
    set_tests_properties(${name} PROPERTIES ENVIRONMENT PLIMSOLL_TEST_DEVICE=${device} LABELS far TIMEOUT 1200)
  endforeach()
endfunction()
if(NOT PLIMSOLL_SANITIZER)
  test_on_far(tensor PrintTensor.LeavesOut* PrintTensor.Shows* SlabsTest.* StorageTest.ChangesNothing* StorageTest.IsItsOwn*
              StorageTest.KeepsTheData* StorageTest.LoadsBytes* StorageTest.StaysLazy* TensorPool.* WhoHolds.WritesAnIndentedList)
  test_on_far(ops Coroutines.ShareAPool* DeviceCopyTest.IsTheTensor* DeviceCopyTest.Lets* DeviceCopyTest.Sends* Eviction.ARefusal*
              Eviction.Bytes* Eviction.WhatWasComputed* EvictionRecipes.AChain* EvictionRecipes.AnInput* EvictionRecipes.Convolutions* EvictionSpill.* Placement.*
              Ragged* Sparse* STAGED Eviction* ProfileOps.*)
  test_on_far(io Bundle.HoldsNoSecondCopy)
  test_on_far(observe)
  test_on_far(autograd GradientTape.CountsItsNodesAsOverheadUntilItsMemoryGoes Opencl* Optimizer.AStepThatFailsLeavesEverythingAsItWas
              Ragged* Sparse* STAGED EvictionOf* *EvictionOf*)
  test_on_far(graph Graph.CountsItsNodesAsOverhead Graph.PrintsSymbolicTensors GraphDevices.* ProgramPark.*
              RecomputeBudget.BranchesAndLoopsAreNotRepeated RunBudget.RefusesAFunctionsFirstStepWithoutATrace
              SaverTest.StaysWithinTheSessionsBudget
              STAGED Equality.AFunctionTakesWhatItsPlanSays PlaceBuffers.PutsBuffersThatLiveAtOnceApart
              PlanBudget.AFunctionStaysWithinTheScopeAround ProgramFamily.PlacesEveryMembersBuffersApart
              ProgramFamily.RecurrentLayersComputeGatesAgainWithTheSameBytes ProgramSpill.*
              RunBudget.HoldsForRunsOfSeveralThreadsInScopesOfTheirOwn RunBudget.NamesTheBudgetAboveThatIsFull SliceLosses.*
              Steady.AStepTakesWhatThePlanSaysAndLessThanEager TrainFunction.AStepAllocatesNothingOnTheHeap)
  test_on_far(model *Opencl* TwoDevices.* Dataset.SaysWhatAPassHoldsAtMost Distributed* SpreadParameters* FitGroup.* FitPark.*
              Forecast.IsTrueToTheByteForPublishedModels KerasFile.WeightsStay* OnnxModelTest.ExternalWeightsStay*
              STAGED *DeviceViews.BudgetsHold* Advice.* Dataset.IsCharged* FitBudget.ALongSequence* FitBudget.LargeVocabularies* FitSpill.* Forecast.* Model.ForecastsWhat* OnnxSuite.NodeCases*
              StepPlan.TakesNoMore*)
  test_on_far(cli FULL DeviceOption.* DevicesCommand.PrintsOneJsonDocument TrainBudget.* TrainCommand.PredictNamesABudget*
              TrainCommand.TakesWhatTheForecastSays)
endif()

# The checks check themselves; and what is installed can be used from outside.
add_test(NAME checks_refuse_bad_trees COMMAND ${PROJECT_SOURCE_DIR}/tools/checks_test)
set_tests_properties(checks_refuse_bad_trees PROPERTIES LABELS tools TIMEOUT 120)
if(PLIMSOLL_EXAMPLES)
  add_test(NAME readme_program COMMAND ${PROJECT_SOURCE_DIR}/tools/check_readme ${CMAKE_BINARY_DIR}/examples/00_first
           $<TARGET_FILE:plimsoll_program>)
  set_tests_properties(readme_program PROPERTIES LABELS tools TIMEOUT 60)
endif()
add_test(NAME documented_commands COMMAND ${PROJECT_SOURCE_DIR}/tools/check_commands $<TARGET_FILE:plimsoll_program>)
set_tests_properties(documented_commands PROPERTIES LABELS tools TIMEOUT 300)
add_test(NAME use_in_a_shell COMMAND ${PROJECT_SOURCE_DIR}/tools/check_shell $<TARGET_FILE:plimsoll_program>)
set_tests_properties(use_in_a_shell PROPERTIES LABELS tools TIMEOUT 300)
add_test(NAME exported_traces COMMAND ${PROJECT_SOURCE_DIR}/tools/check_export $<TARGET_FILE:plimsoll_program>)
set_tests_properties(exported_traces PROPERTIES LABELS tools TIMEOUT 300)
if(TARGET plimsoll_mpi AND NOT PLIMSOLL_SANITIZER)  # Under mpirun; skips where there is none. MPI itself leaks and races.
  add_test(NAME training_under_mpirun COMMAND ${PROJECT_SOURCE_DIR}/tools/check_mpi $<TARGET_FILE:plimsoll_program>)
  set_tests_properties(training_under_mpirun PROPERTIES LABELS tools TIMEOUT 300 SKIP_RETURN_CODE 77 RUN_SERIAL ON)
endif()
if(NOT PLIMSOLL_SANITIZER)
  # Interpreters load the library while they run: what it has of static thread-local memory must fit into the rest.
  enable_language(C)
  add_executable(load_library ${PROJECT_SOURCE_DIR}/tools/load_library.c)
  target_link_libraries(load_library PRIVATE ${CMAKE_DL_LIBS})
  add_test(NAME library_loads_at_run_time COMMAND load_library $<TARGET_FILE:plimsoll> 256)
  set_tests_properties(library_loads_at_run_time PROPERTIES LABELS tools TIMEOUT 60)
  add_test(NAME installed_package COMMAND ${PROJECT_SOURCE_DIR}/tools/check_install ${CMAKE_BINARY_DIR})
  set_tests_properties(installed_package PROPERTIES LABELS tools TIMEOUT 300)
endif()

# A few kills of everything that saves; `make full` has hundreds.
add_executable(save_loop ${PROJECT_SOURCE_DIR}/tools/save_loop.cc)
target_link_libraries(save_loop PRIVATE plimsoll plimsoll_flags)
add_test(NAME killed_saves COMMAND ${PROJECT_SOURCE_DIR}/tools/check_kills --kills 5 $<TARGET_FILE:save_loop>)
set_tests_properties(killed_saves PROPERTIES LABELS tools TIMEOUT 300)

# Traces for the tests of reports in a browser (tools/check_report).
add_executable(make_traces ${PROJECT_SOURCE_DIR}/tools/make_traces.cc)
target_link_libraries(make_traces PRIVATE plimsoll plimsoll_flags)
add_executable(device_speed EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tools/device_speed.cc)
target_link_libraries(device_speed PRIVATE plimsoll fmt::fmt)
add_executable(distributed_rate EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tools/distributed_rate.cc)
target_link_libraries(distributed_rate PRIVATE plimsoll)
if(NOT PLIMSOLL_SANITIZER)
  add_test(NAME exported_million COMMAND ${PROJECT_SOURCE_DIR}/tools/check_export $<TARGET_FILE:plimsoll_program> --million
           $<TARGET_FILE:make_traces>)
  set_tests_properties(exported_million PROPERTIES LABELS tools TIMEOUT 300)
  add_test(NAME live_processes COMMAND ${PROJECT_SOURCE_DIR}/tools/check_live $<TARGET_FILE:plimsoll_program>)
  set_tests_properties(live_processes PROPERTIES LABELS tools TIMEOUT 300)
endif()
add_executable(trace_cost EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tools/trace_cost.cc)
target_link_libraries(trace_cost PRIVATE plimsoll)

# The program as it is without Node and npm: its own, empty page comes before the library's.
execute_process(COMMAND ${CMAKE_COMMAND} -DOUT=${CMAKE_BINARY_DIR}/without_page -DWEB=${PROJECT_SOURCE_DIR}/web
                        -P ${PROJECT_SOURCE_DIR}/cmake/make_page.cmake ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
add_executable(plimsoll_without_page plimsoll/cli/main.cc ${CMAKE_BINARY_DIR}/without_page/page_template.cc)
target_link_libraries(plimsoll_without_page PRIVATE plimsoll_cli)
add_test(NAME report_without_the_page COMMAND ${PROJECT_SOURCE_DIR}/tools/check_without_page $<TARGET_FILE:plimsoll_without_page>)
set_tests_properties(report_without_the_page PROPERTIES LABELS tools TIMEOUT 120)
