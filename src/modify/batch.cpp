#include "modify/batch.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/factor_io.h"
#include "cpu/batch_columns.h"
#include "cpu/host_batch.h"
#include "cuda/device_batch.h"

namespace gpucholmod {
namespace {

/// The members that have one order and one number of columns.
struct Alike {
  std::vector<index_t> members;
  cpu::ScatteredBatch batch;
  std::vector<const double*> weights;
  std::vector<double> scale;
};

/// Returns whether all elements are equal to the first.
template <class T>
bool are_same(const std::vector<T>& all) {
  return std::all_of(all.begin(), all.end(), [&](const T& one) { return one == all[0]; });
}

/// Returns a copy of z (n x m) in which the rows are turned whose rows of R will be turned (base/turned.h). Returns an
/// empty vector if there are no such rows.
std::vector<double> turned_z(const BatchMember& member, index_t m) {
  std::vector<double> z;
  const index_t n = member.n;
  for (index_t i = 0; m > 0 && i < n; ++i) {
    if (!(member.R[i + i * n] < 0)) continue;
    if (z.empty()) z.assign(member.sides.z, member.sides.z + n * m);
    for (index_t s = 0; s < m; ++s) z[i + s * n] = -z[i + s * n];
  }
  return z;
}

/// Copies the members to a batch on the GPU, modifies the batch there, and copies the results back.
Work modify_on_gpu(const cpu::ScatteredBatch& of, const BatchTask& task, std::vector<index_t>& pivots,
                   const Poll& poll) {
  const index_t n = of.n, b = index_t(of.members.size());
  const index_t rows = n * task.sides.m, columns = task.k * task.sides.m;
  std::vector<double> R(n * n * b), V(n * task.k * b), z(rows * b), Y(columns * b), made(rows * b), rest(columns * b);
  for (index_t m = 0; m < b; ++m) {
    const MemberSides& sides = of.members[m].sides;
    std::copy_n(of.members[m].R, n * n, R.data() + m * n * n);
    std::copy_n(of.members[m].V, n * task.k, V.data() + m * n * task.k);
    std::copy_n(sides.z, rows, z.data() + m * rows);
    std::copy_n(sides.Y, columns, Y.data() + m * columns);
  }
  BatchTask own = task;
  own.sides.first = {z.data(), Y.data(), made.data(), rest.data()};
  const auto held = cuda::upload_batch(R.data(), n, b, of.uplo, of.precision, -1);
  std::atomic<bool> begun{false};
  const Work work = held->modify(V.data(), own, nullptr, pivots, poll, begun);
  held->download(of.uplo, R.data());
  for (index_t m = 0; m < b; ++m) {
    const MemberSides& sides = of.members[m].sides;
    if (pivots[m] >= 0) {
      cpu::copy_triangle(of.members[m].R, n, of.uplo, of.members[m].out);
      continue;
    }
    std::copy_n(R.data() + m * n * n, n * n, of.members[m].out);
    std::copy_n(made.data() + m * rows, rows, sides.out);
    std::copy_n(rest.data() + m * columns, columns, sides.rest);
  }
  return work;
}

}  // namespace

Work modify_batch(const std::vector<BatchMember>& members, Uplo uplo, Precision precision, const BatchTask& options,
                  Backend backend, std::vector<index_t>& pivots, const Poll& poll) {
  std::map<std::pair<index_t, index_t>, Alike> sizes;
  std::deque<std::vector<double>> turned;
  for (index_t m = 0; m < index_t(members.size()); ++m) {
    const BatchMember& member = members[m];
    Alike& alike = sizes[{member.n, member.k}];
    alike.members.push_back(m);
    alike.batch.members.push_back({member.R, member.V, member.out, member.sides});
    if (std::vector<double> z = turned_z(member, options.sides.m); !z.empty()) {
      turned.push_back(std::move(z));
      alike.batch.members.back().sides.z = turned.back().data();
    }
    alike.weights.push_back(member.weights);
    alike.scale.push_back(member.scale);
  }
  pivots.assign(members.size(), -1);
  Work work;
  std::vector<index_t> own;
  for (auto& [size, of_this_size] : sizes) {
    Alike& alike = of_this_size;  // a lambda cannot capture a structured binding
    alike.batch.n = size.first;
    alike.batch.uplo = uplo;
    alike.batch.precision = precision;
    BatchTask task = options;
    task.k = size.second;
    task.common_V = false;
    task.common_weights = are_same(alike.weights);
    task.common_scale = are_same(alike.scale);
    std::vector<double> weights;
    for (const double* const of_member : alike.weights)
      if (!task.common_weights) weights.insert(weights.end(), of_member, of_member + task.k);
    task.weights = task.common_weights ? alike.weights[0] : weights.data();
    task.scale = task.common_scale && alike.scale[0] == 1 ? nullptr : alike.scale.data();
    naming_members([&] {
      const Work done = backend == Backend::cuda ? modify_on_gpu(alike.batch, task, own, poll)
                                                 : cpu::modify_scattered(alike.batch, task, own, poll);
      work.seconds += done.seconds;
      work.device = done.device;
      work.device_bytes = std::max(work.device_bytes, done.device_bytes);
    }, &alike.members);
    for (std::size_t i = 0; i < own.size(); ++i) pivots[alike.members[i]] = own[i];
  }
  return work;
}

void solve_modified(HeldBatch& R, const GivenColumns<double>& V, const BatchTask& task, const BatchSystems& wanted,
                    std::vector<index_t>& pivots, const Poll& poll) {
  const index_t n = R.order(), own = wanted.common_b ? 0 : R.count();
  const auto look_at = [&](index_t member) {
    for (index_t s = 0; s < wanted.m; ++s) largest_of("b", wanted.b_of(n, member) + s * n, n, 0, s);
  };
  if (wanted.common_b) look_at(0);
  naming_members([&] {
    for (index_t m = 0; m < own; ++m) cpu::for_member(m, [&] { look_at(m); });
    R.solve_modified(V, task, wanted, pivots, poll);
  });
}

void naming_members(const std::function<void()>& f, const std::vector<index_t>* members) {
  try {
    f();
  } catch (const Error& error) {
    Error::Fields fields = error.fields();
    std::string message = error.what();
    for (auto& [key, value] : fields) {
      if (key != "member") continue;
      if (members) value = double((*members)[index_t(std::get<double>(value)) - 1] + 1);
      message += ", in member " + std::to_string(index_t(std::get<double>(value)));
    }
    throw Error(error.code(), message, std::move(fields));
  }
}

}  // namespace gpucholmod
