#pragma once

#include <cstdint>

#include "base/tuning.h"
#include "base/types.h"
#include "cpu/rotation.h"

// On Windows GCC takes the stack to be aligned for AVX, which it is not (GCC's bug 54412): a vector that is put there
// may be the end of the program. So AVX is left out there, unless GPUCHOLMOD_WINDOWS_AVX says that the compiler or the
// assembler has been mended (inst/design/platforms.md).
#if defined(__x86_64__) && \
    (defined(__clang__) || (defined(__GNUC__) && (!defined(_WIN32) || defined(GPUCHOLMOD_WINDOWS_AVX))))
#define GPUCHOLMOD_X86 1
#endif

/// The inner loops of the CPU's methods, compiled once for each set of instructions, and chosen when they are called.
namespace gpucholmod::cpu {

/// Entries of the diagonal below this may cease to be normal numbers by a modification and a scale above 2^-20
/// (base/range.h).
template <class T>
constexpr T least_safe = sizeof(T) == 8 ? T(0x1p-890) : T(0x1p-52);

/// A strip: some neighbouring columns of R, and of V transposed, on which block transforms act from the left.
///
/// Entry (i, j) of the strip is entry (i, j) of the upper factor; where uplo is lower, the matrix in memory is its
/// transpose. `out` may be R itself.
template <class T>
struct Strip {
  const T* R;     ///< entry (0, 0)
  T* out;         ///< where the new entry (0, 0) goes
  index_t ldr;
  index_t ldo;
  index_t columns;
  T* Vt;          ///< k x columns by rows, `ldv` apart; zeros follow each row up to there. Modified in place
  index_t ldv;
  /// Of entries of R that were read, summed up, those of blocks on the diagonal among them; infinite where an entry of
  /// the diagonal is below least_safe.
  T squares = 0;
};

/// Block transforms for one k and sign; a table of functions, so that the walk over the matrix is the same for all.
template <class T>
struct Kernels {
  index_t rows;   ///< height of a row block: 4 or 8
  index_t lanes;  ///< a strip's `ldv` has to exceed its width by as many
  index_t long_rows;  ///< of a lower factor: with so many columns, vectors of a row begin with a cache line
  index_t (*transform_words)(index_t k);

  /// Tail kernel: strip <- H_b strip, from `column` of the strip on, for row blocks 0 .. blocks - 1 from `row` on; H:
  /// their transforms, one after the other.
  void (*apply)(const T* H, index_t blocks, index_t row, index_t column, index_t k, Strip<T>& strip);

  /// Diagonal kernel: find H for rows row .. row + m - 1 of the strip, whose diagonal entries lie in columns
  /// column .. column + m - 1, apply it to these, and leave it in H. m is `rows` unless the factor ends there.
  /// Returns the failing one of the m pivots, or -1.
  index_t (*diagonal)(T* H, index_t row, index_t column, index_t m, index_t k, Strip<T>& strip);

  /// A row of a strip's Vt, `ldv` entries: `columns` that come from there, and zeros.
  void (*fill)(T* row, index_t ldv, const T* from, index_t columns);

  /// What column q of V in a strip is to be multiplied by behind a block with this transform, in order to be V.
  T (*unit)(const T* H, index_t q);
};

/// Whether this machine has them, and the package code for them.
bool available(Instructions instructions);
/// `asked`, or the best there are. Throws bad_argument.
Instructions resolve(Instructions asked);

/// Whether this machine takes vectors of 512 bits in halves, as a Zen 4 does: tiles that are transposed then take less
/// time by vectors of 256. Results have the same bits. Tests change it.
extern bool takes_halves;

template <class T>
const Kernels<T>& kernels(Instructions instructions, index_t k, Sign sign, Uplo uplo);

/// Returns the sum of the squares of a triangle of R (n x n), or of columns first .. last - 1 of it. Where an entry is
/// not finite, neither is the sum. Where `copy` is not null, the columns are all of them, and the triangle goes there:
/// n (n + 1) / 2 numbers, its columns one behind the other.
template <class T>
T squares_of_triangle(Instructions instructions, MatrixView<const T> R, Uplo uplo, T* copy);
template <class T>
T squares_of_columns(Instructions instructions, MatrixView<const T> R, Uplo uplo, index_t first, index_t last, T* copy);
/// Returns the same sum of all columns, by several threads. Its bits do not depend on how many threads there are.
template <class T>
T squares_by_threads(Instructions instructions, MatrixView<const T> R, Uplo uplo, int threads);

namespace plain {
template <class T> const Kernels<T>& kernels(index_t k, Sign sign, Uplo uplo);
template <class T>
T squares_of_triangle(MatrixView<const T> R, Uplo uplo, index_t first, index_t last, T* copy);
}
namespace avx2 {
template <class T> const Kernels<T>& kernels(index_t k, Sign sign, Uplo uplo);
template <class T>
T squares_of_triangle(MatrixView<const T> R, Uplo uplo, index_t first, index_t last, T* copy);
}
namespace avx512 {
template <class T> const Kernels<T>& kernels(index_t k, Sign sign, Uplo uplo);
template <class T>
T squares_of_triangle(MatrixView<const T> R, Uplo uplo, index_t first, index_t last, T* copy);
}

}  // namespace gpucholmod::cpu
