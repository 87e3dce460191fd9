// SearchProblem: tables about an instance that searches share: who meets whom, who lives in each section.
//
//   SearchProblem problem(instance);            // once; then any number of ExactSearch objects, in any threads
#pragma once

#include <span>
#include <vector>

#include "plimsoll/plan/internal/instance.h"

namespace plimsoll::internal {

struct Neighbour {
  int item;
  Units distance;  // How far above the owner's offset it must lie when it lies above.
  Units lift;      // How far above its offset the owner must lie when that lies above.
};

class SearchProblem {
 public:
  explicit SearchProblem(const Instance& instance);

  const Instance& instance() const { return instance_; }
  int items() const { return static_cast<int>(instance_.items.size()); }
  // Those with the least lift first.
  std::span<const Neighbour> neighbours(int item) const {
    return {neighbours_.data() + neighbours_begin_[item], neighbours_.data() + neighbours_begin_[item + 1]};
  }
  std::span<const int> in_section(int section) const {
    return {in_section_.data() + section_begin_[section], in_section_.data() + section_begin_[section + 1]};
  }
  Units size(int item) const { return sizes_[item]; }
  int twin(int item) const { return twins_[item]; }  // An earlier item just like it, or -1.

 private:
  void find_neighbours();
  void find_twins();

  const Instance& instance_;
  std::vector<std::size_t> neighbours_begin_;
  std::vector<Neighbour> neighbours_;
  std::vector<std::size_t> section_begin_;
  std::vector<int> in_section_;
  std::vector<Units> sizes_;
  std::vector<int> twins_;
};

}  // namespace plimsoll::internal
