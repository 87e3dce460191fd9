# Plimsoll: every target sets up what it needs (Debian packages, configuration) and is quick when that is done.
JOBS ?= 2
BUILD = cmake --build

.PHONY: help build test demo full bench interop lint format asan tsan fuzz clean install
help:
	@echo "make demo     build, then see it work"
	@echo "make test     build and run all tests"
	@echo "make bench    measurements against peers (installs them)"
	@echo "make full     tests, clang, clang-tidy, all sanitizers"
	@echo "make lint | format | asan | tsan | fuzz | interop | install PREFIX=dir | clean"

build:
	@tools/setup build test
	@cmake --preset default >/dev/null
	@$(BUILD) build -j$(JOBS)

test: build
	@ctest --test-dir build -j$(JOBS) --output-on-failure

demo:
	@tools/setup build test
	@cmake --preset default >/dev/null
	@$(BUILD) build -j$(JOBS) --target plimsoll_program
	@build/plimsoll demo

bench:
	@tools/setup build bench
	@cmake --preset bench >/dev/null
	@$(BUILD) build-bench -j$(JOBS)
	@tools/bench

asan tsan:
	@tools/setup build test
	@cmake --preset $@ >/dev/null
	@$(BUILD) build-$@ -j$(JOBS)
	@ctest --test-dir build-$@ -j$(JOBS) --output-on-failure $(CTEST_ARGS)

fuzz:
	@tools/setup build full
	@cmake --preset fuzz >/dev/null
	@$(BUILD) build-fuzz -j$(JOBS)
	@tools/fuzz

lint:
	@tools/setup build lint
	@tools/check_format
	@tools/check_layers
	@tools/check_sizes

format:
	@tools/setup lint
	@git ls-files -co --exclude-standard '*.h' '*.cc' | xargs -r clang-format-14 -i

interop:
	@tools/interop

full: test lint asan tsan
	@tools/setup build test full
	@cmake --preset clang >/dev/null
	@$(BUILD) build-clang -j$(JOBS)
	@ctest --test-dir build-clang -j$(JOBS) --output-on-failure
	@tools/check_tidy

install: build
	@cmake --install build --prefix $(or $(PREFIX),/usr/local)

clean:
	@rm -rf build build-*
