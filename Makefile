# Plimsoll: every target sets up what it needs (Debian packages, configuration) and is quick when that is done.
JOBS ?= $(shell nproc)
export JOBS
BUILD = cmake --build
TEST = ctest -j$(JOBS) --output-on-failure --test-dir

.PHONY: help build test python wheel demo full bench golden interop lint format asan tsan clang fuzz deb install clean
help:
	@echo "make demo     build, then see it work"
	@echo "make test     build and run all tests"
	@echo "make python   build the Python package and test it; make wheel [PYTHON=python3.12] packs it in build/wheel"
	@echo "make bench    measurements against peers (installs them)"
	@echo "make full     tests, checks, clang, clang-tidy, all sanitizers, reports in a browser"
	@echo "make build | lint | golden | format | asan | tsan | clang | fuzz | interop | deb | install PREFIX=dir | clean"

# Without Node and npm everything except the HTML report page is built.
build:
	@tools/setup build test
	@tools/setup page || echo "make: building without the page of reports"
	@tools/setup mpi || echo "make: building without the adapter for MPI"
	@tools/setup opencl || echo "make: building without OpenCL devices, or without one for this processor"
	@cmake --preset default >/dev/null
	@$(BUILD) build -j$(JOBS)

test: build
	@tools/setup onnx || echo "make: testing without the test data of ONNX"
	@$(TEST) build; status=$$?; tools/show_skipped build; exit $$status
	@tools/python test-if-can

# The Python package, on the library in build; of that only what it needs.
python wheel:
	@tools/setup build test python
	@tools/setup page || echo "make: building without the page of reports"
	@tools/setup mpi || echo "make: building without the adapter for MPI"
	@tools/setup opencl || echo "make: building without OpenCL devices, or without one for this processor"
	@cmake --preset default >/dev/null
	@$(BUILD) build -j$(JOBS) --target libplimsoll.so plimsoll_program
	@tools/python $(if $(filter wheel,$@),wheel,test)

demo:
	@tools/setup build test
	@tools/setup page || echo "make: building without the page of reports"
	@tools/setup mpi || echo "make: building without the adapter for MPI"
	@tools/setup opencl || echo "make: building without OpenCL devices, or without one for this processor"
	@cmake --preset default >/dev/null
	@$(BUILD) build -j$(JOBS) --target plimsoll_program
	@build/plimsoll demo --out build/demo

bench:
	@tools/setup build bench
	@cmake --preset bench >/dev/null
	@$(BUILD) build-bench -j$(JOBS)
	@tools/bench

# The whole suite under a sanitizer; or built by clang.
asan tsan clang:
	@tools/setup build test $(if $(filter clang,$@),full)
	@cmake --preset $@ >/dev/null
	@$(BUILD) build-$@ -j$(JOBS)
	@$(TEST) build-$@; status=$$?; tools/show_skipped build-$@; exit $$status

fuzz:
	@tools/setup build full
	@cmake --preset fuzz >/dev/null
	@$(BUILD) build-fuzz -j$(JOBS)
	@tools/fuzz $(SECONDS_EACH)

lint:
	@tools/setup lint
	@tools/check_format
	@tools/check_layers
	@tools/check_sizes
	@tools/check_definitions
	@tools/check_kernels

format:
	@tools/setup lint
	@git ls-files -co --exclude-standard '*.h' '*.cc' | xargs -r clang-format-14 -i

interop:
	@tools/interop

# Rewrites the expected values in testdata/golden that tests read.
golden:
	@tools/setup golden
	@tools/golden

full: lint test asan tsan clang
	@PLIMSOLL_MORE_PROGRAMS=20 build/graph_test --gtest_brief=1 --gtest_filter='*.GivesTheSameBytesWithinEveryBudget'
	@tools/check_headers
	@$(TEST) build -C Full -L far
	@tools/check_without_opencl
	@tools/setup opencl oclgrind || echo "make: without the simulator of OpenCL"
	@tools/check_opencl || test $$? = 77
	@tools/check_kills
	@tools/check_mpi build/plimsoll --models --faults 100 --namespaces || test $$? = 77
	@tools/check_tidy
	@tools/check_report
	@tools/setup golden
	@tools/check_adding
	@$(MAKE) deb

# Debian packages in build-deb, looked at by lintian.
deb:
	@tools/setup build deb
	@tools/setup page || echo "make: building without the page of reports"
	@cmake --preset deb >/dev/null
	@$(BUILD) build-deb -j$(JOBS)
	@tools/make_deb

install: build
	@cmake --install build --prefix $(or $(PREFIX),/usr/local)

clean:
	@rm -rf build build-*
