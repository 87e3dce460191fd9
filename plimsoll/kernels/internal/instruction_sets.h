// Loops for several instruction sets: each *loops.cc of this folder is compiled once per set, with that set's flags,
// and defines its table in a namespace of the set's name; the best one that the processor supports is chosen when a
// table is first used. CMakeLists.txt has the sets and their flags.
//
//   // sum_loops.h
//   struct SumLoops { double (*sum)(const float* x, std::int64_t n); };
//   PLIMSOLL_LOOPS(SumLoops, sum_loops)
//
//   // sum_loops.cc, all but the table in an unnamed namespace:
//   constinit const SumLoops PLIMSOLL_INSTRUCTION_SET::sum_loops = {sum};
//
//   sum_loops().sum(x, n);                               // With the best set.
//   for (const SumLoops* loops : every_sum_loops()) ...  // With every supported set: for tests.
//
// Other processors than x86-64 have only the baseline.
#pragma once

namespace plimsoll::internal {

// How many of the sets the processor supports: they are in order, and each includes those before it.
int num_instruction_sets() noexcept;

template <class Table>
struct TablesOfSets {
  const Table* tables[3];
  int count;
  const Table* const* begin() const noexcept { return tables; }
  const Table* const* end() const noexcept { return tables + count; }
};

#define PLIMSOLL_LOOPS_OF_SET(set, Table, name) \
  namespace set {                               \
  extern const Table name;                      \
  }
#if defined(__x86_64__)
#define PLIMSOLL_LOOPS_OF_SETS(Table, name)                                         \
  PLIMSOLL_LOOPS_OF_SET(baseline, Table, name)                                      \
  PLIMSOLL_LOOPS_OF_SET(avx2, Table, name)                                          \
  PLIMSOLL_LOOPS_OF_SET(avx512, Table, name)                                        \
  inline TablesOfSets<Table> every_##name() noexcept {                              \
    return {{&baseline::name, &avx2::name, &avx512::name}, num_instruction_sets()}; \
  }
#else
#define PLIMSOLL_LOOPS_OF_SETS(Table, name)    \
  PLIMSOLL_LOOPS_OF_SET(baseline, Table, name) \
  inline TablesOfSets<Table> every_##name() noexcept { return {{&baseline::name}, 1}; }
#endif
#define PLIMSOLL_LOOPS(Table, name)                                                \
  PLIMSOLL_LOOPS_OF_SETS(Table, name)                                              \
  inline const Table& name() noexcept {                                            \
    static const Table& best = *every_##name().tables[num_instruction_sets() - 1]; \
    return best;                                                                   \
  }

}  // namespace plimsoll::internal
