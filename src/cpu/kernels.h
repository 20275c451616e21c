#pragma once

#include <cstdint>

#include "base/tuning.h"
#include "base/types.h"
#include "cpu/rotation.h"

// On Windows, GCC assumes that the stack is aligned for AVX, but the stack is not (GCC's bug 54412): a program that
// stores a vector on the stack may crash. So GCC on Windows compiles no AVX kernels, unless GPUCHOLMOD_WINDOWS_AVX says
// that the compiler or the assembler has been mended (inst/design/platforms.md).
#if defined(__x86_64__) && \
    (defined(__clang__) || (defined(__GNUC__) && (!defined(_WIN32) || defined(GPUCHOLMOD_WINDOWS_AVX))))
#define GPUCHOLMOD_X86 1
#endif

/// The inner loops of the CPU's methods, compiled once for each set of instructions; a call chooses the set.
namespace gpucholmod::cpu {

/// The bound below which an entry of the diagonal may cease to be a normal number when R is modified with a scale above
/// 2^-20 (base/range.h).
template <class T>
constexpr T least_safe = sizeof(T) == 8 ? T(0x1p-890) : T(0x1p-52);

/// The most columns of V whose transforms are rotations; transforms of more columns are by Householder steps.
constexpr index_t most_rotations = 4;

/// Describes a strip: some neighbouring columns of R, and of V transposed, on which block transforms act from the left.
///
/// Entry (i, j) of the strip is entry (i, j) of the upper factor; if uplo is lower, the matrix in memory is the
/// transpose of the upper factor. `out` may be R itself.
template <class T>
struct Strip {
  const T* R;     ///< address of entry (0, 0)
  T* out;         ///< address of the new entry (0, 0)
  index_t ldr;
  index_t ldo;
  index_t columns;
  T* Vt;          ///< k x columns by rows, `ldv` apart; zeros fill each row up to `ldv`. Modified in place
  index_t ldv;
  /// The sum of the squares of the entries of R that were read, entries of blocks on the diagonal among them; infinite
  /// if an entry of the diagonal is below least_safe.
  T squares = 0;
};

/// A table of the functions that find and apply block transforms for one k and sign, so that the walk over the matrix
/// is the same for all sets of instructions, k and signs.
template <class T>
struct Kernels {
  index_t rows;   ///< height of a row block: 4 or 8
  index_t lanes;  ///< numbers by which a strip's `ldv` has to exceed its width
  index_t long_rows;  ///< least number of columns at which vectors of a row of a lower factor begin with a cache line
  index_t (*transform_words)(index_t k);

  /// Computes strip <- H_b strip (the tail kernel), from `column` of the strip on, for row blocks b = 0 .. blocks - 1
  /// from `row` on. H holds the transforms of the row blocks, one after the other.
  void (*apply)(const T* H, index_t blocks, index_t row, index_t column, index_t k, Strip<T>& strip);

  /// Finds the transform H of rows row .. row + m - 1 of the strip (the diagonal kernel), whose diagonal entries are in
  /// columns column .. column + m - 1, and applies H to these columns. m is `rows` unless the factor ends with these
  /// rows. Returns which of the m pivots fails, or -1.
  index_t (*diagonal)(T* H, index_t row, index_t column, index_t m, index_t k, Strip<T>& strip);

  /// Fills a row of a strip's Vt, `ldv` entries, with `columns` numbers from `from`, and then with zeros.
  void (*fill)(T* row, index_t ldv, const T* from, index_t columns);

  /// Returns the number that turns column q of a strip's Vt, as the block with transform H has left it, into V.
  T (*unit)(const T* H, index_t q);
};

/// Returns whether this machine has these instructions and the package has code for them.
bool available(Instructions instructions);
/// Returns `asked`, or, if `asked` is automatic, the best available set. Throws bad_argument.
Instructions resolve(Instructions asked);

/// True if this machine executes vectors of 512 bits in halves, as a Zen 4 does: tiles that are transposed then take
/// less time by vectors of 256 bits. Results have the same bits. Tests change this flag.
extern bool takes_halves;

template <class T>
const Kernels<T>& kernels(Instructions instructions, index_t k, Sign sign, Uplo uplo);

/// Returns the sum of the squares of a triangle of R (n x n), or of columns first .. last - 1 of the triangle. If an
/// entry is not finite, the sum is not finite. If `copy` is not null, the columns must be all columns, and the triangle
/// is copied to `copy`: n (n + 1) / 2 numbers, one column after the other.
template <class T>
T squares_of_triangle(Instructions instructions, MatrixView<const T> R, Uplo uplo, T* copy);
template <class T>
T squares_of_columns(Instructions instructions, MatrixView<const T> R, Uplo uplo, index_t first, index_t last, T* copy);
/// Returns the sum of the squares of a triangle of R by several threads. The bits of the sum do not depend on the
/// number of threads.
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
