# One program per *_bench.cc; `make bench` runs them and the comparisons in tools/bench.
find_package(benchmark REQUIRED)
find_path(TORCH_API_INCLUDE torch/torch.h PATH_SUFFIXES torch/csrc/api/include REQUIRED)
file(GLOB_RECURSE benchmarks CONFIGURE_DEPENDS plimsoll/*_bench.cc)
foreach(source ${benchmarks})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_compile_definitions(${name} PRIVATE SHARED_DATA="${PROJECT_SOURCE_DIR}/../shared")
  target_link_libraries(${name} PRIVATE plimsoll_cli benchmark::benchmark ${CMAKE_DL_LIBS})
  file(STRINGS ${source} uses_torch REGEX "include <(torch/torch|ATen/ATen)[.]h>")
  if(uses_torch)  # Beside Debian's libtorch, in one process.
    target_include_directories(${name} SYSTEM PRIVATE ${TORCH_API_INCLUDE})
    target_link_libraries(${name} PRIVATE torch torch_cpu c10)
  endif()
endforeach()

# matmul_bench compares with OpenBLAS, whose builds it loads side by side by their paths, and with oneDNN.
find_library(OPENBLAS_SERIAL NAMES libopenblas.so.0 PATH_SUFFIXES openblas-serial REQUIRED)
find_library(OPENBLAS_PTHREAD NAMES libopenblas.so.0 PATH_SUFFIXES openblas-pthread REQUIRED)
find_library(DNNL dnnl REQUIRED)
target_compile_definitions(matmul_bench PRIVATE OPENBLAS_SERIAL="${OPENBLAS_SERIAL}" OPENBLAS_PTHREAD="${OPENBLAS_PTHREAD}")
target_link_libraries(matmul_bench PRIVATE ${DNNL})

# Eigen is compiled with its bench: give it what the machine has, as our kernels have.
target_compile_options(sparse_bench PRIVATE -O3 -march=native)
