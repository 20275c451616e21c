#include "families.h"

#include "block_columns/sizes.h"

namespace gpucholmod::test {

Problem<double> Family::make(Sign sign, const Matrix& R, index_t k, Level level, Random& random) const {
  const Matrix V = columns(R.cols(), k, level, random);
  if (sign == Sign::update) return problem(sign, R, V);
  return contracts ? contraction(R, V, level.wide(1e-4)) : undo(R, V);
}

Matrix normal_columns(index_t n, index_t k, Level, Random& random) {
  return random.normal(n, k) / std::sqrt(real(n));
}

Matrix graded_mixed(index_t n, real decades, real mixing, Random& random) {
  const auto near_identity = [&](real size) {
    Matrix U = Matrix::Identity(n, n);
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i < j; ++i) U(i, j) = random.normal() * size / std::sqrt(real(n));
    return U;
  };
  Matrix M = near_identity(mixing), R0 = near_identity(1);
  const int kind = int(3 * random.uniform());
  for (index_t i = 0; i < n; ++i) {
    const real at = kind == 0                 ? 2 * random.uniform() - 1
                    : kind == 1               ? 2 * real(i) / real(n) - 1
                    : random.uniform() < 0.5L ? -1
                                              : 1;
    M(i, i) = std::exp(random.normal() / 4);
    R0.row(i) *= std::pow(10.0L, decades * at);
  }
  return product(M, R0);
}

namespace {

Matrix well(index_t n, Level, Random& random) { return well_conditioned(n, random); }

}  // namespace

const Family families[] = {
    {"uniform",  // Walder (2010)
     [](index_t n, Level, Random& random) {
       const Matrix B = random.uniform(n, n);
       return factor(B.transpose() * B + Matrix::Identity(n, n));
     },
     [](index_t n, index_t k, Level, Random& random) { return random.uniform(n, k); }, false},
    {"kernel_1e6", [](index_t n, Level level, Random& random) { return kernel(n, level.tiny(1e-6), random); },
     normal_columns, false},
    {"kernel_1e12", [](index_t n, Level level, Random& random) { return kernel(n, level.tiny(1e-12), random); },
     normal_columns, false},
    {"graded_rows",
     [](index_t n, Level level, Random& random) {
       return Matrix(powers(std::log10(level.wide(1e-8)), 0, n).asDiagonal() * well_conditioned(n, random));
     },
     normal_columns, true},
    {"graded_columns",
     [](index_t n, Level level, Random& random) {
       return Matrix(well_conditioned(n, random) * powers(0, std::log10(level.wide(1e-8)), n).asDiagonal());
     },
     normal_columns, true},
    {"parallel", well,
     [](index_t n, index_t k, Level level, Random& random) {
       const Matrix v = random.normal(n, 1);
       return Matrix(v.replicate(1, k) + level.wide(1e-7) * random.normal(n, k));
     },
     false},
    {"scaled", well,
     [](index_t n, index_t k, Level level, Random& random) {
       const real top = std::log10(level.wide(1e6));
       return Matrix(normal_columns(n, k, level, random) * powers(-top, top, k).asDiagonal());
     },
     false},
};

namespace {

Problem<double> mass_in_first_rows(index_t n, index_t k, real rest, real gap, Random& random) {
  const Matrix R = well_conditioned(n, random);
  Matrix seed = random.normal(n, k);
  seed.bottomRows(n - 64) *= rest;
  return contraction(R, seed, gap);
}

}  // namespace

const Case cases[] = {
    {"U1_well_conditioned",
     [](index_t n, index_t k, Level level, Random& random) {
       const Matrix R = well_conditioned(n, random);
       return problem(Sign::update, R, normal_columns(n, k, level, random));
     }},
    {"U2_condition_1e12",
     [](index_t n, index_t k, Level level, Random& random) {
       const Matrix R = random_with_condition(level.wide(1e12), n, random);
       return problem(Sign::update, R, normal_columns(n, k, level, random));
     }},
    {"U3_condition_1e12_large_V",
     [](index_t n, index_t k, Level level, Random& random) {
       const Matrix R = random_with_condition(level.wide(1e12), n, random);
       return problem(Sign::update, R, level.wide(1e6) * normal_columns(n, k, level, random));
     }},
    {"U4_kernel_1e8",
     [](index_t n, index_t k, Level level, Random& random) {
       const Matrix R = kernel(n, level.wide(1e-8), random);
       return problem(Sign::update, R, random.normal(n, k));
     }},
    {"U5_condition_1e12_parallel_V",
     [](index_t n, index_t k, Level level, Random& random) {
       const Matrix R = random_with_condition(level.wide(1e12), n, random), v = random.normal(n, 1);
       return problem(Sign::update, R, v.replicate(1, k) + level.wide(1e-7) * random.normal(n, k));
     }},
    {"U6_graded_rows",
     [](index_t n, index_t k, Level level, Random& random) {
       const Matrix R = powers(std::log10(level.wide(1e-8)), 0, n).asDiagonal() * well_conditioned(n, random);
       return problem(Sign::update, R, normal_columns(n, k, level, random));
     }},
    {"U7_graded_mixed",
     [](index_t n, index_t k, Level level, Random& random) {
       const Matrix R = graded_mixed(n, std::log10(level.wide(1e6)), 0.1L, random);
       return problem(Sign::update, R, product(R.transpose(), 30 * normal_columns(n, k, level, random)));
     }},
    {"D1_well_conditioned",
     [](index_t n, index_t k, Level level, Random& random) {
       const Matrix R = well_conditioned(n, random);
       return undo(R, normal_columns(n, k, level, random));
     }},
    {"D2_gap_1e8",
     [](index_t n, index_t k, Level level, Random& random) {
       const Matrix R = well_conditioned(n, random);
       return contraction(R, random.normal(n, k), level.wide(1e-8));
     }},
    {"D2_gap_1e13",
     [](index_t n, index_t k, Level level, Random& random) {
       const Matrix R = well_conditioned(n, random);
       return contraction(R, random.normal(n, k), level.tiny(1e-13));
     }},
    {"D3_smallest_eigenvectors",
     [](index_t n, index_t k, Level level, Random& random) {
       const Matrix Q = orthonormal(random.normal(n, n)), R = with_condition(level.wide(1e6), Q);
       const Matrix P = R.transpose().triangularView<Eigen::Lower>().solve(Q.rightCols(k));
       return contraction(R, P, level.wide(1e-8));
     }},
    {"D4_condition_1e10",
     [](index_t n, index_t k, Level level, Random& random) {
       const Matrix R = random_with_condition(level.wide(1e10), n, random);
       return contraction(R, random.normal(n, k), level.wide(1e-8));
     }},
    {"D5_undo_condition_1e8",
     [](index_t n, index_t k, Level level, Random& random) {
       const Matrix R = random_with_condition(level.wide(1e8), n, random);
       return undo(R, random.normal(n, k));
     }},
    {"D6_most_taken_away",
     [](index_t n, index_t k, Level level, Random& random) {
       const Matrix R = well_conditioned(n, random);
       return undo(R, level.wide(1e4) * normal_columns(n, k, level, random));
     }},
    {"D7_graded_rows",
     [](index_t n, index_t k, Level level, Random& random) {
       const Matrix R = powers(std::log10(level.wide(1e-6)), 0, n).asDiagonal() * well_conditioned(n, random);
       return contraction(R, random.normal(n, k), level.wide(1e-8));
     }},
    {"E1_rest_1e2",
     [](index_t n, index_t k, Level level, Random& random) {
       return mass_in_first_rows(n, k, level.wide(1e-2), level.wide(1e-8), random);
     }},
    {"E2_rest_1e4",
     [](index_t n, index_t k, Level level, Random& random) {
       return mass_in_first_rows(n, k, level.wide(1e-4), level.wide(1e-8), random);
     }},
    {"E3_rest_1e6",
     [](index_t n, index_t k, Level level, Random& random) {
       return mass_in_first_rows(n, k, level.wide(1e-6), level.tiny(1e-12), random);
     }},
};

Problem<double> many_blocks(Sign sign, const Stored<double>& P) {
  const index_t n = P.rows();
  Random random(8);
  Problem<double> p{sign, Stored<double>::Identity(n, n), {}};
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < j; ++i) p.R(i, j) = double(random.uniform() - 0.5L) / std::sqrt(n);
  p.V = p.R.transpose() * P;
  return p;
}

Problem<double> growing_metric(index_t n, index_t k, real growth) {
  const index_t NB = block_columns::NB, blocks = (n + NB - 1) / NB;
  const real factor = std::pow(growth, 1 / real(blocks - 1));
  Random random(9);
  Matrix P = random.normal(n, k) / std::sqrt(real(NB));
  for (index_t i = 0; i < n; ++i)
    P.row(i) *= i < NB ? 0.1L : std::sqrt((factor - 1) * std::pow(factor, real(i / NB - 1)));
  return many_blocks(Sign::update, P.cast<double>());
}

}  // namespace gpucholmod::test
