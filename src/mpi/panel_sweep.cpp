#include "mpi/panel_sweep.h"

#include <cstring>

#include "block_columns/pass.h"
#include "cpu/batch_columns.h"
#include "cpu/kernels.h"

namespace gpucholmod::mpi {

template <class T>
PanelSweep<T>::PanelSweep(Team& team, const Layout& layout, MatrixView<const double> V, const Task& task, double scale)
    : team_(team), layout_(layout), V_(V), task_(task), scale_(scale), carries_(task.right.m() > 0) {}

/// Takes the fewest columns a pass that the way of any GPU has, as all messages have one width, and the stepwise launch
/// if the way of any GPU has it.
template <class T>
bool PanelSweep<T>::in_passes(const Columns<T>& R) {
  const PanelWay own = R.panels()->way(task_);
  const bool stepwise = team_.largest(own.launch == Launch::stepwise) > 0;
  const int narrowest = -int(team_.largest(-own.columns));
  way_ = {stepwise ? Launch::stepwise : Launch::persistent, narrowest};
  return block_columns::passes_of(task_.k, task_.removed, way_.columns).size() > 1;
}

template <class T>
std::vector<int> PanelSweep<T>::receivers(index_t b) const {
  std::vector<int> all = layout_.behind(b, team_.rank());
  if (carries_ && team_.rank() != 0 && (all.empty() || all[0] != 0)) all.insert(all.begin(), 0);
  return all;
}

/// Returns the row, counted from the first row of panel b, at which the whole downdate fails, if one pass fails at row
/// `pivot`. The passes that follow have not run and may fail at an earlier row. So the CPU modifies the diagonal block
/// by all columns of V at once.
template <class T>
index_t PanelSweep<T>::first_pivot(index_t b, const std::vector<double>& V, index_t pivot) const {
  const index_t m = layout_.columns(b);
  const MatrixView<T> panel = original_->block(b);
  std::vector<double> R(m * m);
  for (index_t j = 0; j < m; ++j)
    for (index_t i = 0; i <= j; ++i) R[i + j * m] = double(panel(layout_.first(b) + i, j)) * by_;
  Task alone;
  alone.n = m;
  alone.k = task_.k;
  alone.removed = task_.removed;
  alone.instructions = cpu::resolve(Instructions::automatic);
  const index_t found = cpu::modify_alone(R, V, alone);
  return found < 0 ? pivot : std::min(found, pivot);
}

/// Modifies the diagonal block of panel b and sends the panel's message. Returns the failing pivot, or -1.
template <class T>
index_t PanelSweep<T>::modify(index_t b) {
  const bool in_passes = task_.removed > 0 && block_columns::passes_of(task_.k, task_.removed, way_.columns).size() > 1;
  std::vector<double> V(in_passes ? layout_.columns(b) * task_.k : 0);
  if (in_passes) gpu_->fetch_V(b, V.data());
  if (const index_t pivot = gpu_->modify(b); pivot >= 0)
    return layout_.first(b) + (in_passes ? first_pivot(b, V, pivot) : pivot);
  if (const std::vector<int> to = receivers(b); !to.empty()) team_.send(to, b, gpu_->message(b));
  return -1;
}

/// Returns the rows of V of this process's panels, one panel behind the other; in `rows`, unless these are all rows.
template <class T>
MatrixView<const double> PanelSweep<T>::own_rows(std::vector<double>& rows) const {
  if (layout_.size == 1) return V_;
  index_t own = 0;
  const auto each = [&](auto&& f) {
    for (index_t b = team_.rank(); b < layout_.blocks(); b += layout_.size) f(b);
  };
  each([&](index_t b) { own += layout_.columns(b); });
  rows.resize(own * V_.cols);
  double* to = rows.data();
  for (index_t q = 0; q < V_.cols; ++q)
    each([&](index_t b) { to = std::copy_n(V_.col(q) + layout_.first(b), layout_.columns(b), to); });
  return {rows.data(), own, V_.cols, own};
}

template <class T>
index_t PanelSweep<T>::run(const Columns<T>& R, const Columns<T>* to, const Columns<T>& original, double by,
                           const Poll& poll, Work& work) {
  const int rank = team_.rank();
  const index_t blocks = layout_.blocks();
  const bool carries = carries_ && to && rank == 0;
  original_ = &original;
  by_ = by;
  struct Messages {
    Team& team;
    ~Messages() { team.receive_into(nullptr); }
  } const messages{team_};
  team_.receive_into(R.panels()->message_memory());
  std::vector<double> rows;
  gpu_ = R.panels()->modification(to ? to->panels() : nullptr, own_rows(rows), task_, scale_, way_,
                                  carries ? task_.right : RightHandSideView{}, [this] { team_.look(); });
  if (to) to->forget();
  index_t modified = 0;  // this process's panels before this number have been modified
  for (index_t b = 0; b < blocks; ++b) {
    const bool mine = layout_.owner(b) == rank,
               next = layout_.size > 1 && b + 1 < blocks && layout_.owner(b + 1) == rank;
    if (!mine && !carries && !layout_.has_behind(rank, b)) continue;
    poll(share_of_columns(layout_.first(b), layout_.n));
    if (!mine) gpu_->receive(b, team_.take(layout_.owner(b), b));
    if (mine && modified <= b)
      if (const index_t pivot = modify(b); pivot >= 0) return pivot;
    if (next) {
      gpu_->follow(b, b + 1, b + 2);
      modified = b + 2;
      if (const index_t pivot = modify(b + 1); pivot >= 0) return pivot;
    }
    gpu_->follow(b, b + 1 + next, blocks);
    if (carries) gpu_->carry(b);
  }
  gpu_->finish(work);
  gpu_.reset();
  if (carries_ && to) tell_right_sides();
  return -1;
}

template <class T>
void PanelSweep<T>::tell_right_sides() {
  const std::size_t numbers = std::size_t(layout_.n * task_.right.m()), rest = std::size_t(task_.right.m() * task_.k);
  Bytes told(team_.rank() == 0 ? sizeof(double) * (numbers + rest) : 0);
  if (team_.rank() == 0) {
    std::memcpy(told.data(), task_.right.out.data, sizeof(double) * numbers);
    std::memcpy(told.data() + sizeof(double) * numbers, task_.right.rest.data, sizeof(double) * rest);
  }
  team_.broadcast(team_.all_but_0(), told);
  if (team_.rank() == 0) return;
  std::memcpy(task_.right.out.data, told.data(), sizeof(double) * numbers);
  std::memcpy(task_.right.rest.data, told.data() + sizeof(double) * numbers, sizeof(double) * rest);
}

template class PanelSweep<float>;
template class PanelSweep<double>;

}  // namespace gpucholmod::mpi
