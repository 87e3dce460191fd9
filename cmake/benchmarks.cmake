# One program per *_bench.cc; `make bench` runs them and the comparisons in tools/bench.
find_package(benchmark REQUIRED)
file(GLOB_RECURSE benchmarks CONFIGURE_DEPENDS plimsoll/*_bench.cc)
foreach(source ${benchmarks})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_compile_definitions(${name} PRIVATE SHARED_DATA="${PROJECT_SOURCE_DIR}/../shared")
  target_link_libraries(${name} PRIVATE plimsoll_cli benchmark::benchmark ${CMAKE_DL_LIBS})
endforeach()
